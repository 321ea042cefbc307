"""What each token of the text does to a logit: measured by leaving it out, and estimated from gradients.

Left out means: its vector before the first layer is what it would be with the mean vector of the vocabulary
in place of the token's own. Axes: R rows of a batch, T tokens, C d_model, H heads, D width of a head.
Sources: Li et al. 2016, "Understanding Neural Networks through Representation Erasure"; Sundararajan et al.
2017, "Axiomatic Attribution for Deep Networks"; Barkan et al. 2021, "Grad-SAM"; Yin and Neubig 2022,
"Interpreting Language Models with Contrastive Explanations", of the difference of two logits.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from model.analysis.attribution.head_matrices import divided, table_factor
from model.analysis.attribution.patching import Turn
from model.analysis.attribution.stream_parts import check_model
from model.analysis.stream.stream import embedding_norm
from model.nn.patches import Hooks
from model.run.passes import forward, gradients, ids_of, rows_at_once
from model.run.protocols import check_id
from model.system.remote import asked
from model.trace.arrays import Wide
from model.trace.collect import doubled
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

STEPS = 32  # on the way from all tokens left out to the text
MOST_ROWS = 8  # of a batch with gradients
FEWEST = 3  # tokens of which a rank correlation says anything


@dataclass(frozen=True, eq=False)
class Relevance:
    """What is known so far, in units of the logit; NaN where a pass is still to come."""

    left_out: Wide  # (T,): the logit minus that without the token
    integrated: Wide  # (T,): integrated gradients; NaN until all steps are done
    by_attention: Wide  # (T,): weights of attention times their gradients, added up
    logit: float  # of the text; or the difference of two
    baseline: float  # of the text with every token left out
    done: int  # passes
    total: int

    @property
    def incomplete(self) -> float:
        """|sum of the integrated gradients − (logit − baseline)|: 0 with infinitely many steps."""
        return abs(float(self.integrated.sum()) - (self.logit - self.baseline))


@asked
def relevances(
    model: "Model",
    trace: Trace,
    token: int,
    *,
    against: int | None = None,
    steps: int = STEPS,
    turn: Turn = nullcontext,
) -> Iterator[Relevance]:
    """What each token of the text does to a logit at the last position, after each batch of passes. Whoever
    stops asking stops the work.

    Args:
        model, trace: a model and its run.
        token: the id whose logit it is.
        against: an id whose logit is subtracted: why the first token, and not this one.
        steps: of the integrated gradients.
        turn: makes a context in which one batch runs.

    Raises ValueError for an encoder, for an id that is not there, for twice the same id, and for token
    vectors that are not rows of one table.
    """
    check_model(model, trace)
    if trace.intervention.patch is not None:
        raise ValueError(
            "Parts of another run were put into this one: which tokens made it is not asked."
        )
    trace.require_prediction()
    for one in (token, *(() if against is None else (against,))):
        check_id(one, model.config.d_vocab, model.name)
    if token == against:
        raise ValueError("Choose two tokens: one has no difference to itself.")
    runs = _Runs(model, trace, token, against)
    length = len(trace.tokens)
    empty = np.full(length, np.nan)
    with turn():
        logit, baseline = runs.logits(torch.stack([runs.own, runs.without]))
        by_attention = weights_times_gradients(
            weight_gradients(model, trace, token, against), trace
        )
    found = Relevance(empty, empty, by_attention, logit, baseline, 0, length + steps)
    yield found
    most = rows_at_once(trace, model.config.d_vocab * (model.module.output_matrix is None))
    left_out = empty.copy()
    for start in range(0, length, most):
        these = range(start, min(start + most, length))
        rows = left_out_states(runs.own, runs.without, [[one] for one in these])
        with turn():
            left_out[start : these.stop] = logit - np.array(runs.logits(rows))
        found = replace(found, left_out=left_out.copy(), done=these.stop)
        yield found
    total = torch.zeros_like(runs.own)
    way = (torch.arange(steps) + 0.5) / steps  # the middle of each step
    most = min(most, MOST_ROWS)
    for start in range(0, steps, most):
        with turn():
            total += runs.gradients(way[start : start + most])
        found = replace(found, done=length + min(start + most, steps))
        if found.done == found.total:
            summed = doubled(total / steps * (runs.own - runs.without)).sum(-1)
            found = replace(found, integrated=summed.numpy())
        yield found


class _Runs:
    """Passes over the tokens of a trace that begin with other states before the first layer."""

    def __init__(self, model: "Model", trace: Trace, token: int, against: int | None) -> None:
        self.model, self.trace = model, trace
        self.lead = partial(lead_of, model, token=token, against=against)
        self.own, self.without = states_and_without(model, trace)

    def logits(self, states: Tensor) -> list[float]:
        """(R,): of each row of states (R, T, C)."""
        ended = forward(
            self.model,
            ids_of(self.model, self.trace),
            starting_hooks(self.trace, states),
            rows=len(states),
            intervention=self.trace.intervention,
            deferred=True,
        ).ended
        found: list[float] = self.lead(ended).tolist()
        return found

    def gradients(self, shares: Tensor) -> Tensor:
        """(T, C): the gradients at these shares of the way from nothing to the text, added up."""
        states = self.without + shares[:, None, None] * (self.own - self.without)
        starting = starting_hooks(self.trace, states)
        passing = gradients(
            self.model,
            ids_of(self.model, self.trace),
            [*starting],
            lambda ended: self.lead(ended).sum(),
            starting,
            rows=len(states),
            intervention=self.trace.intervention,
            deferred=True,
        )
        ((_, gradient),) = passing.values()
        return gradient.sum(0)


def lead_of(model: "Model", ended: Tensor, token: int, against: int | None = None) -> Tensor:
    """(R,): a token's logit at the last position, or its difference to another's.

    Args:
        ended: what a pass ends with, (R, T, …).
        token, against: their ids; None: there is no other.
    """
    last, matrix = ended[:, -1], model.module.output_matrix

    def logit(one: int) -> Tensor:
        return doubled(last[:, one] if matrix is None else last @ matrix[one])

    return logit(token) if against is None else logit(token) - logit(against)


def starting_hooks(trace: Trace, states: Tensor) -> Hooks:
    """Puts states (R, T, C) in the place of those before the first layer of the stack that reads the text."""
    first = next(one.name for one in trace.attention if one.stack == trace.source)
    return {("stream", first): lambda x: states.to(x)}


def weight_gradients(
    model: "Model", trace: Trace, token: int, against: int | None = None
) -> dict[str, Wide]:
    """(H, Q, K) by sub-layer: the gradient of a logit at the last position, or of the difference of two, for
    each weight, which is the gradient for the head's output · the value."""
    passing = gradients(
        model,
        ids_of(model, trace),
        [("output", one.name) for one in trace.attention],
        lambda ended: lead_of(model, ended, token, against)[0],
        intervention=trace.intervention,
        deferred=True,
    )
    return {
        name: doubled(gradient[0]).cpu().numpy()
        @ trace.find(name).value.swapaxes(-1, -2).astype(np.float64)
        for (_, name), (_, gradient) in passing.items()
    }


