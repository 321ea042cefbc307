"""All stages of a layer in every style, and each as a script that runs alone."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from model.nn.places import within
from model.nn.stages import STAGES
from model.snippets.snippet import (
    LATER,
    CodeStage,
    Facts,
    LaterStage,
    Origin,
    Snippet,
    Style,
    Vector,
    shape,
)
from model.snippets.templates import stage_snippets, vectors
from model.system.border import at_border
from model.trace.records import Attention
from model.trace.trace import Trace

LONGEST = 40  # lines of a script
TRACE_FILE = "trace.safetensors"
LOADER = """\
import json
from pathlib import Path

import torch


def load(file, start=""):  # the tensors of a safetensors file whose names begin so
    data = bytearray(Path(file).read_bytes())
    size = 8 + int.from_bytes(data[:8], "little")
    listed = json.loads(data[8:size])
    same = json.loads(listed.pop("__metadata__", {}).get("trace", "{}")).get("same", {})
    found = {}
    for name, one in (listed | {name: listed[first] for name, first in same.items()}).items():
        if name.startswith(start):
            first, last = (size + offset for offset in one["data_offsets"])
            kind = {"F32": torch.float32, "BOOL": torch.bool}[one["dtype"]]
            tensor = torch.frombuffer(data[first:last], dtype=kind).view(one["shape"])
            found[name.removeprefix(start)] = tensor
    return found

