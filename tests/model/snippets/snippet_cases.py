"""The layers whose code is tried: of every kind of model, and under every intervention."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from model import Intervention, Model
from model.analysis.attribution.head_maps import Rotation, read_by
from model.analysis.stream.stream import contributions, embedding_norm
from model.code.check import NamedWeights
from model.nn.config import Stack
from model.snippets import CodeStage, LaterStage, LayerCode, Snippet, Style, filled
from model.snippets.script import LOADER
from model.trace.arrays import Array
from model.trace.records import Attention
from model.trace.trace import Trace
from tests.model import tiny
from tests.model.hub_models import FAMILIES, TEXT, loaded

Case = tuple[Model, Trace, Attention]
Cell = Mapping[str, int]
SHAPE = re.compile(r"\([\d, ]+\)")
RESULT = re.compile(r"(?:_, )?(\w+)(?:, \w+)* = ")  # the name that a line assigns
AROUND = (
    "positions",
    "norm",
    "query_norm",
    "key_norm",
    "concatenated",
    "written",
)  # stages around the heads
CLOSE = 1e-5  # of the largest number of the stage, or of 1
TEXTS = {
    "house-gpt": "Tom Hill saw a red ball. Anna gave the ball to Tom",
    "stories": "Tom Hill saw a red ball",
    "induction": "q f m b q f m b q",
    "translate-en-fr": "the black cat sees the dog",
    "minilm": "The animal was too tired",
    "notes-einsum": "The cat sat on the mat",
    "notes-second-class": "The cat sat on the mat",
    "notes-two-layers": "The cat sat on the mat",
    "all-stages": "Tom Hill saw a red ball. Anna gave the ball to Tom",
    "distance-buckets": "Tom Hill saw a red ball",
}
FAMILY_NAMES = ("llama", "mistral", "gpt_neox", "phi", "qwen3", "gemma", "bart", "opt")
CHANGES: dict[str, dict[str, Any]] = {
    "not scaled": {"scale": 1.0},
    "a factor below zero": {"scale": -0.3},
    "no mask": {"mask": "none"},
    "padding": {"hidden": frozenset({0, 3})},
    "padding first": {"hidden": frozenset({0})},  # the first row then attends to nothing
    "cut edges": {"blocked": frozenset({(5, 2), (6, 2)})},
    "a mask value": {"fill": -5.0},
    "a mask value and no scaling": {"fill": 0.0, "scale": 1.0},
    "dropout": {"dropout": 0.3, "seed": 7},
    "dropout and padding": {"dropout": 0.3, "hidden": frozenset({0})},
    "no positions": {"positions": False},
    "an ablated head": {"ablated": frozenset({("decoder.1.self", 2)})},
    "two changes in one layer": {
        "scale": 0.5,
        "mask": "none",
        "only": frozenset({"decoder.1.self"}),
    },
}


# Of a layer with cap, bias, sink and window.
NEW_CHANGES: dict[str, dict[str, Any]] = {
    "no cap": {"cap": False},
    "no bias": {"bias": False},
    "no sinks": {"sinks": False},
    "dropout": {"dropout": 0.3},
    "a mask value": {"fill": -5.0},
    "padding": {"hidden": frozenset({0})},
}


def own_cases() -> Iterator[tuple[str, Case]]:
    """A layer of each kind of every shipped model, of small ones of the hub's families."""
    for name, text in TEXTS.items():
        model = tiny.loaded(name)
        yield from _layers(name, model, model.trace(text))
    for name in FAMILY_NAMES:
        model = loaded(name)
        assert name in FAMILIES
        yield from _layers(name, model, model.trace(TEXT))


def changed_cases() -> Iterator[tuple[str, Case]]:
    for name in ("house-gpt", "minilm"):
        model = tiny.loaded(name)
        for change, fields in CHANGES.items():
            if model.config.shape == "encoder" and ("only" in fields or "ablated" in fields):
                continue
            trace = model.trace(TEXTS[name], intervention=Intervention(**fields))
            yield f"{name}, {change}", (model, trace, trace.attention[1])
    grouped = loaded("llama")
    later = tiny.loaded("all-stages")
    for name, fields in NEW_CHANGES.items():
        trace = later.trace(TEXTS["all-stages"], intervention=Intervention(**fields))
        yield f"all-stages, {name}", (later, trace, trace.attention[2])
    for change in ("dropout", "a mask value", "no positions", "padding"):
        intervention = Intervention(**CHANGES[change])
        trace = grouped.trace(TEXT, intervention=intervention)
        yield f"llama, {change}", (grouped, trace, trace.attention[1])


def _layers(name: str, model: Model, trace: Trace) -> Iterator[tuple[str, Case]]:
    """The last layer of each kind: its input has gone through the others."""
    last = {attention.kind: attention for attention in trace.attention}
    for attention in last.values():
        yield f"{name} {attention.name}", (model, trace, attention)


def later_stages(attention: Attention) -> tuple[LaterStage, ...]:
    """Those between the scaled scores and the weights."""
    has: dict[LaterStage, bool] = {
        "capped": attention.cap is not None,
        "biased": attention.bias is not None,
        "masked": attention.kind == "causal" or attention.mask is not None,
    }
    return tuple(name for name, is_there in has.items() if is_there)


def shown(case: Case, stage: CodeStage, cell: Cell) -> float:
    """The number that the page shows in a cell."""
    attention, head, query, key = case[2], cell["head"], cell["query"], cell["key"]
    if stage in AROUND:
        row = key if stage == "key_norm" else query
        return float(around(case, stage, head)[row, cell["dimension"]])
    if stage in ("query", "key", "value", "output"):
        vectors = attention.context(head) if stage == "output" else getattr(attention, stage)[head]
        return float(vectors[key if stage in ("key", "value") else query, cell["dimension"]])
    return float(getattr(attention, stage)(head)[query, key])


