"""What stands around every page is drawn once, by app.py, and stays while pages change."""

import asyncio
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.testing.v1 import AppTest

from tests.server import serving
from tests.visitor import Visitor
from viz.state.navigation import PAGES, PLACES

REPOSITORY = Path(__file__).resolve().parents[3]
SIDEBAR = 1  # where a message's path begins


@dataclass
class Watcher(Visitor):
    """Remembers the main script of its last run, and which scripts drew each element of the sidebar."""

    main: str = ""
    drawn_by: dict[tuple[int, ...], str] = field(default_factory=dict)

    def _read(self, content: bytes) -> bool:
        message = ForwardMsg.FromString(content)
        if message.HasField("new_session"):
            self.main = message.new_session.main_script_hash
            self.drawn_by.clear()
        path = tuple(message.metadata.delta_path)
        if path and path[0] == SIDEBAR:
            self.drawn_by[path] = message.metadata.active_script_hash
        return super()._read(content)


@pytest.mark.process
def test_the_menu_is_of_app_py_from_the_first_link_into_a_fresh_server(tmp_path: Path) -> None:
    async def visit(port: int) -> None:
        async with Watcher(port, "library", "") as visitor:
            for page in ("library", "prediction", ""):
                visitor.page = page
                await visitor.run()
                assert visitor.drawn_by[SIDEBAR, 0] == visitor.main, page
                assert set(visitor.drawn_by.values()) == {visitor.main}, page

    with serving(tmp_path / "log") as server:
        asyncio.run(visit(server.port))


def test_app_py_opens_every_page_in_one_frame() -> None:
    app = AppTest.from_file(str(REPOSITORY / "app.py"), default_timeout=120).run()
    for page in PAGES:
        app.switch_page(page.file).run()
        assert not app.exception
        assert [title.value for title in app.title] == [page.heading or page.title]
        menu = app.sidebar.get("html")[0].proto.body
        assert re.findall(r'<a href="/(\w*)" data-page data-shown-on="(.*?)">(.*?)</a>', menu) == [
            (pages[0].address, " ".join(f"/{one.address}" for one in pages), place)
            for place, pages in PLACES.items()
        ]
