"""What the server answers while it still starts."""

import asyncio
from pathlib import Path

import pytest

from tests.server import HEALTHY, serving
from tests.visitor import PATIENCE, Visitor

pytestmark = pytest.mark.process


def test_the_frame_of_the_page_comes_before_torch_and_the_page_after_it(tmp_path: Path) -> None:
    here = tmp_path / "torch-is-here"
    program = ("tests.late_torch_server", str(here))

    async def visit(port: int) -> None:
        one = Visitor(port, "", "")
        opening = asyncio.create_task(one.__aenter__())
        async with asyncio.timeout(PATIENCE):
            while "choose-text" not in one.widgets and not opening.done():
                await asyncio.sleep(0.01)
        assert "explorer" not in one.widgets
        here.touch()
        await opening
        assert "explorer" in one.widgets
        assert one.troubles == []
        await one.__aexit__(None, None, None)

    with serving(tmp_path / "log", program=program, until=HEALTHY) as server:
        asyncio.run(visit(server.port))
