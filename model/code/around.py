"""The code of the stages before the queries of a layer and after the outputs of its heads."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from model.analysis.stream.around_heads import AroundHeads
from model.analysis.stream.positions import sinusoidal
from model.code.check import within_weights
from model.code.script import stem
from model.nn.positions import PositionCode
from model.snippets.layers import concatenation, joined, norm, with_positions
from model.snippets.script import TRACE_FILE
from model.snippets.snippet import Around, CodeStage, shape
from model.trace.records import Attention, NormRecord
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
) -> dict[CodeStage, Around]:
    """The code of those stages that this layer has.

    Args:
        trace, attention: a run of the model, and the sub-layer of it.
        weights: of the model, by name; None where a file of them cannot be had.
    """
    around = AroundHeads(model, trace, attention)
    return dict([*_before(around), *_after(around, weights or {})])


def _before(around: AroundHeads) -> Iterator[tuple[CodeStage, Around]]:
    stack, parts, record = around.attention.stack, around.summands, around.norm
    if parts and around.is_first:
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
        shifts = around.model.config.shifts and record.law.shifts
        letters = ("gamma", "beta") if shifts else ("gamma",)
        yield (
            "norm",
            Around(
                norm(record, shifts=shifts),
                norm_file_reads(record, shifts=shifts),
                {"x": shape(*record.input.shape)} | dict.fromkeys(letters, f"({width},)"),
            ),
        )


def _after(
    around: AroundHeads, weights: Mapping[str, "Tensor"]
) -> Iterator[tuple[CodeStage, Around]]:
    attention, within = around.attention, within_weights(around.attention)
    read = output_reads(attention)
    given = {"output": shape(*attention.output.shape), "w": "(the layer's weights by name)"}
    yield "concatenated", Around(joined(attention), read, given)
    if f"{within}output.weight" in weights:
        bias = f"{within}output.bias" in weights
        code = concatenation(attention, around.model.config.d_model, bias=bias)
        yield "written", Around(code, (*read, map_reads(around.model, attention)), given)


def norm_file_reads(record: NormRecord, *, shifts: bool) -> tuple[str, ...]:
    """The lines of a script that read the input of a norm and what it has learned."""
    letters = ("gamma", "beta") if shifts else ("gamma",)
    reads = ", ".join(f't["{name}"]' for name in ("input", *letters))
    file = f't = load("{TRACE_FILE}", "norms/{record.name}/")'
    return file, f"x, {', '.join(letters)} = {reads}"


def output_reads(attention: Attention) -> tuple[str, ...]:
    """The lines of a script that read the outputs of the heads, those that are left out as zeros."""
    ablated = list(attention.ablated)
    file = f'output = load("{TRACE_FILE}", "attention/{attention.name}/")["output"]'
    return (file, f"output[{ablated}] = 0") if ablated else (file,)


def map_reads(model: "Model", attention: Attention) -> str:
    """The line of a script that reads the weights of a sub-layer."""
    return f'w = load("{stem(model)}.safetensors", "{within_weights(attention)}")'
