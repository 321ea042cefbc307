"""The code behind a picture is what a reader can run: it gives the number that the page writes beside it."""

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest

from model.analysis.heads.contributions import merged
from model.code.check import within_weights
from model.code.script import stem, weights_file
from model.snippets.script import LONGEST, TRACE_FILE
from model.trace.records import NormRecord
from model.trace.trace_file import trace_file
from tests.pages.kinds import name_of
from tests.pages.reading import control, own, visit

TEXT = "the cat saw the dog"


def assert_the_code_runs(app: AppTest, key: str, names: dict[str, Any], folder: Path) -> None:
    """Opens the code and runs what stands there, in every style; the script in a folder with its files."""
    app.session_state[f"more-{key}"] = True
    app.run()
    assert not app.exception
    written = set()
    for style in ("plain", "torch"):
        control(app, "Style").set_value(style).run()
        code, script = [one.value for one in app.code if one.language == "python"]
        *lines, last = code.splitlines()
        result, beside = last.split("  # ")
        known = {"torch": torch} | names
        exec("\n".join(lines), known)
        number = float(beside.replace("−", "-"))
        assert float(eval(result, known)) == pytest.approx(number, abs=1e-4)
        assert len(script.splitlines()) <= LONGEST
        with contextlib.chdir(folder):
            alone = printed(script)
        assert alone == pytest.approx(number, abs=1e-4)
        written.add(beside)
    assert len(written) == 1


def printed(script: str) -> float:
    """What a script prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(script, "<script>", "exec"), {})
    return float(out.getvalue())


def save(folder: Path, model: str, text: str, weights: str = "no weights") -> None:
    """The files that the page names: the trace, and those weights whose names begin so."""
    (folder / TRACE_FILE).write_bytes(trace_file(own(model).trace(text)))
    named = own(model).module.named_weights()
    chosen = {name: weight for name, weight in named.items() if name.startswith(weights)}
    (folder / f"{stem(own(model))}.safetensors").write_bytes(weights_file(chosen))


def norm_names(norm: NormRecord) -> dict[str, torch.Tensor]:
    fields = {"x": norm.input, "gamma": norm.gamma, "beta": norm.beta}
    return {name: torch.tensor(array) for name, array in fields.items()}


@pytest.mark.parametrize("model", ["stories", "llama"])
def test_of_the_heads_through_w_o(model: str, tmp_path: Path) -> None:
    model = name_of(model)
    place, token = "decoder.1.self", 3
    app = visit("head", model=model, text=TEXT, show="Joined", place=place, query="3")
    trace, layer = own(model).trace(TEXT), own(model).layer(place)
    found = merged(own(model), trace, place)
    weights = {"output.weight": layer.output.weight, "output.bias": layer.output.bias}
    assert found.outputs[:, token].any()
    save(tmp_path, model, TEXT, within_weights(trace.find(place)))
    assert_the_code_runs(
        app, "all-heads-merged", {"output": torch.tensor(found.outputs), "w": weights}, tmp_path
    )


@pytest.mark.parametrize("model", ["stories", "llama"])
def test_of_a_norm(model: str, tmp_path: Path) -> None:
    model = name_of(model)
    app = visit("layer_norm", model=model, text=TEXT)
    trace = own(model).trace(TEXT, record="full")
    save(tmp_path, model, TEXT)
    chosen = {norm.name: norm for norm in trace.norms}[app.session_state["layer-norm-norm"]]
    assert_the_code_runs(app, "layer-norm-spread", norm_names(chosen), tmp_path)


@pytest.mark.parametrize("model", ["stories", "translate-en-fr", "llama"])
def test_of_positions(model: str, tmp_path: Path) -> None:
    model = name_of(model)
    app = visit("positions", model=model, text="the cat", show="The table")
    table = own(model).module.embedding.positions
    save(tmp_path, model, "the cat", "embedding.positions")
    names = {} if table is None else {"table": table.weight.detach()}
    assert_the_code_runs(app, "positions-drawn", names, tmp_path)