def around(case: Case, stage: CodeStage, head: int) -> Array:
    """(token, dimension): what the pass itself recorded of a stage around the heads."""
    model, trace, attention = case
    if stage == "norm":
        return read_by(model, trace, attention, "query")
    if stage in ("query_norm", "key_norm"):  # turned back by the angles of their positions
        angles = model.module.embedding.angles(
            len(trace.queries_of(attention)), torch.device("cpu")
        )
        turn = Rotation(-angles.double().numpy(), model.config.rotary_pairs)
        side = stage.removesuffix("_norm")
        vectors = getattr(attention, side)[head].astype(np.float64)
        return turn.of(vectors, np.arange(len(vectors))).astype(np.float32)
    if stage == "positions":
        if "positions" not in trace.summands[attention.stack]:
            return attention.query[head]
        if attention.layer == 0 and attention.kind != "cross":
            return started_from(trace, attention.stack)
        read = read_by(model, trace, attention, "query")
        same = (norm for norm in trace.norms if norm.output.shape == read.shape)
        return next((norm.input for norm in same if np.allclose(norm.output, read)), read)
    if stage == "written":
        parts = contributions(model, trace, attention.stack)
        return next(part.added for part in parts if part.name == attention.name)
    kept = np.array([head not in attention.ablated for head in range(attention.heads)])
    return np.concatenate(attention.output * kept[:, None, None], axis=-1)


def started_from(trace: Trace, stack: Stack) -> Array:
    """(token, dimension): the first state of a stack, or what the norm before it reads."""
    norm = embedding_norm(trace, stack)
    return trace.residual[stack][0] if norm is None else norm.input


def unit(case: Case, stage: CodeStage, head: int) -> float:
    """What a difference is measured by: the largest number of the stage, at least 1; of what was added to the
    stream, the largest of the stream, from which it is taken as a difference."""
    _, trace, attention = case
    if stage == "written":
        return max(1.0, *(float(np.abs(state).max()) for state in trace.residual[attention.stack]))
    if stage in AROUND:
        return max(1.0, float(np.abs(around(case, stage, head)).max()))
    if stage in ("query", "key", "value", "output"):
        numbers = getattr(attention, stage)[head]
    else:
        numbers = getattr(attention, stage)(head)
    return max(1.0, float(np.abs(numbers[np.isfinite(numbers)]).max()))


def chosen_cells(attention: Attention) -> list[dict[str, int]]:
    """A cell in the middle; and in the upper right corner, which a look-ahead mask hides."""
    queries, keys = attention.query.shape[1], attention.key.shape[1]
    middle = {"head": attention.heads - 1, "query": queries - 2, "key": min(2, keys - 1)}
    corner = {"head": min(1, attention.heads - 1), "query": 0, "key": keys - 1}
    return [middle | {"dimension": 3}, corner | {"dimension": attention.value.shape[-1] - 1}]


def weights_of(case: Case) -> dict[str, torch.Tensor]:
    """The weights of one attention, by their names in the file of all."""
    model, _, attention = case
    kind = "cross" if attention.kind == "cross" else "self"
    within = f"{attention.stack}.blocks.{attention.layer}.{kind}_attention."
    named = model.module.named_weights().items()
    return {name: weight.detach() for name, weight in named if name.startswith(within)}


def names_of(case: Case, weights: NamedWeights, x: torch.Tensor) -> dict[str, Any]:
    """What a reader is told is given: of the trace's own arrays."""
    _, trace, attention = case
    query, key, value = (torch.tensor(array) for array in attention.vectors)
    own = {".".join(name.split(".")[4:]): weight for name, weight in weights.items()}
    mask = None if attention.mask is None else torch.tensor(attention.mask)
    angles = None if trace.angles is None else torch.tensor(trace.angles)
    names = {"torch": torch, "q": query, "k": key, "v": value, "mask": mask, "w": own}
    more = {
        name: torch.tensor(array)
        for name, array in {"bias": attention.bias, "sinks": attention.sinks}.items()
        if array is not None
    }
    return names | {"angles": angles, "x": x} | more


def run(
    code: LayerCode, names: dict[str, Any], stage: CodeStage, style: Style, cell: Cell
) -> float:
    """Runs the lines of a stage, after those of the stages before it, and reads the chosen cell. On the way
    it holds each shape that stands beside a line against that of its result. What stages around the heads
    start from is read from the saved files."""
    chosen, known = code.snippets[stage][style], dict(names)
    if stage in code.origin.around:
        known = {}
        exec("\n".join([*LOADER, *code.reads[stage]]), known)
    for snippet in (*(code.before(before, style) for before in chosen.after), chosen):
        run_lines(snippet, known, cell, loops=style == "loops" and snippet is chosen)
    return float(eval(filled(chosen.result, cell), known))


def run_lines(snippet: Snippet, known: dict[str, Any], cell: Cell, *, loops: bool) -> None:
    """Runs the lines with the names that are known. Where they are no loops, the shape that stands beside a
    line is held against that of its result."""
    if loops:
        exec(filled("\n".join(line.code for line in snippet.lines), cell), known)
        return
    for line in snippet.lines:
        exec(filled(line.code, cell), known)
        stated, result = SHAPE.findall(line.beside), RESULT.match(line.code)
        if stated and result:
            assert stated[-1] == str(tuple(known[result[1]].shape)), line
