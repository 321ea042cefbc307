"""The code of the stages before the queries of a layer and after the outputs of its heads."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from model.analysis.stream.around_heads import AroundHeads
from model.analysis.stream.positions import sinusoidal
from model.code.check import within_weights
from model.code.script import stem
from model.snippets.layers import PositionCode, concatenation, joined, norm, with_positions
from model.snippets.script import TRACE_FILE
from model.snippets.snippet import Around, Stage, shape
from model.trace.records import Attention
from model.trace.trace import Trace

if TYPE_CHECKING:
    from torch import Tensor

    from model.run.model import Model

_SAME = 1e-5  # positions that are as the formula says


def around_heads(
    model: "Model",
    trace: Trace,
    attention: Attention,
    weights: Mapping[str, "Tensor"] | None = None,
) -> dict[Stage, Around]:
    """The code of those stages that this layer has. weights: of the model, by name; None where a file of them
    cannot be had."""
    around = AroundHeads(model, trace, attention)
    return dict([*_before(around), *_after(around, weights or {})])


def _before(around: AroundHeads) -> Iterator[tuple[Stage, Around]]:
    stack, parts, record = around.attention.stack, around.summands, around.norm
    if parts:
        sizes = parts["tokens"].shape
        by_formula = sinusoidal(*sizes)
        computed = bool(np.abs(by_formula - parts["positions"]).max() <= _SAME)
        kind: PositionCode = "sinusoidal" if computed else "table"
        names = {name: name for name in parts} | {"positions": "table"}
        given = [name for name in parts if not (computed and name == "positions")]
        reads = f"{', '.join(names[name] for name in given)} = " + ", ".join(
            f't["{name}"]' for name in given
        )
        yield (
            "positions",
            Around(
                with_positions(kind, list(parts), *sizes),
                (f't = load("{TRACE_FILE}", "summands/{stack}/")', reads),
                {names[name]: shape(*sizes) for name in given},
            ),
        )
    if record is not None:
        width = record.input.shape[1]
        shifts = around.model.config.shifts and record.kind == "layer"
        letters = ("gamma", "beta") if shifts else ("gamma",)
        reads = f"x, {', '.join(letters)} = " + ", ".join(
            f't["{name}"]' for name in ("input", *letters)
        )
        yield (
            "norm",
            Around(
                norm(record, shifts=shifts),
                (f't = load("{TRACE_FILE}", "norms/{record.name}/")', reads),
                {"x": shape(*record.input.shape)} | dict.fromkeys(letters, f"({width},)"),
            ),
        )


def _after(around: AroundHeads, weights: Mapping[str, "Tensor"]) -> Iterator[tuple[Stage, Around]]:
    attention, within = around.attention, within_weights(around.attention)
    ablated = list(attention.ablated)
    read = (
        f'output = load("{TRACE_FILE}", "attention/{attention.name}/")["output"]',
        *((f"output[{ablated}] = 0",) if ablated else ()),
    )
    given = {"output": shape(*attention.output.shape), "w": "(the layer's weights by name)"}
    yield "concatenated", Around(joined(attention), read, given)
    if f"{within}output.weight" in weights:
        bias = f"{within}output.bias" in weights
        code = concatenation(attention, around.model.config.d_model, bias=bias)
        maps = f'w = load("{stem(around.model)}.safetensors", "{within}")'
        yield "written", Around(code, (*read, maps), given)
