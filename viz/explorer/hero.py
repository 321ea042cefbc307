"""What stands around the map of a head: how sure the model was of each token, and the sentence's loss."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from model.analysis.run_comparison import losses, rounding
from model.trace.records import Attention
from model.trace.trace import Trace
from viz.explorer.message import Hero, RunName
from viz.explorer.selection import Detail
from viz.notation.numbers import nats, settled

READ = 2**22  # logits that are read for the loss each time the page is drawn: 50 ms
DECIMALS: dict[Detail, int] = {"simple": 2, "full": 3}  # of a probability


def hero(
    attention: Attention,
    trace: Trace,
    baseline: Trace | None,
    *,
    change: str = "",
    detail: Detail = "simple",
    opens: bool = False,
    ways: Mapping[str, str] = MappingProxyType({}),
    job: str = "",
) -> Hero:
    """What the explorer shows beside a layer of a run, in the app, in a widget, on a site and in a saved
    page. baseline: the unchanged run, where this one is changed. The others: as `Hero` has them."""
    runs: dict[RunName, Trace | None] = {"before": baseline, "after": trace}
    lost = {name: None if run is None else _losses(run) for name, run in runs.items()}
    sure = {name: None if loss is None else _sureness(loss) for name, loss in lost.items()}
    has_loss = lost["after"] is not None
    error = max(rounding(run) for run in runs.values() if run is not None)
    certain = max(error, 5 * 10.0 ** -(DECIMALS[detail] + 1))
    mean = {
        name: None if loss is None else nats(loss.mean(), certain) for name, loss in lost.items()
    }
    return Hero(
        change,
        sure=sure if has_loss and reads_text(attention) else None,
        loss=mean if has_loss else None,
        decimals=min(settled(error), DECIMALS[detail]),
        opens=opens,
        detail=detail,
        ways=dict(ways),
        job=job,
    )


def heroes(trace: Trace, baseline: Trace | None, change: str = "") -> dict[str, dict[Detail, Hero]]:
    """What stands beside each layer of a run that nobody can compute anew, in each detail, by layer."""
    layers = {one.name: reads_text(one) for one in trace.attention}
    reader = next((one for one in trace.attention if layers[one.name]), trace.attention[0])
    beside: dict[Detail, Hero] = {
        detail: hero(reader, trace, baseline, change=change, detail=detail) for detail in DECIMALS
    }
    return {
        name: {detail: one if reads else replace(one, sure=None) for detail, one in beside.items()}
        for name, reads in layers.items()
    }


def reads_text(attention: Attention) -> bool:
    """Whether the keys of a layer are the tokens whose probability the model gives."""
    return attention.kind != "cross" and attention.place.stack == "decoder"


def _losses(run: Trace) -> np.ndarray | None:
    """-ln p of each token but the first; None where there are none, or too many to be read at once."""
    if run.prediction is None or run.prediction.shape[0] < 2:
        return None
    rows, vocabulary = run.prediction.shape
    return losses(run) if rows * vocabulary <= READ else None


def _sureness(loss: np.ndarray) -> list[float | None]:
    """The probability of each token after those before it; None for the first."""
    return [None, *np.exp(-loss).tolist()]