def weights_times_gradients(gradients_of: Mapping[str, Wide], trace: Trace) -> Wide:
    """(T,): over all sub-layers that read the text, heads and queries, the weight on a token times its
    gradient, added up."""
    found = np.zeros(len(trace.tokens))
    for attention in trace.attention:
        if trace.keys_of(attention) == trace.tokens:
            for head in {*range(attention.heads)} - {*attention.ablated}:
                found += (attention.dropped(head) * gradients_of[attention.name][head]).sum(0)
    return found


def states_and_without(model: "Model", trace: Trace) -> tuple[Tensor, Tensor]:
    """(T, C) each: the states before the first layer, and those as if each token were left out."""
    own = torch.tensor(trace.residual[trace.source][0])
    return own, torch.tensor(states_without_tokens(model, trace), dtype=own.dtype)


def left_out_states(own: Tensor, without: Tensor, sets: Sequence[Sequence[int]]) -> Tensor:
    """(R, T, C): the states before the first layer, one set of tokens left out in each row."""
    rows = own.repeat(len(sets), 1, 1)
    for row, tokens in zip(rows, sets, strict=True):
        row[list(tokens)] = without[list(tokens)]
    return rows


def states_without_tokens(model: "Model", trace: Trace) -> Wide:
    """(T, C): the states before the first layer, each as if its token had the mean vector."""
    stack = trace.source
    summands = trace.summands[stack]
    own = summands["tokens"].astype(np.float64)
    factor = table_factor(model, summands["tokens"], trace.tokens_of(stack))
    mean = factor * model.embedding.mean(0, dtype=np.float64)
    norm = embedding_norm(trace, stack)
    if norm is None:
        return trace.residual[stack][0] - own + mean
    summed = sum((one.astype(np.float64) for one in summands.values()), start=mean - own)
    return divided(norm, summed, centred=True) * norm.gamma + norm.beta


def rank_correlation(first: Wide, second: Wide) -> float | None:
    """Spearman's: the correlation of the ranks; equal numbers share theirs. None for fewer than three, and
    where all are equal."""
    if len(first) < FEWEST or not min(np.ptp(first), np.ptp(second)) > 0:
        return None
    return float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])


def _ranks(values: Wide) -> Wide:
    """(n,): how many are smaller, and half of those that are equal."""
    below = (values[:, None] > values).sum(1)
    ranks: Wide = below + (values[:, None] == values).sum(1) / 2
    return ranks
