"""A saved notebook as one page: what is refused, and what is said of widgets that were not saved."""

import json
import re
import sys
from pathlib import Path

import nbformat
import pytest

from viz.notebook import offline
from viz.notebook.offline import STATES, VIEW, main, offline_page


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    """A notebook with one widget, whose state was not saved."""
    output = nbformat.v4.new_output(
        "display_data", data={VIEW: {"model_id": "lost"}, "text/plain": "A"}
    )
    cell = nbformat.v4.new_code_cell("show()", outputs=[output])
    file = tmp_path / "cat.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), file)
    return file


def ended(monkeypatch: pytest.MonkeyPatch, *given: object) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["offline", *map(str, given)])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


@pytest.mark.parametrize("content", ["[]", "1", "null", '{"nbformat": 4}', "no JSON"])
def test_a_file_that_is_no_notebook_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "wrong.ipynb"
    file.write_text(content)
    with pytest.raises(ValueError, match="cannot be read as a notebook"):
        offline_page(file)


def test_a_page_that_cannot_be_written_is_refused_with_a_sentence(
    notebook: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = notebook.parent / "missing" / "cat.html"
    assert ended(monkeypatch, notebook, "-o", target) == 2
    assert re.fullmatch(f".*: .* {target.parent}.\n", capsys.readouterr().err)


def test_an_output_that_no_page_can_show_is_named(tmp_path: Path) -> None:
    output = nbformat.v4.new_output("display_data", data={"application/vnd.vega+json": {}})
    file = tmp_path / "vega.ipynb"
    cell = nbformat.v4.new_code_cell("chart", outputs=[output])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), file)
    assert "application/vnd.vega+json" in offline_page(file)


def test_lost_widgets_are_counted_and_the_notebook_is_read_once(
    notebook: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read = offline.text_of
    files: list[Path] = []
    monkeypatch.setattr(
        offline, "text_of", lambda file, *more: files.append(file) or read(file, *more)
    )
    monkeypatch.setattr(sys, "argv", ["offline", str(notebook)])
    main()
    assert ": 1 widget." in capsys.readouterr().err
    assert files == [notebook]
    assert notebook.with_suffix(".html").exists()


def test_no_text_of_a_widget_can_end_its_script_or_hide_the_end() -> None:
    """In HTML "<!--<script>" makes the next end of a script a part of it."""
    states = {"state": {"a": {"state": {"tokens": ["<!--<script>", "</script><b>", "a\\<"]}}}}
    saved = nbformat.v4.new_notebook(metadata={"widgets": {STATES: states}})
    page, _ = offline.OfflineExporter().from_notebook_node(saved)
    (written,) = re.findall(f'<script type="{re.escape(STATES)}">(.*?)</script>', page, re.DOTALL)
    assert "<" not in written
    assert json.loads(written) == states
