"""The code that a reader sees, and each script that he copies, gives the number on the page."""

import contextlib
import io
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from model import load_model
from model.analysis.attribution.head_maps import read_by
from model.code.origin import origin
from model.code.script import stem, weights_file
from model.snippets import STYLES, Origin, Style, code_of, script
from model.snippets.script import LONGEST, TRACE_FILE
from model.trace.trace_file import trace_file
from tests.model.snippets.snippet_cases import (
    AROUND,
    CLOSE,
    TEXTS,
    Case,
    changed_cases,
    chosen_cells,
    later_stages,
    names_of,
    own_cases,
    run,
    shown,
    unit,
    weights_of,
)

Found = tuple[float, str]  # how far a number is from the page's, and what gave it


def differences(cases: Iterator[tuple[str, Case]], scripts: tuple[Style, ...]) -> Iterator[Found]:
    """How far each snippet and, in some styles, each script of these layers is from the page's number."""
    saved = None
    for name, case in cases:
        model, trace, attention = case
        source = origin(model, trace, attention)
        code = code_of(attention, source, later=later_stages(attention))
        own_weights = weights_of(case) if source.vectors else {}
        assert set(code.snippets) & set(AROUND) == expected_around(case, source), name
        if trace is not saved:
            Path(TRACE_FILE).write_bytes(trace_file(trace))
            saved = trace
        Path(f"{stem(model)}.safetensors").write_bytes(weights_file(own_weights))
        for stage, styles in code.snippets.items():
            side = "query" if stage == "query" else "key"
            x = torch.tensor(read_by(model, trace, attention, side))
            names = names_of(case, own_weights, x)
            for style in styles:
                for number, cell in enumerate(chosen_cells(attention)):
                    ran = {"snippet": run(code, names, stage, style, cell)}
                    if number == 0 and style in scripts:
                        ran["script"] = printed(code.script(stage, style, **cell))
                    own = shown(case, stage, cell)
                    scale = unit(case, stage, cell["head"])
                    for what, made in ran.items():
                        off = 0.0 if made == own else abs(made - own) / scale
                        yield off, f"{name} {stage} {what} {style}"


def expected_around(case: Case, source: Origin) -> set[str]:
    """The stages that this layer has around its heads, by the model's config."""
    model, trace, attention = case
    config = model.config
    turns = config.turns_positions and attention.kind != "cross" and trace.intervention.positions
    found = {"concatenated"} if source.refusal else {"concatenated", "written"}
    turns = turns and not source.refusal
    is_first = attention.layer == 0 and attention.kind != "cross"
    if config.norm_place == "pre" or not is_first or config.embedding_norm:
        found.add("norm")
    if attention.projection.normed and not source.refusal:
        found |= {"query_norm", "key_norm"}
    adds = config.adds_positions and is_first
    return found | ({"positions"} if adds or turns else set())


def printed(text: str) -> float:
    """What a script prints."""
    assert len(text.splitlines()) <= LONGEST, text
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "<script>", "exec"), {})
    return float(out.getvalue())


@pytest.mark.parametrize(("cases", "scripts"), [(own_cases, STYLES), (changed_cases, ("plain",))])
def test_every_snippet_and_script_gives_the_number_on_the_page(
    cases: Callable[[], Iterator[tuple[str, Case]]],
    scripts: tuple[Style, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    found = list(differences(cases(), scripts))
    worst, where = max(found)
    ran = {what for _, what in found}
    print(f"{len(ran)} snippets and scripts, {len(found)} runs, the worst {where}: {worst:.1e}")
    assert not any(math.isnan(off) for off, _ in found)
    assert worst <= CLOSE, where
    assert {what.split()[-1] for what in ran} == set(STYLES)


def test_a_script_runs_alone(tmp_path: Path) -> None:
    model = load_model("translate-en-fr", device="cpu")
    trace = model.trace(TEXTS["translate-en-fr"])
    attention = trace.find("decoder.1.cross")
    text = script(trace, attention.name, head=3, stage="weights", query=2, key=1, style="torch")
    (tmp_path / TRACE_FILE).write_bytes(trace_file(trace))
    (tmp_path / "script.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-I", "-W", "error", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", check=True)
    assert float(done.stdout) == pytest.approx(attention.weights(3)[2, 1], abs=CLOSE)


def test_code_that_there_is_not_is_refused_and_said_why() -> None:
    model = load_model("house-gpt", device="cpu")
    trace = model.trace("The cat")
    code = code_of(trace.attention[0], origin(model, trace, trace.attention[0]))
    styles: tuple[Style, ...] = ("einsum", "loops")
    for style in styles:
        with pytest.raises(ValueError, match="written as"):
            code.script("query", style, head=0, query=0, key=0)
    code = code_of(trace.attention[0])
    assert "query" not in code.snippets
    with pytest.raises(ValueError, match="no code for 'query'"):
        code.script("query", "plain", head=0, query=0, key=0)
