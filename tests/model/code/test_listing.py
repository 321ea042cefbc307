"""The listing is the model: each of its results is the trace's, and each shape is what is computed."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch

from model import Model, load_model
from model.code import lines, listing, model_script
from model.code.__main__ import main
from model.code.script import SHOWN, lengths, printed, weights_file
from model.trace.trace import Trace
from tests.cases import cases
from tests.model.code.code_models import CLOSE, HUB, OWN, opened, variant
from tests.model.hub_models import TEXT, loaded, saved
from viz.notation.model_map import rails

LONGEST = 120  # lines
Frame = tuple[str, dict[str, Any], Any]  # a function, its names when it ends, its result


def run_listing(text: str, model: Model, trace: Trace) -> torch.Tensor:
    """What a listing gives for the tokens of a trace."""
    names: dict[str, Any] = {}
    exec(compile(text, "<listing>", "exec"), names)
    read = [tokens for tokens in (trace.tokens, trace.target_tokens) if tokens]
    ids = [torch.tensor([token.id for token in tokens]) for tokens in read]
    with torch.inference_mode():
        result: torch.Tensor = names["forward"](ids[0], model.module.named_weights(), *ids[1:])
    return result


def frames(model: Model, trace: Trace) -> list[Frame]:
    """Every call in a run of the listing, in the order in which they end."""
    found: list[Frame] = []

    def ended(frame: FrameType, event: str, result: Any) -> None:
        if event == "return" and frame.f_code.co_filename == "<listing>":
            found.append((frame.f_code.co_name, dict(frame.f_locals), result))

    sys.setprofile(ended)
    try:
        run_listing(listing(model), model, trace)
    finally:
        sys.setprofile(None)
    return found


def pairs(model: Model, trace: Trace) -> Iterator[tuple[str, torch.Tensor, np.ndarray]]:
    """What the listing computed beside what the trace recorded."""
    ran = frames(model, trace)
    attentions = [names for function, names, _ in ran if function == "attention"]
    for names, record in zip(attentions, trace.attention, strict=True):
        yield f"{record.name} q", names["q"], record.query
        yield f"{record.name} k", names["k"], record.key
        yield f"{record.name} v", names["v"], record.value
        weights = np.stack([record.weights(head) for head in range(record.heads)])
        yield f"{record.name} weights", names["weights"], weights
        output = record.output.transpose(1, 0, 2).reshape(record.output.shape[1], -1)
        yield f"{record.name} output", names["output"], output
    wide = [
        result
        for function, names, result in ran
        if function == "norm" and names["x"].ndim == 2  # not those of each head's queries and keys
    ]
    once = [  # a norm that two sub-layers read is recorded for both
        record
        for record in trace.norms
        if not (model.config.shared_norm and record.name.endswith("feed_forward.norm"))
    ]
    for made, norm in zip(wide, once, strict=True):
        yield norm.name, made, norm.output
    hidden = [names["hidden"] for function, names, _ in ran if function == "feed_forward"]
    for made, record in zip(hidden, trace.feed_forward, strict=True):
        yield record.name, made, record.hidden
    final = ran[-1][2]
    own = trace.residual["encoder"][-1] if trace.logits is None else trace.logits
    yield "result", final, own


@cases("name", [*OWN, *HUB])
def test_every_result_of_the_listing_is_the_traces(name) -> None:
    model, trace = opened(name)
    off = {}
    for what, made, own in pairs(model, trace):
        assert made.shape == own.shape, what
        off[what] = float(np.abs(made.numpy() - own).max() / np.abs(own).max())
    worst = max(off, key=off.__getitem__)
    print(f"{name}: {len(off)} results, the worst is {worst}: {off[worst]:.1e}")
    assert off[worst] <= CLOSE, worst


def run_watched(watch: Callable[..., Any], text: str, model: Model, trace: Trace) -> None:
    """Runs a listing; Python tells `watch` of every frame on the way."""
    before = sys.gettrace()
    sys.settrace(watch)
    try:
        run_listing(text, model, trace)
    finally:
        sys.settrace(before)


@cases("name", [*OWN, *HUB])
def test_the_listing_is_short_and_has_no_line_that_never_runs(name) -> None:
    model, trace = opened(name)
    text = listing(model)
    ran: set[int] = set()

    def watch(frame: FrameType, event: str, given: Any) -> Any:
        if frame.f_code.co_filename != "<listing>":
            return None
        ran.add(frame.f_lineno)
        return watch

    run_watched(watch, text, model, trace)
    written = text.splitlines()
    assert len(written) <= LONGEST
    never = [
        line
        for number, line in enumerate(written, start=1)
        if number not in ran and line.strip() and not line.strip().startswith(('"""', "#"))
    ]
    assert never == []


@cases("name", [*OWN, "gpt_neox", "phi", "qwen3", "gemma", "bart"])
def test_the_shape_beside_a_line_is_that_of_its_result(name) -> None:
    model, trace = opened(name)
    for record in {attention.kind: attention for attention in trace.attention}.values():
        listed = lines(model.config, model.module.named_weights(), record.place)
        known = lengths(trace, record.name)
        stated = {number: line.shaped(known) for number, line in enumerate(listed, start=1)}
        text = "\n".join(line.code for line in listed) + "\n"
        measured = shapes(text, model, trace)
        for number, shape in stated.items():
            if shape:
                assert shape in measured[number], f"{number}: {listed[number - 1].code}"


