"""The code of what stands around attention gives the numbers of the trace, in each style."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from model import Model, Trace
from model.analysis.heads.contributions import merged
from model.analysis.stream.positions import learned
from model.snippets import Snippet, filled
from model.snippets.layers import Snippets, concatenation, norm, positions
from model.trace.arrays import Array
from tests.model import hub_models, tiny
from tests.model.snippets.snippet_cases import TEXTS, Cell, run_lines

CLOSE = 1e-5  # of the largest number, or of 1
FAMILIES = ("gpt2", "llama", "qwen3", "gemma", "gpt_neox", "opt", "bart", "marian")
Case = tuple[Snippets, dict[str, Any], Array]  # the code, what it is given, the trace's numbers


def traces() -> Iterator[tuple[str, Model, Trace]]:
    for name, text in TEXTS.items():
        model = tiny.loaded(name)
        yield name, model, model.trace(text)
    for name in FAMILIES:
        model = hub_models.loaded(name)
        yield name, model, model.trace(hub_models.TEXT)


def cases(model: Model, trace: Trace) -> Iterator[Case]:
    config = model.config
    for attention in (trace.attention[0], trace.attention[-1]):
        output = model.layer(attention.name).output
        weights = {"output.weight": output.weight.detach()}
        if output.bias is not None:
            weights["output.bias"] = output.bias.detach()
        found = merged(model, trace, attention.name)
        code = concatenation(attention, config.d_model, bias=output.bias is not None)
        yield code, {"output": torch.tensor(found.outputs), "w": weights}, found.recorded
    for record in (trace.norms[0], trace.norms[-1]):
        given = {"x": record.input, "gamma": record.gamma, "beta": record.beta}
        tensors = {name: torch.tensor(array) for name, array in given.items()}
        yield norm(record, shifts=config.shifts), tensors, record.output
    used, table = trace.positions, learned(model)
    if used is None:
        return
    if table is not None:
        yield positions("table", *used.shape), {"table": torch.tensor(np.array(table))}, used
    elif trace.angles is not None:
        code = positions("rotary", len(used), config.rotary_dim, base=config.rotary_base)
        yield code, {}, used
    elif model.name in TEXTS:  # the columns of the hub's Marian hold all sines first
        yield positions("sinusoidal", *used.shape), {}, used


def ran(snippet: Snippet, names: dict[str, Any], cell: Cell) -> float:
    """The number that the lines compute."""
    known = {"torch": torch} | names
    run_lines(snippet, known, cell, loops=False)
    return float(eval(filled(snippet.result, cell), known))


def test_every_snippet_gives_the_number_of_the_trace() -> None:
    worst, kinds = 0.0, set()
    for name, model, trace in traces():
        for snippets, names, own in cases(model, trace):
            size = max(1.0, float(np.abs(own).max()))
            row, column = len(own) - 1, min(5, own.shape[1] - 1)
            cell = {"query": row, "dimension": column}
            for style, snippet in snippets.items():
                off = abs(ran(snippet, names, cell) - own[row, column]) / size
                assert off <= CLOSE, (name, style, snippet)
                worst = max(worst, off)
                kinds.add((style, snippet.result))
    print(f"the worst: {worst:.1e}")
    assert {style for style, _ in kinds} == {"plain", "torch"}
    assert {result.split("[")[0] for _, result in kinds} == {
        "written", "y", "added", "angles",
    }  # fmt: skip
