"""Every tensor of a pass is where the model is, and the pass waits for none.

The device is the tests' own: a tensor that was left on the CPU is counted there, and a value that is asked
for.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import pytest
import torch

from model import Intervention, Model, Trace, load_model, models
from model.nn.patches import Patch, PatchPart
from model.nn.recorder import AttentionCall, Recorder, recording
from model.run.model import trace_of_pass
from model.run.other_run import from_other_run
from model.trace.collect import words_of
from tests.cases import cases
from tests.model import hub_models as families
from tests.model.conftest import DEVICES
from tests.model.device import DEVICE, Crossings, device, moved
from tests.model.hub.test_identity import TEXT as HUB_TEXT
from tests.model.tiny import SHAPES, loaded, sentence, target

HUB = [f"hub {family}" for family in (*families.FAMILIES, *families.PARTLY)]
MODELS = [*SHAPES, *HUB]
# Every intervention and explicit passes: in our tiny models, and in one of the library's for each shape. Its
# other families go through the same `attend`, so for them: what their own modules do.
FEW = ("none", "positions off", "no cap, bias or sinks", "parts of another run")
BY_LIST = {"hub falcon, ALiBi"}  # the library takes its heads of keys by a list, which is fed
THOROUGH = {*SHAPES} - {*models} | {"hub bert", "hub llama", "hub bart", "all-stages"}


@pytest.fixture(autouse=True)
def one_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two values the library asks for itself: whether texts are packed in a row, or padded. They are not."""
    monkeypatch.setattr("transformers.masking_utils.find_packed_sequence_indices", lambda ids: None)
    monkeypatch.setattr("transformers.masking_utils.fast_all", lambda mask: True)
    # Experts: PyTorch's own product of groups takes half precision only, on some processors.
    monkeypatch.setattr("transformers.integrations.moe._can_use_grouped_mm", lambda *groups: False)


def interventions(model: Model, text: str) -> dict[str, Intervention]:
    """Each field of an intervention, in the ways in which it takes a path of its own. text: another run's."""
    name = model.attention_names[-1]
    only = frozenset({name})
    edges = {"blocked": frozenset({(1, 0), (3, 2)}), "only": only}
    return {
        "none": Intervention(),
        "scale": Intervention(scale=1.0),
        "scale of nothing": Intervention(scale=0.0),
        "negative scale": Intervention(scale=-0.5),
        "no mask": Intervention(mask="none"),
        "causal mask": Intervention(mask="causal", only=only),
        "hidden": Intervention(hidden=frozenset({0, 2})),
        "all hidden": Intervention(hidden=frozenset(range(64))),
        "blocked": Intervention(**edges),
        "a mask value of zero": Intervention(fill=0.0, **edges),
        "a large mask value": Intervention(fill=-1e9, hidden=frozenset({1})),
        "positions off": Intervention(positions=False),
        "ablated": Intervention(ablated=frozenset({(name, 0), (name, 1)})),
        "dropout": Intervention(dropout=0.3, seed=7),
        "dropout in one": Intervention(dropout=0.3, only=only),
        "window": Intervention(window=3),
        "window in one": Intervention(window=2, mask="none", only=only),
        "no cap, bias or sinks": Intervention(cap=False, bias=False, sinks=False),
        "weights set by hand": Intervention(
            weights=frozenset({(name, 0, 3, 1, 0.0), (name, 1, 3, 1, 0.25)})
        ),
        "a number of the stream": Intervention(stream=frozenset({(name, 2, 1, 0.5)})),
        "parts of another run": Intervention(patch=_patch(model, text)),
    }


def _patch(model: Model, text: str) -> Patch:
    """A head, and a state of the stream where that is proven, from another run."""
    first, *_, last = model.attention_names
    parts: set[PatchPart] = {("head", last, 1)}
    if "stream" not in model.unproven:
        parts.add(("stream", first, 2))
    return Patch(model.name, text, frozenset(parts))


