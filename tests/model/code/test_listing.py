"""The listing is the model: each of its results is the trace's, and each shape is what is computed."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch

from model import Intervention, Model, load_model
from model.code import largest_difference, lines, listing, model_script
from model.code.__main__ import main
from model.code.script import lengths, printed, weights_file
from model.trace.trace import Trace
from tests.model.hub_models import FAMILIES, TEXT, loaded
from viz.notation.model_map import rails

OWN = {
    "house-gpt": "Tom Hill saw a red ball. Anna gave the ball to Tom",
    "stories": "Tom Hill saw a red ball. Anna gave the ball to Tom",
    "induction": "q f m b q f m b q",
    "translate-en-fr": "the black cat sees the dog",
    "minilm": "The animal was too tired to cross the street",
    "smollm2-135m-instruct": "The animal was too tired to cross the street",
}
HUB = [family for family in FAMILIES if family != "mistral"]
CLOSE = 1e-5  # of the largest number of a result
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


def opened(name: str) -> tuple[Model, Trace]:
    model = loaded(name) if name in HUB else load_model(name, device="cpu")
    return model, model.trace(OWN.get(name, TEXT), record="full")


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


@pytest.mark.parametrize("name", [*OWN, *HUB])
def test_every_result_of_the_listing_is_the_traces(name: str) -> None:
    model, trace = opened(name)
    off = {}
    for what, made, own in pairs(model, trace):
        assert made.shape == own.shape, what
        off[what] = float(np.abs(made.numpy() - own).max() / np.abs(own).max())
    worst = max(off, key=off.__getitem__)
    print(f"{name}: {len(off)} results, the worst is {worst}: {off[worst]:.1e}")
    assert off[worst] <= CLOSE, worst


@pytest.mark.parametrize("name", [*OWN, *HUB])
def test_the_listing_is_short_and_has_no_line_that_never_runs(name: str) -> None:
    model, trace = opened(name)
    text = listing(model)
    ran: set[int] = set()

    def watch(frame: FrameType, event: str, given: Any) -> Any:
        if frame.f_code.co_filename != "<listing>":
            return None
        ran.add(frame.f_lineno)
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        run_listing(text, model, trace)
    finally:
        sys.settrace(before)
    written = text.splitlines()
    assert len(written) <= LONGEST
    never = [
        line
        for number, line in enumerate(written, start=1)
        if number not in ran and line.strip() and not line.strip().startswith(('"""', "#"))
    ]
    assert never == []


@pytest.mark.parametrize("name", [*OWN, "gpt_neox", "phi", "qwen3", "gemma", "bart"])
def test_the_shape_beside_a_line_is_that_of_its_result(name: str) -> None:
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

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        run_listing(text, model, trace)
    finally:
        sys.settrace(before)
    return found


@pytest.mark.parametrize("name", [*OWN, "gpt_neox", "phi"])
def test_every_line_belongs_to_a_block_of_the_map(name: str) -> None:
    model, _ = opened(name)
    blocks = {block.kind for rail in rails(model.config) for block in rail.blocks}
    listed = lines(model.config, model.module.named_weights())
    parts = {line.part for line in listed} - {None}
    assert parts <= blocks
    assert {line for line in listed if line.shape is not None and line.part is None} == set()
    assert blocks - parts <= {"cross", "next_token"}  # one function for each kind of attention


@pytest.mark.parametrize(
    "name", ["house-gpt", "minilm", "translate-en-fr", "induction", "gpt_neox"]
)
def test_the_script_runs_alone_and_prints_what_the_model_gave(name: str, tmp_path: Path) -> None:
    model, trace = opened(name)
    script = model_script(model, trace)
    (file,) = re.findall(r'= load\("(.*)"\)', script)
    (tmp_path / file).write_bytes(weights_file(model))
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "-I", "-X", "utf8", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", check=True)
    made, own = done.stdout.split(), printed(model, trace).split()
    assert len(made) == len(own)
    for one, other in zip(made, own, strict=True):
        if one != other:  # rounded the other way
            assert float(one) == pytest.approx(float(other), abs=1.01e-4)


def test_the_command_writes_the_script_and_the_file_that_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = OWN["induction"]
    monkeypatch.setattr(sys, "argv", ["code", "induction", text, "-o", str(tmp_path)])
    main()
    model, trace = opened("induction")
    script, weights = tmp_path / "induction.py", tmp_path / "induction.safetensors"
    assert capsys.readouterr().out == f"Wrote {script} and {weights}.\n"
    assert script.read_text(encoding="utf-8") == model_script(model, trace)
    assert weights.read_bytes() == weights_file(model)


def test_a_token_of_the_sentence_is_no_code_in_the_script() -> None:
    model = load_model("house-gpt", device="cpu")
    trace = model.trace('"""\n# \')\nimport os; os.abort() "')
    assert "os.abort" not in model_script(model, trace)


@pytest.mark.parametrize("name", [*OWN, *HUB])
def test_the_check_of_the_page_passes_where_the_listing_is_right(name: str) -> None:
    assert largest_difference(*opened(name)) <= CLOSE


def test_the_check_notices_weights_under_a_wrong_name(monkeypatch: pytest.MonkeyPatch) -> None:
    model, trace = opened("gpt_neox")
    named = model.module.named_weights()
    one, other = (f"decoder.blocks.1.self_attention.{name}.weight" for name in ("key", "value"))
    wrong = {**named, one: named[other], other: named[one]}
    monkeypatch.setattr(type(model.module), "named_weights", lambda module: wrong)
    assert largest_difference(model, trace) > 0.1


@pytest.mark.parametrize(
    ("changed", "said"),
    [({"scale": 1.0}, "√d_k"), ({"blocked": frozenset({(3, 1)})}, "masks its scores")],
)
def test_other_steps_of_attention_are_refused(changed: dict[str, Any], said: str) -> None:
    model = load_model("house-gpt", device="cpu")
    trace = model.trace("The cat sat on the mat", intervention=Intervention(**changed))
    with pytest.raises(ValueError, match=said):
        largest_difference(model, trace)


def test_a_window_of_attention_is_refused_in_a_sentence() -> None:
    model = loaded("mistral")
    with pytest.raises(ValueError, match="window"):
        listing(model)
