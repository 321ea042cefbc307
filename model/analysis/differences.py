"""The first number by which two runs of one text differ beyond rounding, and what explains it.

The stages of both are laid side by side in the order of execution: embedding, positions, then layer by layer
norm, query, key, value, scores, mask, weights, output, stream and feed-forward, last the logits.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, get_args

import pandas as pd

from model.analysis.difference_causes import ComparedStage, cause_of
from model.analysis.stage_comparison import OUTPUT, SideBySide, StageComparison
from model.nn.places import Place
from model.system.border import at_border
from model.system.words import Words
from model.trace.trace import Trace
from model.trace.unproven import proven

if TYPE_CHECKING:
    from model.run.model import Model

say = Words("analysis.differences")


@dataclass(frozen=True, eq=False)
class FirstDifference:
    """The first stage, among those that were compared, at which two runs lie apart beyond rounding.

    stage, place: which, by the first run's names; "rotary" where positions turn queries or keys otherwise.
    All but the last two are None where nothing that was compared differs, though not all could be.
    head: counted from 0; None where it is of all. cell: (query, key) of scores and weights, (token,
    dimension) of vectors. first, second: the two numbers. rounding: how far two equal computations may lie
    apart there.
    cause: the one mistake, of those that were tried, that gives the second run's numbers; None: not known.
    compared: the stages that were compared, before this one and after it. not_compared: those that could not
    be; "norm of decoder.final.norm" where that is so in some places only.

    >>> from model import Intervention
    >>> from model.analysis import first_difference
    >>> not_scaled = model.trace(trace.text, intervention=Intervention(scale=1.0))
    >>> parting = first_difference(trace, not_scaled)
    >>> assert parting  # None where nothing of the two could be compared otherwise
    >>> parting.sentence
    'The first number that differs is of the stage “scaled” of decoder.0.self, head 0, at 4, 4: ...'
    >>> parting.compared[:4], parting.not_compared, parting.may_begin_earlier
    (('embedding', 'positions', 'norm', 'query'), ('feed-forward',), False)
    """

    stage: ComparedStage | None
    place: str | None
    head: int | None
    cell: tuple[int, int] | None
    first: float | None
    second: float | None
    rounding: float | None
    cause: str | None
    compared: tuple[str, ...]
    not_compared: tuple[str, ...]
    comparison: StageComparison | None = field(default=None, repr=False)

    @property
    def difference(self) -> float | None:
        """|second − first|"""
        return None if self.comparison is None else self.comparison.difference

    @property
    def may_begin_earlier(self) -> bool:
        """Whether the runs may part before, at a stage that was not compared. Logits and the last norm come
        after all others, and what a feed-forward does is in the stream."""
        late = ("logits", *(["feed-forward"] if "stream" in self.compared else []))
        return any(
            not name.startswith(late) and not name.endswith("final.norm")
            for name in self.not_compared
        )

    @property
    def sentence(self) -> str:
        """In words: where, how much, why, and what was not compared."""
        lacks = f" Not compared: {', '.join(self.not_compared)}." if self.not_compared else ""
        at = self.comparison
        if at is None:
            return say("number_among_compared", lacks=lacks)
        of = "" if at.head is None else f", head {at.head}"
        among = say("among_compared") if self.may_begin_earlier else ""
        why = f"Cause: {self.cause}." if self.cause else say("cause_not_known")
        return say(
            "first_number_differs",
            among=among,
            stage=self.stage,
            place=at.place,
            of=of,
            first_cell=at.cell[0],
            cell=at.cell[1],
            first=at.first,
            second=at.second,
            difference=at.difference,
            rounding=at.rounding,
            why=why,
            lacks=lacks,
        )


@dataclass(frozen=True, eq=False)
class _Coverage:
    """What of two runs was compared: what `SideBySide.stages` yielded, and what only one run has, or a run
    says that it cannot prove."""

    by_place: dict[tuple[ComparedStage, str], bool]

    @classmethod
    def of(cls, runs: SideBySide) -> "_Coverage":
        """After `stages` has ended."""
        covered, both = dict(runs.covered), (runs.a, runs.b)
        unproven = {*runs.a.unproven, *runs.b.unproven}
        states = [
            name for (stage, name), is_there in covered.items() if stage == "stream" and is_there
        ]
        parts = [name for name in states if Place.named(name).layer is not None]
        feeds = [name for name in parts if Place.named(name).kind == "feed_forward"]
        has_none = (parts and not feeds) or (runs.a.config is not None and not runs.a.config.d_mlp)
        norms = [norm.name for run in both for norm in proven(run.norms)]
        hidden = [one.name for run in both for one in proven(run.feed_forward)]
        hidden += [name for run in both for name in run.written]
        expected: dict[ComparedStage, list[str]] = {
            "norm": norms or [""] * ("norms" in unproven),
            "feed-forward": hidden or feeds or [""] * ("feed_forward" in unproven and not has_none),
        }
        for stage, names in expected.items():
            for name in names:
                covered.setdefault((stage, name), False)
        logits = ["logits" in run.unproven or run.prediction is not None for run in both]
        known = [run.prediction is not None for run in both if "logits" not in run.unproven]
        if any(logits) and (not known or any(known)):
            covered.setdefault(("logits", OUTPUT), False)
        return cls(covered)

    @property
    def compared(self) -> tuple[str, ...]:
        """The stages that were compared, in at least one place."""
        stages = {stage for (stage, _), is_there in self.by_place.items() if is_there}
        return tuple(stage for stage in get_args(ComparedStage) if stage in stages)

    @property
    def not_compared(self) -> tuple[str, ...]:
        """The stages that could not be; "norm of decoder.final.norm" where that is so in one place."""
        names: list[str] = []
        for stage in get_args(ComparedStage):
            lacking = [
                at
                for (name, at), is_there in self.by_place.items()
                if name == stage and not is_there
            ]
            if stage in self.compared:
                names += [f"{stage} of {place}" for place in lacking]
            elif lacking:
                names.append(stage)
        return tuple(names)

    @property
    def reaches_the_end(self) -> bool:
        """Whether all that leads to the last numbers of both runs was compared: every state of their streams,
        and the logits, or where there are none the last norm."""
        has_logits = ("logits", OUTPUT) in self.by_place

        def counts(stage: ComparedStage, place: str) -> bool:
            is_last_norm = stage == "norm" and place.endswith("final.norm")
            return stage in ("stream", "logits") or (is_last_norm and not has_logits)

        return all(is_there for at, is_there in self.by_place.items() if counts(*at))


@at_border
def first_difference(a: Trace, b: Trace, *, model: "Model | None" = None) -> FirstDifference | None:
    """The first stage at which the second run leaves the first beyond rounding.

    None: nowhere, and the runs were compared to their end: every state of the stream, from the first one
    on, and the logits. Where nothing differs but less could be compared, `stage` is None, and
    `not_compared` says what.

    >>> from model import Intervention
    >>> from model.analysis import first_difference
    >>> not_scaled = model.trace(trace.text, intervention=Intervention(scale=1.0))
    >>> parting = first_difference(trace, not_scaled)
    >>> assert parting
    >>> parting.stage, parting.place, parting.head, parting.cell, parting.cause
    ('scaled', 'decoder.0.self', 0, (4, 4), 'its scores are not divided by √d_k')
    >>> first_difference(trace, model.trace(trace.text)) is None
    True

    Args:
        a: the run to go by, such as that of a reference.
        b: the other: a trace of the same text, also what `capture` records of somebody's own module, and
            what `model.exchange.read` makes of another program's numbers.
        model: that of the first run, whose weights tell a transposed map.

    Raises ValueError where the runs cannot be laid side by side: other numbers of tokens, layers or heads.
    """
    runs = SideBySide(a, b)
    first: StageComparison | None = None
    for one in runs.stages():
        if first is None and one.is_beyond:
            first = one
    coverage = _Coverage.of(runs)
    if first is None and coverage.reaches_the_end:
        return None
    compared, lacks = coverage.compared, coverage.not_compared
    if first is None:
        return FirstDifference(None, None, None, None, None, None, None, None, compared, lacks)
    stage, cause = cause_of(first.pair, first.stage, model)
    return FirstDifference(
        stage,
        first.place,
        first.head,
        first.cell,
        first.first,
        first.second,
        first.rounding,
        cause,
        tuple(dict.fromkeys((*compared, stage))),
        lacks,
        first,
    )


@at_border
def precision_by_layer(a: Trace, b: Trace) -> pd.DataFrame:
    """Every stage of both runs in order, such as those of a model and of its quantized twin.

    >>> from model import Intervention
    >>> from model.analysis import precision_by_layer
    >>> without = model.trace(trace.text, intervention=Intervention(ablated={("decoder.1.self", 7)}))
    >>> frame = precision_by_layer(trace, without)
    >>> frame[frame.beyond].iloc[0][["place", "stage"]].tolist()
    ['decoder.1.self', 'output']

    Columns: place, stage, head, difference (the largest), share (of the largest number of the stage),
    rounding (of that cell), beyond (whether some cell differs by more than rounding explains, there or
    because an earlier stage does). Raises ValueError as `first_difference`.
    """
    rows = [
        {
            "place": one.place,
            "stage": one.stage,
            "head": one.head,
            "difference": one.pair.largest[0],
            "share": one.pair.share,
            "rounding": one.pair.largest[1],
            "beyond": one.is_beyond,
        }
        for one in SideBySide(a, b).stages()
    ]
    columns = ["place", "stage", "head", "difference", "share", "rounding", "beyond"]
    frame = pd.DataFrame(rows, columns=columns)
    stages = frame.groupby(["place", "stage"], sort=False)
    frame["beyond"] = stages["beyond"].transform("any")
    keys = stages["difference"].idxmax()
    return frame.loc[keys].reset_index(drop=True)
