"""What a chat may ask of a model and a text, and the numbers that answer, each beside its check."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from model.download.entries import is_on_disk
from model.loading.registry import hub_models, models, silent
from model.nn.intervention import Intervention
from model.serving.engine import Engine, Request
from model.trace.records import Attention
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.analysis.findings import Finding
    from model.run.model import Model

LONGEST_TEXT = 2_000  # characters
LONGEST_SCAN = 45  # seconds: a program for chats waits a minute
MOST_KEYS = 10  # of a row, the largest weights
MOST_PARTS = 10  # of a score, the largest parts
DIGITS = 6  # of a number: float32 has seven


@dataclass(frozen=True)
class TokenPlace:
    """A token and its position, counted from 0."""

    position: int
    token: str


@dataclass(frozen=True)
class KeyWeight(TokenPlace):
    """A token that is looked at, and the weight that it gets."""

    weight: float


@dataclass(frozen=True)
class RowOfWeights:
    """What one token attends to in one head. keys: those with the largest weights, the largest first.
    others: the sum of the other weights of the row. layers: each layer of the model with its number of
    heads. check: how far the recomputed outputs are from the recorded ones, at most."""

    model: str
    layer: str
    head: int
    query: TokenPlace
    keys: tuple[KeyWeight, ...]
    others: float
    layers: dict[str, int]
    check: float


@dataclass(frozen=True)
class PartOfScore:
    """What one part of the model adds to a score with what it wrote into the query, another with what it
    wrote into the key."""

    query_part: str
    key_part: str
    value: float


@dataclass(frozen=True)
class SplitScore:
    """A score before scaling, as the sum of its parts. parts: the largest, by their size. others: the sum of
    all other parts. recorded: the score that the model computed. check: how far the sum is from it."""

    model: str
    layer: str
    head: int
    query: TokenPlace
    key: TokenPlace
    parts: tuple[PartOfScore, ...]
    others: float
    total: float
    recorded: float
    check: float


@dataclass(frozen=True)
class Remark:
    """One remarkable thing of a text. value: the number in the sentence. check: how far a second way to
    compute it differs."""

    sentence: str
    value: float
    check: float


@dataclass(frozen=True)
class RunDifference:
    """The first stage at which two runs differ beyond rounding, at the cell where they lie furthest apart.

    head: None where the stage is of all. row, column: the query and the key of scores and weights, the token
    and the dimension of vectors. rounding: how far two equal computations may lie apart there. cause: what
    explains the difference, found by trying; None where it is not known. All but the sentence are None where
    nothing that was compared differs, though not all could be. not_compared: the stages that could not be."""

    sentence: str
    stage: str | None
    place: str | None
    head: int | None
    row: int | None
    column: int | None
    first: float | None
    second: float | None
    difference: float | None
    rounding: float | None
    cause: str | None
    not_compared: tuple[str, ...]


@dataclass(frozen=True)
class TwoRuns:
    """Two runs of one text, stage by stage. first_difference: None where they agree to rounding to the end.
    check: how far the recomputed outputs of both runs are from the recorded ones, at most."""

    model: str
    other_model: str
    first_difference: RunDifference | None
    check: float


def on_this_computer() -> dict[str, str]:
    """The listed models whose files are here: their names, as they are asked for and as they are loaded."""
    listed = ((name, models.found(name)) for name in (*models, *hub_models))
    return {name: name for name, entry in listed if entry is not None and is_on_disk(entry)}


class Answers:
    """The models that a chat may use, and their runs, which an engine keeps within its bounds.

    models: the names that may be asked for, each with what `load_model` takes for it.
    """

    def __init__(self, models: Mapping[str, str], engine: Engine | None = None) -> None:
        self.models = dict(models)
        self._engine = engine or Engine()

    def run(
        self, model: str, text: str, intervention: Intervention | None = None
    ) -> "tuple[Model, Trace]":
        """A model, and its pass over a text. Raises ValueError for a model that may not be asked for, for a
        text of more than LONGEST_TEXT characters, and as `Engine.trace`."""
        if model not in self.models:
            raise ValueError(
                f"There is no model {model[:60]!r} in this chat. The models are {', '.join(self.models)}."
            )
        if len(text) > LONGEST_TEXT:
            raise ValueError(
                f"The text has {len(text):,} characters; at most {LONGEST_TEXT:,} are read."
            )
        name = self.models[model]
        request = Request(name, text, intervention=intervention or Intervention())
        trace = self._engine.trace(request, lambda place: None)
        return self._engine.model(name, silent), trace

    def weights(
        self, model: str, text: str, layer: str | int | None, head: int, query: int | None
    ) -> RowOfWeights:
        """The largest weights of a row. layer None: the first one. query None: the last token. Raises
        ValueError as `run`, and for a layer, a head or a query that is not there."""
        _, trace = self.run(model, text)
        attention = trace.attention[0] if layer is None else trace.find(layer)
        queries = trace.queries_of(attention)
        query = len(queries) - 1 if query is None else query
        _require(attention, head=head, query=query)
        row = attention.weights(head)[query]
        largest = np.argsort(-row, kind="stable")[:MOST_KEYS]
        keys = trace.keys_of(attention)
        return RowOfWeights(
            model=model,
            layer=attention.name,
            head=head,
            query=TokenPlace(query, queries[query].text),
            keys=tuple(KeyWeight(int(at), keys[at].text, rounded(row[at])) for at in largest),
            others=rounded(np.delete(row, largest).sum()),
            layers={one.name: one.heads for one in trace.attention},
            check=rounded(trace.check()),
        )

    def score_parts(
        self, model: str, text: str, layer: str | int, head: int, query: int, key: int
    ) -> SplitScore:
        """The largest parts of a score. Raises ValueError as `run` and `model.analysis.score_parts`."""
        from model.analysis import score_parts  # imports torch

        run, trace = self.run(model, text)
        attention = trace.find(layer)
        with self._engine.turn():
            split = score_parts(run, trace, attention.name, head, query, key)
        largest = np.argsort(-np.abs(split.values), axis=None, kind="stable")[:MOST_PARTS]
        columns = len(split.key_parts)
        return SplitScore(
            model=model,
            layer=attention.name,
            head=head,
            query=TokenPlace(query, trace.queries_of(attention)[query].text),
            key=TokenPlace(key, trace.keys_of(attention)[key].text),
            parts=tuple(
                PartOfScore(
                    split.query_parts[at // columns],
                    split.key_parts[at % columns],
                    rounded(float(split.values.flat[at])),
                )
                for at in map(int, largest)
            ),
            others=rounded(np.delete(split.values, largest).sum()),
            total=rounded(split.total),
            recorded=rounded(split.recorded),
            check=rounded(abs(split.total - split.recorded)),
        )

    def difference(self, text: str, models: tuple[str, str], intervention: Intervention) -> TwoRuns:
        """Where the run of the second model under an intervention leaves that of the first one, unchanged.
        Raises ValueError as `run` and `model.analysis.first_difference`, and where both runs are the same."""
        from model.analysis import first_difference  # imports torch

        first, second = models
        if first == second and not intervention.changes:
            raise ValueError("Both runs are the same. Name another model, or change one of them.")
        run, trace = self.run(first, text)
        _, other = self.run(second, text, intervention)
        with self._engine.turn():
            found = first_difference(trace, other, model=run)
        return TwoRuns(
            model=first,
            other_model=second,
            first_difference=None
            if found is None
            else RunDifference(
                sentence=found.sentence,
                stage=found.stage,
                place=found.place,
                head=found.head,
                row=None if found.cell is None else found.cell[0],
                column=None if found.cell is None else found.cell[1],
                first=_rounded(found.first),
                second=_rounded(found.second),
                difference=_rounded(found.difference),
                rounding=_rounded(found.rounding),
                cause=found.cause,
                not_compared=found.not_compared,
            ),
            check=rounded(max(trace.check(), other.check())),
        )

    def stands_out(self, model: str, text: str) -> tuple[Remark, ...]:
        """At most ten findings of `model.analysis.scan`. Raises ValueError as `run` and `scan`, and where it
        takes longer than LONGEST_SCAN."""
        from model.analysis.findings import scanning  # imports torch

        run, trace = self.run(model, text)
        end = time.monotonic() + LONGEST_SCAN
        findings: tuple[Finding, ...] = ()
        for scan in scanning(run, trace, lambda: self._engine.turn()):
            if scan.done < scan.total and time.monotonic() > end:
                raise ValueError(
                    f"In {LONGEST_SCAN} seconds {scan.done} of {scan.total} heads were tried. Take a shorter "
                    "text or a smaller model."
                )
            findings = scan.findings
        return tuple(
            Remark(one.sentence, rounded(one.value), rounded(one.check)) for one in findings
        )


def _require(attention: Attention, **asked: int) -> None:
    """Raises ValueError for a head or a query that the layer does not have."""
    heads, queries, _ = attention.sizes
    for what, count in (("head", heads), ("query", queries)):
        if not 0 <= asked[what] < count:
            raise ValueError(f"{attention.name} has {what} 0 to {count - 1}, not {asked[what]}.")


def rounded(number: float) -> float:
    """A number with as many digits as an answer gives."""
    return float(f"{number:.{DIGITS}g}")


def _rounded(number: float | None) -> float | None:
    return None if number is None else rounded(number)