@cache
def on_device(name: str) -> tuple[Model, str, tuple[Any, ...], tuple[Any, ...], Crossings]:
    """A model there, a text, its tokens for each of the stacks, and what crosses."""
    if name.startswith("hub "):
        folder = str(families.saved(name.removeprefix("hub ")))
        model, text, words = load_model(folder, device="cpu"), HUB_TEXT, families.TARGET
        model.module.body.config.pad_token_id = (
            None  # to warn of padding, DeBERTa would read the ids
        )
    else:
        model = loaded.__wrapped__(name)
        text, words = sentence(model), target(model) or ""
    tokens = model.tokens(text)
    second = model.config.shape == "encoder-decoder"
    read = model._target_tokens(tokens, words, ()) if second else ()
    crossings = Crossings()
    return moved(model, crossings), text, tokens, read, crossings


def pass_there(name: str, recorder: Recorder) -> tuple[Trace, torch.Tensor, Crossings]:
    """A pass, from its ids to its trace, and what crossed."""
    model, text, tokens, read, crossings = on_device(name)
    crossings.clear()
    with device(crossings):
        recorder.hooks = from_other_run(model, recorder, tokens, read)
        recorder.patched = recorder.intervention.patch is not None
        with recording(recorder), torch.inference_mode():
            ended = model.module(*map(model.ids, filter(None, (tokens, read))))
            recorder.refusals = []  # asked when the pass is over
        trace = trace_of_pass(model, recorder, ended, tokens, read, text=text)
    return trace, ended, crossings


def tensors_of(recorder: Recorder) -> Iterator[torch.Tensor]:
    """Everything that a pass has recorded."""
    for records in (recorder.attention, recorder.norms, recorder.feed_forward):
        for record in records:
            for value in vars(record).values():
                yield from value.values() if isinstance(value, dict) else [value]
    for parts in (recorder.summands, recorder.tables):
        for named in parts.values():
            for value in named.values():
                yield value if isinstance(value, torch.Tensor) else value.made()
    for states in recorder.streams.values():
        yield from states


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in {*SHAPES, *THOROUGH} else pytest.mark.slow)
        for name in MODELS
    ],
)
def test_every_pass_runs_where_the_model_is_and_waits_for_nothing(name: str) -> None:
    model, text, *_ = on_device(name)
    known, thorough = interventions(model, text), name in THOROUGH
    explicit = ["none", "all hidden", "blocked", "dropout"] if thorough else ["none"]
    for said in [*(known if thorough else FEW), *(f"{said}, explicit" for said in explicit)]:
        intervention, stepwise = known[said.removesuffix(", explicit")], said.endswith("explicit")
        if intervention.stream and "stream" in model.unproven:
            continue
        level = "attention" if stepwise else "full"
        recorder = Recorder(intervention, level, stepwise, model.config.source)
        _, ended, crossings = pass_there(name, recorder)
        own = [one for one in crossings.all if name in BY_LIST and one.startswith("index ")]
        assert crossings.all == own, said
        assert ended.device == DEVICE, said
        recorded = [one for one in tensors_of(recorder) if isinstance(one, torch.Tensor)]
        assert {tensor.device for tensor in recorded} == {DEVICE}, said
        assert len(recorder.attention) == len(model.attention_names), said


@cases("name", ["gpt", "hub llama"])
def test_no_weight_or_table_is_left_behind_when_a_model_moves(name) -> None:
    module = (
        (
            load_model(str(families.saved("llama")), device="cpu")
            if name == "hub llama"
            else loaded.__wrapped__(name)
        )
        .on(DEVICE)
        .module
    )
    assert {tensor.device for tensor in module.parameters()} == {DEVICE}
    assert {tensor.device for tensor in module.buffers()} <= {DEVICE}
    assert module.embedding.tokens.weight.device == DEVICE
    table = getattr(module.embedding, "positions", None)
    assert table is None or table.weight.device == DEVICE
    assert module.output_matrix is None or module.output_matrix.device == DEVICE