""".splitlines()


@dataclass(frozen=True)
class LayerCode:
    """The code of one layer: its snippets, and what a script reads for each stage."""

    snippets: Mapping[CodeStage, Mapping[Style, Snippet]]
    reads: Mapping[CodeStage, tuple[str, ...]]
    shapes: Mapping[str, str]  # of what the lines are given
    origin: Origin

    @property
    def refusal(self) -> str:
        """Why there is no code for some stages; "" where nothing is said."""
        by_hand = "" if "weights" in self.snippets else "Weights of this layer were set by hand."
        return self.origin.refusal or by_hand

    def given(self, stage: CodeStage, style: Style) -> tuple[str, ...]:
        """What the lines of a stage read, with shapes."""
        vector, around = self.origin.vectors.get(_made_as(stage)), self.origin.around.get(stage)
        shapes = {**self.shapes, **({} if vector is None else _given_shapes(vector))}
        shapes |= {} if around is None else around.shapes
        names = self.snippets[stage][style].given
        return tuple(f"{name} {shapes[name]}" for name in names)

    def script(
        self, stage: CodeStage, style: Style, *, head: int, query: int, key: int, dimension: int = 0
    ) -> str:
        """At most 40 lines that need PyTorch and saved files only, and print the number of one cell.

        Args:
            head, query, key: of the cell, from 0; a stage without one of them does not read it.
            dimension: of a vector's number, from 0.

        Raises ValueError where there is no code for this stage, or none in this style: einsum and loops are
        those of attention's own stages, from the scores to the output.
        """
        if stage not in self.snippets:
            raise ValueError(self.refusal or f"There is no code for {stage!r}.")
        if style not in self.snippets[stage]:
            styles = " and ".join(self.snippets[stage])
            raise ValueError(f"The code of {stage!r} is written as {styles}, not as {style!r}.")
        chosen, steps = self.snippets[stage][style], []
        for before in chosen.after:
            steps += [line.code for line in self.before(before, style).lines]
        steps += [line.code for line in chosen.lines]
        cell = {"head": head, "query": query, "key": key, "dimension": dimension}
        return _written(self.reads[stage], steps, chosen.result, cell)

    def before(self, stage: CodeStage, style: Style) -> Snippet:
        """A stage before one of this style: loops follow on plain tensors."""
        return self.snippets[stage]["plain" if style == "loops" else style]


def lone_script(snippet: Snippet, reads: Sequence[str], cell: Mapping[str, int]) -> str:
    """The script of lines that follow on no others. reads: the lines that read from files what is given."""
    return _written(reads, [line.code for line in snippet.lines], snippet.result, cell)


def _written(
    reads: Sequence[str], steps: Sequence[str], result: str, cell: Mapping[str, int]
) -> str:
    loader = LOADER if reads else ["import torch", ""]
    lines = [*loader, *reads, *steps, f"print(float({result}))"]
    return "\n".join(filled(line, cell) for line in lines) + "\n"


def filled(code: str, cell: Mapping[str, int]) -> str:
    """Code with the numbers of the chosen cell in its slots."""
    return re.sub(r"@(\w+)@", lambda slot: str(cell[slot[1]]), code)


_NORMED: dict[CodeStage, CodeStage] = {"query": "query_norm", "key": "key_norm"}


def code_of(
    attention: Attention,
    origin: Origin | None = None,
    *,
    later: tuple[LaterStage, ...] | None = None,
) -> LayerCode:
    """The code of a layer. later: the stages between the scaled scores and the weights; None: the layer's
    own, and a mask."""
    origin = origin or Origin()
    facts = Facts.of(attention, origin.intervention, later)
    snippets: dict[CodeStage, Mapping[Style, Snippet]] = {
        stage: vectors(facts, vector, stage) for stage, vector in origin.vectors.items()
    }
    snippets |= {stage: around.snippets for stage, around in origin.around.items()}
    turning = origin.vectors.get("query")
    if turning is not None and turning.turned:  # its last lines turn the queries
        snippets["positions"] = snippets["query"]
    for side, stage in _NORMED.items():  # the same, up to the norm
        made = origin.vectors.get(side)
        if made is not None and made.norm is not None:
            snippets[stage] = vectors(facts, replace(made, turned=0), side)
    stages: tuple[CodeStage, ...] = ("scores", "scaled", *facts.later, "weights", "output")
    by_hand = ("weights", "output") if attention.weights_set else ()
    for stage, by_style in stage_snippets(facts, stages).items():
        if stage not in by_hand:
            snippets[stage] = by_style
    reads = {stage: _reads(facts, stage, origin) for stage in snippets}
    return LayerCode(snippets, reads, _shapes(facts), origin)


def _shapes(facts: Facts) -> dict[str, str]:
    """Of what the stages of attention read."""
    scores = ("scores", "scaled", *LATER, "weights")
    cells = dict.fromkeys(scores, facts.all_cells)
    return cells | {
        "q": shape(facts.heads, facts.queries, facts.width),
        "k": shape(facts.groups, facts.keys, facts.width),
        "v": shape(facts.groups, facts.keys, facts.value_width),
        "mask": shape(*facts.mask_shape) if facts.mask_shape else "",
        **{field: str(np.shape(value)) for field, value in facts.needs.items()},
    }


def _given_shapes(vector: Vector) -> dict[str, str]:
    return {
        "x": shape(vector.rows, vector.d_model),
        "w": "(the layer's weights by name)",
        "angles": shape(vector.rows, vector.turned // 2),
    }


def _made_as(stage: CodeStage) -> CodeStage:
    """Norms of queries and keys, and rotary positions, are steps on the way to them: the stage at its end."""
    if stage == "key_norm":
        return "key"
    return "query" if stage in ("positions", "query_norm") else stage


def _reads(facts: Facts, stage: CodeStage, origin: Origin) -> tuple[str, ...]:
    """The lines of a script that read what its steps start from."""
    if stage in origin.around:
        return origin.around[stage].read
    if (vector := origin.vectors.get(_made_as(stage))) is not None:
        return vector.read
    read = f't = load("{TRACE_FILE}", "attention/{facts.name}/")'
    mask = ("mask",) if facts.mask == "own" else ()
    more = [stage.field for stage in STAGES if stage.is_array and stage.field in facts.needs]
    if more:
        names = (*mask, *more)
        listed = ", ".join(f'"{name}"' for name in ("query", "key", "value", *names))
        return (read, f"q, k, v, {', '.join(names)} = (t[name] for name in ({listed}))")
    vectors = 'q, k, v = t["query"], t["key"], t["value"]'
    return (read, vectors, 'mask = t["mask"]') if mask else (read, vectors)


@at_border
def script(
    trace: Trace,
    place: str | int,
    *,
    head: int,
    stage: CodeStage,
    query: int,
    key: int,
    style: Style = "plain",
    dimension: int = 0,
    origin: Origin | None = None,
) -> str:
    """A script that prints one number of a trace, with PyTorch and the saved trace only.

    Args:
        place: the name of the sub-layer, or the number of its layer.
        head, query, key: of the cell, from 0; negative ones count from the end.
        dimension: of a vector's number, from 0.
        origin: where queries, keys and values are to be computed too, which needs the saved weights; None:
            they are read.

    Raises ValueError for a stage that has no code.

    >>> from model.code import script
    >>> trace.save("trace.safetensors")
    >>> lines = script(trace, "decoder.1.self", head=7, stage="weights", query=12, key=1)
    >>> len(lines.splitlines()) <= 40, "softmax" in lines or "exp" in lines
    (True, True)
    """
    origin = origin or Origin(trace.intervention)
    attention = trace.find(place)
    head, query, key = (
        within(number, count, f"{attention.name} has {them}")
        for number, count, them in zip(
            (head, query, key), attention.sizes, ("heads", "queries", "keys"), strict=True
        )
    )
    code = code_of(attention, origin)
    return code.script(stage, style, head=head, query=query, key=key, dimension=dimension)
