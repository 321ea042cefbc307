"""The first number by which two runs of one text differ beyond rounding, and what explains it.

The stages of both are laid side by side in the order of execution: embedding, positions, then layer by layer
norm, query, key, value, scores, mask, weights, output, stream and feed-forward, last the logits.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd

from model.analysis.difference_causes import ComparedStage, cause_of
from model.analysis.stage_comparison import SideBySide, StageComparison
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model


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
    >>> parting.sentence
    'The first number that differs is of the stage “scaled” of decoder.0.self, head 0, at 4, 4: ...'
    >>> parting.compared[:4], parting.not_compared
    (('embedding', 'positions', 'norm', 'query'), ('feed-forward',))
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
            return f"No number among what was compared differs beyond rounding.{lacks}"
        of = "" if at.head is None else f", head {at.head}"
        among = " among what was compared" if self.may_begin_earlier else ""
        why = f"Cause: {self.cause}." if self.cause else "The cause is not known."
        return (
            f"The first number that differs{among} is of the stage “{self.stage}” of {at.place}{of}, at "
            f"{at.cell[0]}, {at.cell[1]}: {at.first:.6g} and {at.second:.6g}, {at.difference:.2g} apart "
            f"where rounding explains {at.rounding:.1g}. {why}{lacks}"
        )


def first_difference(a: Trace, b: Trace, *, model: "Model | None" = None) -> FirstDifference | None:
    """The first stage at which the second run leaves the first beyond rounding.

    None: nowhere, and the runs were compared to their end: every state of the stream, from the first one
    on, and the logits. Where nothing differs but less could be compared, `stage` is None, and
    `not_compared` says what.

    >>> from model import Intervention
    >>> from model.analysis import first_difference
    >>> not_scaled = model.trace(trace.text, intervention=Intervention(scale=1.0))
    >>> parting = first_difference(trace, not_scaled)
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
    if first is None and runs.reaches_the_end:
        return None
    compared, lacks = runs.compared, runs.not_compared
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
