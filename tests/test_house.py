"""This repository obeys the laws of the house (tests/house.py, tests/sizes.py)."""

from pathlib import Path

from tests.house import ROOMS, circles, climbing_imports, import_graph, lumber_rooms, wrong_imports
from tests.sizes import long_files, long_functions, written_files

REPOSITORY = Path(__file__).resolve().parents[1]


def test_imports_point_one_way() -> None:
    assert wrong_imports(REPOSITORY) == []


def test_imports_go_down_the_rooms() -> None:
    assert climbing_imports(REPOSITORY) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(REPOSITORY) == []


def test_no_room_is_a_lumber_room() -> None:
    assert lumber_rooms(REPOSITORY) == []


def test_no_file_is_too_long() -> None:
    assert long_files(REPOSITORY) == []


def test_no_function_is_too_long() -> None:
    assert long_functions(REPOSITORY) == []


def test_the_checker_sees_the_rooms_of_this_repository() -> None:
    graph = import_graph(REPOSITORY)
    assert {name.split(".")[0] for name in graph} == set(ROOMS)
    assert "torch" in graph["model.nn.attention"]
    assert "model.trace.arrays" in graph["model.trace.records"]
    assert {"viz/explorer/js/main.js", "viz/shell/style.css", "app.py"} <= set(
        written_files(REPOSITORY)
    )
