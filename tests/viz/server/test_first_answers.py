"""What the server answers while it still starts."""

import asyncio
from pathlib import Path

import pytest

from tests.server import HEALTHY, serving
from tests.visitor import PATIENCE, Visitor

pytestmark = pytest.mark.process


@pytest.mark.parametrize(("query", "is_recorded"), [("", True), ("text=Tom", False)])
def test_the_frame_and_what_is_recorded_come_before_torch_and_the_page_after_it(
    tmp_path: Path, query: str, is_recorded: bool
) -> None:
    here = tmp_path / "torch-is-here"
    program = ("tests.late_torch_server", str(here))
    awaited = "explorer" if is_recorded else "choose-text"

    async def visit(port: int) -> None:
        one = Visitor(port, "", query)
        opening = asyncio.create_task(one.__aenter__())
        async with asyncio.timeout(PATIENCE):
            while awaited not in one.widgets and not opening.done():
                await asyncio.sleep(0.01)
        assert ("explorer" in one.widgets) == is_recorded
        assert "choose-text" in one.widgets
        assert "hero-mask" not in one.widgets
        here.touch()
        await opening
        assert {"explorer", "hero-mask"} <= one.widgets.keys()
        assert one.troubles == []
        await one.__aexit__(None, None, None)

    with serving(tmp_path / "log", program=program, until=HEALTHY) as server:
        asyncio.run(visit(server.port))