PLANTED: dict[str, tuple[str, Callable[[AttentionCall], object]]] = {
    "a query left on the CPU": (
        "fed",
        lambda call: replace(call, query=torch.zeros(call.query.shape)),
    ),
    "a mask left on the CPU": (
        "fed",
        lambda call: replace(call, mask=cells(call).bool(), look_ahead=False),
    ),
    "a mask that comes by itself": (
        "fed",
        lambda call: replace(call, mask=cells(call).bool().to(DEVICE), look_ahead=False),
    ),
    "a list of heads": ("fed", lambda call: call.query[:, [0, 1]]),
    "a copy": ("copied", lambda call: call.query.cpu()),
    "a number": ("waited", lambda call: call.query.sum().item()),
    "a question": ("waited", lambda call: bool(call.query.isfinite().all())),
    "cells by a mask": ("waited", lambda call: call.query[call.query > 0]),
    "a comparison": ("waited", lambda call: torch.equal(call.query, call.query)),
}


def cells(call: AttentionCall) -> torch.Tensor:
    return torch.ones(call.query.shape[-2], call.key.shape[-2])


@cases("name, planted", product(["gpt", "hub llama"], PLANTED))
def test_what_crosses_or_waits_is_noticed(name, planted, monkeypatch: pytest.MonkeyPatch) -> None:
    from model.nn import attention

    on_device(name)  # loaded before the fault: what a load proves would notice it too
    fused = attention.fused
    kind, does = PLANTED[planted]

    def faulty(call: AttentionCall, dropout: float) -> torch.Tensor:
        made = does(call)
        return fused(made if isinstance(made, AttentionCall) else call, dropout)

    monkeypatch.setattr(attention, "fused", faulty)
    *_, crossings = pass_there(name, Recorder(level="attention"))
    assert getattr(crossings, kind)
    assert len(crossings.all) == len(getattr(crossings, kind))


@cases("where, name", product(DEVICES, ["gpt", "house-gpt", "hub llama", "hub bart"]))
def test_a_trace_says_which_device_its_pass_ran_on(where, name) -> None:
    if name.startswith("hub "):
        model = load_model(str(families.saved(name.removeprefix("hub "))), device=where)
        trace = model.trace(HUB_TEXT, families.TARGET if "bart" in name else None)
    else:
        model = loaded(name, where)
        trace = model.trace(sentence(model), target(model))
    place = next(iter(model.module.parameters())).device
    assert place.type == where
    assert trace.device == words_of(place)
    assert (trace.device == "the CPU") is (where == "cpu")


@cases("kind, other", [("cuda", "cuda:1"), ("mps", "mps")])
def test_auto_takes_the_graphics_processor_where_there_is_one_and_else_the_cpu(
    kind, other, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a GPU moving there fails: PyTorch says so, and so it was tried."""
    monkeypatch.delenv("ATTENTION_DEVICE", raising=False)
    for name in ("induction", str(families.saved("llama"))):
        for known in (torch.cuda, torch.backends.mps):
            monkeypatch.setattr(known, "is_available", lambda: False)
        assert load_model(name).device == torch.device("cpu")
        moved: list[torch.device] = []
        move = torch.nn.Module.to

        def noted(module: Any, place: Any, moved: Any = moved, move: Any = move) -> Any:
            moved.append(torch.device(place))
            return move(module, DEVICE if torch.device(place).type == kind else place)

        with monkeypatch.context() as patched:
            there = torch.cuda if kind == "cuda" else torch.backends.mps
            patched.setattr(there, "is_available", lambda: True)
            patched.setattr(torch.nn.Module, "to", noted)
            patched.setattr(torch.cuda, "get_device_name", lambda device: "a GPU")
            assert load_model(name).device == torch.device(kind)
            assert moved[-1] == torch.device(kind)
            assert words_of(torch.device(kind)) != "the CPU"
            monkeypatch.setenv("ATTENTION_DEVICE", other)
            assert load_model(name).device == torch.device(other)
            monkeypatch.setenv("ATTENTION_DEVICE", "cpu")
            assert load_model(name).device == torch.device("cpu")
            monkeypatch.delenv("ATTENTION_DEVICE")
