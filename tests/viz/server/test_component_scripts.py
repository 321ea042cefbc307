"""Our own server hands out the scripts that Streamlit would send with each message of a component."""

import asyncio
import re
import sys

import pytest
from starlette.requests import Request

from viz.explorer import bundle
from viz.server import asgi

NAMES = sorted(file.name for file in bundle.BUNDLED.glob("*.js"))


def answer(name: str) -> tuple[int, bytes]:
    given = Request({"type": "http", "path_params": {"name": name}})
    response = asyncio.run(asgi.component_script(given))
    return response.status_code, bytes(response.body)


@pytest.mark.parametrize("name", NAMES)
def test_a_component_loads_its_script_from_our_server(name: str) -> None:
    taken = bundle.component_script(name)
    assert len(taken) < 1000
    assert taken.count("\n") > 1  # Streamlit takes one line for a path
    (address,) = re.findall(r'new URL\("(app/[^"]+)"', taken)
    assert address.startswith(f"{bundle.SCRIPTS}/{name}?")
    assert f"/{bundle.SCRIPTS}/{{name}}" in [getattr(one, "path", "") for one in asgi.ROUTES]
    assert answer(name) == (200, bundle.bundled(name).encode())


def test_it_has_it_whole_under_another_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, asgi.__name__)
    assert bundle.component_script("picker.js") == bundle.bundled("picker.js")


@pytest.mark.parametrize("name", ["explorer.css", "../bundle.py", "none.js"])
def test_nothing_else_is_handed_out(name: str) -> None:
    assert answer(name)[0] == 404
