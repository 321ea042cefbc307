"""Each law of the house is tried on a small planted one that breaks it."""

from pathlib import Path

import pytest

from tests.laws.house import circles, climbing_imports, lumber_rooms, repeated_types, wrong_imports
from tests.laws.sizes import LONGEST_FILE, LONGEST_FUNCTION, long_files, long_functions


def build(root: Path, sources: dict[str, str]) -> Path:
    """A small house with these files and their sources."""
    for path, source in sources.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(source)
    return root


def test_an_honest_house_passes(tmp_path: Path) -> None:
    sources = {
        "app.py": "import streamlit\nfrom viz.shell.frame import run_app",
        "pages/heads.py": "from viz.shell import page\nfrom viz.figures import grid",
        "viz/__init__.py": "",
        "viz/shell/__init__.py": "",
        "viz/shell/page.py": "import streamlit\nfrom model import Trace\nfrom viz.figures import grid",
        "viz/figures/grid.py": "import plotly.express\nfrom model.trace.trace import Trace",
        "viz/notation/formulas.py": "from model.trace.trace import Trace",
        "model/__init__.py": "from model.trace.trace import Trace",
        "model/nn/config.py": "",
        "model/trace/trace.py": "import torch\nfrom model.nn.config import Stack",
    }
    house = build(tmp_path, sources)
    assert wrong_imports(house) == []
    assert climbing_imports(house) == []
    assert circles(house) == []
    assert lumber_rooms(house) == []


@pytest.mark.parametrize(("path", "source"), [
    ("model/nn/attention.py", "from model.trace.trace import Trace"),
    ("model/nn/attention.py", "from model.trace import trace"),
    ("model/nn/attention.py", "def late():\n    from model.trace.trace import Trace"),
    ("model/nn/attention.py", "from ..trace.trace import Trace"),
    ("model/attention.py", ""),
])  # fmt: skip
def test_a_planted_climb_is_found(tmp_path: Path, path: str, source: str) -> None:
    sources = {"model/trace/__init__.py": "", "model/trace/trace.py": "", path: source}
    assert len(climbing_imports(build(tmp_path, sources))) == 1


def test_a_planted_circle_is_found(tmp_path: Path) -> None:
    sources = {
        "model/nn/one.py": "from model.nn import two",
        "model/nn/two.py": "def late():\n    from model.nn.three import thing",
        "model/nn/three.py": "from .one import other",
    }
    assert circles(build(tmp_path, sources)) == [{f"model.nn.{n}" for n in ("one", "two", "three")}]


def test_a_planted_circle_of_scripts_is_found(tmp_path: Path) -> None:
    sources = {
        "viz/js/one.js": 'import { a } from "./two.js";',
        "viz/js/two.js": 'import {\n  b,\n} from "../js/one.js";\nexport { c } from "./three.js";',
        "viz/js/three.js": 'import "plotly";',
    }
    assert circles(build(tmp_path, sources)) == [{"viz/js/one.js", "viz/js/two.js"}]


@pytest.mark.parametrize("source", ["class Turn:\n    pass", "Turn = dict[str, int]"])
def test_a_planted_second_meaning_of_a_name_is_found(tmp_path: Path, source: str) -> None:
    sources = {"model/nn/one.py": source, "viz/two.py": "Turn = int | str\nTURN = 3 * 4"}
    assert repeated_types(build(tmp_path, sources)) == ["Turn: model.nn.one, viz.two"]


@pytest.mark.parametrize(("path", "source"), [
    ("model/trace.py", "import streamlit as st"),
    ("model/trace.py", "from plotly import graph_objects"),
    ("model/trace.py", "from viz.theme import PURPLE"),
    ("model/trace.py", "def draw():\n    import plotly.express"),
    ("model/worked/notes.py", "import app"),
    ("model/trace.py", "import importlib\nimportlib.import_module('streamlit')"),
    ("model/trace.py", "__import__('pages')"),
    ("model/__init__.py", "import streamlit"),
    ("viz/shell.py", "from pages import heads"),
    ("viz/shell.py", "import app"),
    ("viz/notation/formulas.py", "import streamlit"),
    ("viz/figures/grid.py", "from streamlit.delta_generator import DeltaGenerator"),
    ("viz/figures/__init__.py", "import streamlit"),
])  # fmt: skip
def test_a_planted_import_is_found(tmp_path: Path, path: str, source: str) -> None:
    assert len(wrong_imports(build(tmp_path, {path: source}))) == 1


@pytest.mark.parametrize(
    "sources",
    [
        {"viz/figures/grid.py": "from viz.shell import theme"},
        {"viz/figures/grid.py": "from .. import shell"},
        {"viz/figures/grid.py": "from ..shell import theme"},
        {"viz/figures/grid.py": "from viz import theme", "viz/theme.py": "from . import shell"},
        {"viz/figures/grid.py": "", "viz/__init__.py": "from .shell import theme"},
    ],
    ids=["directly", "by dots", "by dots and name", "through a neighbour", "through the package"],
)
def test_streamlit_is_found_behind_another_module(tmp_path: Path, sources: dict[str, str]) -> None:
    house = build(tmp_path, {"viz/__init__.py": "", "viz/shell.py": "import streamlit"} | sources)
    found = wrong_imports(house)
    assert any(line.startswith("viz.figures.grid") and "streamlit" in line for line in found)


@pytest.mark.parametrize("path", ["model/utils.py", "viz/common/colours.py", "viz/figures/base.py"])
def test_a_planted_lumber_room_is_found(tmp_path: Path, path: str) -> None:
    assert len(lumber_rooms(build(tmp_path, {path: ""}))) == 1


@pytest.mark.parametrize("path", ["model/nn/layers.py", "viz/explorer/js/main.js", "tests/a.css"])
def test_a_planted_long_file_is_found(tmp_path: Path, path: str) -> None:
    assert long_files(build(tmp_path, {path: "\n" * LONGEST_FILE})) == []
    assert len(long_files(build(tmp_path, {path: "\n" * (LONGEST_FILE + 1)}))) == 1


@pytest.mark.parametrize(("path", "source"), [
    ("model/nn/layers.py", "def long():\n{}    return 1"),
    ("tests/test_long.py", "class Tests:\n    async def long(self):\n{}        return 1"),
    ("viz/explorer/js/main.js", "export function long(a) {{\n{}}}"),
    ("viz/explorer/js/main.js", "class Long {{\n  async long({{ a }}) {{\n{}  }}\n}}"),
    ("viz/explorer/js/main.js", "const long = (a) => {{\n{}}};"),
])  # fmt: skip
def test_a_planted_long_function_is_found(tmp_path: Path, path: str, source: str) -> None:
    assert (
        long_functions(build(tmp_path, {path: source.format("\n" * (LONGEST_FUNCTION - 2))})) == []
    )
    assert len(long_functions(build(tmp_path, {path: source.format("\n" * LONGEST_FUNCTION)}))) == 1