def shapes(text: str, model: Model, trace: Trace) -> dict[int, set[str]]:
    """The shapes of what each line of a listing assigned or returned, in all its runs."""
    found: dict[int, set[str]] = {}
    written = text.splitlines()

    def note(number: int, names: dict[str, Any], result: Any) -> None:
        named = re.match(r"\s*(?:if [^:]*: )?(\w+)(?:, \w+)* = ", written[number - 1])
        value = names.get(named[1]) if named else result
        if isinstance(value, torch.Tensor):
            found.setdefault(number, set()).add(str(tuple(value.shape)))

    def watch(frame: FrameType, event: str, given: Any) -> Any:
        if frame.f_code.co_filename != "<listing>":
            return None
        at = [0]

        def line(inner: FrameType, event: str, given: Any) -> Any:
            if at[0]:
                note(at[0], inner.f_locals, given if event == "return" else None)
            at[0] = inner.f_lineno
            return line

        return line

    run_watched(watch, text, model, trace)
    return found


@cases("name", [*OWN, "gpt_neox", "phi"])
def test_every_line_belongs_to_a_block_of_the_map(name) -> None:
    model, _ = opened(name)
    blocks = {block.kind for rail in rails(model.config) for block in rail.blocks}
    listed = lines(model.config, model.module.named_weights())
    parts = {line.part for line in listed} - {None}
    assert parts <= blocks
    assert {line for line in listed if line.shape is not None and line.part is None} == set()
    assert blocks - parts <= {
        "cross",
        "next_token",
        "vectors",
    }  # one function for each kind of attention


# Runs what has nothing but its file of weights, one script after the other.
ALONE = """
import os, runpy, sys
for folder in sys.argv[1:]:
    os.chdir(folder)
    runpy.run_path("script.py", run_name="__main__")
    print("---")
"""


def run_scripts(scripts: list[tuple[str, Model]], folder: Path) -> list[str]:
    """What the scripts of models print."""
    places = [folder / str(number) for number in range(len(scripts))]
    for place, (script, model) in zip(places, scripts, strict=True):
        (file,) = re.findall(r'= load\("(.*)"\)', script)
        place.mkdir()
        (place / file).write_bytes(weights_file(model.module.named_weights()))
        (place / "script.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "-I", "-X", "utf8", "-c", ALONE, *map(str, places)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    return done.stdout.split("---\n")[:-1]


def test_a_script_runs_alone_and_prints_what_the_model_gave(tmp_path: Path) -> None:
    """A token that comes up in the script alone is printed without its text: where two tokens are nearly as
    probable, rounding decides which one is the last of the five."""
    models = [
        opened(name) for name in ("house-gpt", "minilm", "translate-en-fr", "induction", "gpt_neox")
    ]
    scripts = [
        (model_script(model, trace, model.module.named_weights()), model) for model, trace in models
    ]
    untold = re.sub("^names = .*$", "names = {}", scripts[3][0], flags=re.MULTILINE)
    *prints, without = run_scripts([*scripts, (untold, models[3][0])], tmp_path)
    assert without.count(" '?' ") == SHOWN
    for printed_, (model, trace) in zip(prints, models, strict=True):
        for one, other in zip(printed_.split(), printed(model, trace).split(), strict=True):
            if one != other:  # rounded the other way
                assert float(one) == pytest.approx(float(other), abs=1.01e-4), model.name


def test_the_command_writes_the_script_and_the_file_that_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = OWN["induction"]
    monkeypatch.setattr(sys, "argv", ["code", "induction", text, "-o", str(tmp_path)])
    main()
    model, trace = opened("induction")
    script, weights = tmp_path / "induction.py", tmp_path / "induction.safetensors"
    assert capsys.readouterr().err == f"Wrote {script} and {weights}.\n"
    assert script.read_text(encoding="utf-8") == model_script(
        model, trace, model.module.named_weights()
    )
    assert weights.read_bytes() == weights_file(model.module.named_weights())


def test_the_command_refuses_a_model_that_cannot_be_written_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "files"
    for model, said in {
        str(
            saved("mistral")
        ): "cannot be written as code: its tokens attend to a window of the last",
        "nobody": "There is no model 'nobody'",
    }.items():
        monkeypatch.setattr(sys, "argv", ["code", model, TEXT, "-o", str(output)])
        with pytest.raises(SystemExit):
            main()
        assert said in capsys.readouterr().err
    assert not output.exists()


def test_a_model_without_a_final_norm_has_none_in_its_listing(tmp_path: Path) -> None:
    model, trace = variant(tmp_path, "opt", "OPT", _remove_final_layer_norm=True)
    text = listing(model)
    assert "final_norm" not in text
    assert "final_norm" in listing(loaded("opt"))
    off = np.abs(run_listing(text, model, trace).numpy() - trace.logits).max()
    assert off <= CLOSE * np.abs(trace.logits).max()


def test_a_token_of_the_sentence_is_no_code_in_the_script() -> None:
    model = load_model("house-gpt", device="cpu")
    trace = model.trace('"""\n# \')\nimport os; os.abort() "')
    assert "os.abort" not in model_script(model, trace, model.module.named_weights())
