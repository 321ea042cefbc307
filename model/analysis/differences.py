"""The first number by which two runs of one text differ beyond rounding, and what explains it.

The stages of both are laid side by side in the order of execution: embedding, positions, then layer by layer
norm, query, key, value, scores, mask, weights, output, stream and feed-forward, last the logits.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from model.analysis.difference_causes import cause_of
from model.analysis.stage_comparison import StageComparison, comparisons
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model


@dataclass(frozen=True, eq=False)
class FirstDifference(StageComparison):
    """The first comparison beyond rounding. cause: what explains the difference, found by trying; None where
    nothing that was tried does.

    >>> from model import Intervention
    >>> from model.analysis import first_difference
    >>> not_scaled = model.trace(trace.text, intervention=Intervention(scale=1.0))
    >>> first_difference(trace, not_scaled).sentence
    'The first number that differs is of the stage “scaled” of decoder.0.self, head 0, at 4, 4: ...'
    """

    cause: str | None = None

    @property
    def sentence(self) -> str:
        """In words: where, how much, and why."""
        of = "" if self.head is None else f", head {self.head}"
        why = self.cause or "no cause that was tried explains it"
        return (
            f"The first number that differs is of the stage “{self.stage}” of {self.place}{of}, at "
            f"{self.cell[0]}, {self.cell[1]}: {self.first:.6g} and {self.second:.6g}, {self.difference:.2g} "
            f"apart where rounding explains {self.rounding:.1g}. Cause: {why}."
        )


def first_difference(a: Trace, b: Trace, *, model: "Model | None" = None) -> FirstDifference | None:
    """The first stage at which the second run leaves the first beyond rounding; None: nowhere.

    >>> from model import Intervention
    >>> from model.analysis import first_difference
    >>> not_scaled = model.trace(trace.text, intervention=Intervention(scale=1.0))
    >>> parting = first_difference(trace, not_scaled)
    >>> parting.stage, parting.place, parting.head, parting.cell, parting.cause
    ('scaled', 'decoder.0.self', 0, (4, 4), 'its scores are not divided by √d_k')

    Args:
        a: the run to go by, such as that of a reference.
        b: the other: a trace of the same text, also what `model.exchange.read` makes of another program's
            numbers. Stages that one of the two did not record are left out.
        model: that of the first run, whose weights tell a transposed map.

    Raises ValueError where the runs cannot be laid side by side: other numbers of tokens, layers or heads.
    """
    first = next((one for one in comparisons(a, b) if one.is_beyond), None)
    if first is None:
        return None
    stage, cause = cause_of(first.pair, first.stage, model)
    values = {name: vars(first)[name] for name in StageComparison.__dataclass_fields__}
    return FirstDifference(**values | {"stage": stage, "cause": cause})


def precision_by_layer(a: Trace, b: Trace) -> pd.DataFrame:
    """Every stage of both runs in order, such as those of a model and of its quantized twin.

    >>> from model import Intervention
    >>> from model.analysis import precision_by_layer
    >>> without = model.trace(trace.text, intervention=Intervention(ablated={("decoder.1.self", 7)}))
    >>> frame = precision_by_layer(trace, without)
    >>> frame[frame.beyond].iloc[0][["place", "stage"]].tolist()
    ['decoder.1.self', 'output']

    Columns: place, stage, head, difference (the largest), share (of the largest number of the stage),
    rounding (of that cell), beyond (whether some cell differs by more than rounding explains). Raises
    ValueError as `first_difference`.
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
        for one in comparisons(a, b)
    ]
    columns = ["place", "stage", "head", "difference", "share", "rounding", "beyond"]
    frame = pd.DataFrame(rows, columns=columns)
    stages = frame.groupby(["place", "stage"], sort=False)
    frame["beyond"] = stages["beyond"].transform("any")
    keys = stages["difference"].idxmax()
    return frame.loc[keys].reset_index(drop=True)
