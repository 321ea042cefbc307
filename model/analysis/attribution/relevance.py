"""What each token of the text does to a logit: measured by leaving it out, and estimated from gradients.

Left out means: its vector before the first layer is what it would be with the mean vector of the vocabulary
in place of the token's own. Axes: R rows of a batch, T tokens, C d_model, H heads, D width of a head.
Sources: Li et al. 2016, "Understanding Neural Networks through Representation Erasure"; Sundararajan et al.
2017, "Axiomatic Attribution for Deep Networks"; Barkan et al. 2021, "Grad-SAM"; Yin and Neubig 2022,
"Interpreting Language Models with Contrastive Explanations", of the difference of two logits.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from model.analysis.attribution.head_matrices import divided, table_factor
from model.analysis.attribution.patching import Turn
from model.analysis.attribution.stream_parts import check_model
from model.analysis.heads.contributions import rows_at_once, texts_in_rows
from model.analysis.stream.stream import embedding_norm
from model.nn.patches import SiteKind, Through
from model.nn.recorder import Recorder, recording
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
        by_attention = runs.by_attention()
    found = Relevance(empty, empty, by_attention, logit, baseline, 0, length + steps)
    yield found
    most = rows_at_once(trace, model.config.d_vocab * (model.module.output_matrix is None))
    left_out = empty.copy()
    for start in range(0, length, most):
        these = slice(start, min(start + most, length))
        rows = runs.own.repeat(these.stop - start, 1, 1)
        for row, token_left_out in zip(rows, range(start, these.stop), strict=True):
            row[token_left_out] = runs.without[token_left_out]
        with turn():
            left_out[these] = logit - np.array(runs.logits(rows))
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
        self.token, self.against = token, against
        stack = trace.source
        self.first = next(one.name for one in trace.attention if one.stack == stack)
        self.own = torch.tensor(trace.residual[stack][0])  # (T, C)
        self.without = torch.tensor(states_without_tokens(model, trace), dtype=torch.float32)

    def logits(self, states: Tensor) -> list[float]:
        """(R,): of each row of states (R, T, C)."""
        with torch.inference_mode():
            found: list[float] = self._logits(len(states), self._starting(states)).tolist()
        return found

    def gradients(self, shares: Tensor) -> Tensor:
        """(T, C): the gradients at these shares of the way from nothing to the text, added up."""
        with torch.inference_mode(False), torch.enable_grad():
            way = shares[:, None, None] * (self.own - self.without)
            states = (self.without + way).requires_grad_()
            summed = self._logits(len(shares), self._starting(states)).sum()
            (gradient,) = torch.autograd.grad(summed, states)
        return gradient.sum(0)

    def by_attention(self) -> Wide:
        """(T,): over all sub-layers that read the text, heads and queries, the weight on a token times the
        gradient for that weight, which is the gradient for the head's output · the token's value."""
        added: dict[str, Tensor] = {}
        with torch.inference_mode(False), torch.enable_grad():
            logit = self._logits(1, adding_zeros(added))[0]
            gradients = torch.autograd.grad(logit, list(added.values()))
        found = np.zeros(len(self.trace.tokens))
        for name, gradient in zip(added, gradients, strict=True):
            attention = self.trace.find(name)
            if self.trace.keys_of(attention) != self.trace.tokens:
                continue
            by_head = doubled(gradient[0]).cpu().numpy()  # (H, T, D)
            for head in range(attention.heads):
                for_weights = by_head[head] @ attention.value[head].T.astype(np.float64)
                kept = head not in attention.ablated
                found += kept * (attention.dropped(head) * for_weights).sum(0)
        return found

    def _starting(self, states: Tensor) -> Through:
        def through(kind: SiteKind, name: str, x: Tensor) -> Tensor:
            return states.to(x) if (kind, name) == ("stream", self.first) else x

        return through

    def _logits(self, rows: int, through: Through) -> Tensor:
        """(R,): the token's logit at the last position, or its difference to the other's."""
        model, trace = self.model, self.trace
        recorder = Recorder(
            trace.intervention, source=model.config.source, deferred=True, through=through
        )
        with recording(recorder):
            ended = model.module(*texts_in_rows(model, trace, rows))
        last, matrix = ended[:, -1], model.module.output_matrix

        def logit(token: int) -> Tensor:
            return doubled(last[:, token] if matrix is None else last @ matrix[token])

        lead = logit(self.token)
        return lead if self.against is None else lead - logit(self.against)


def adding_zeros(added: dict[str, Tensor]) -> Through:
    """Adds zeros to what the heads give, (R, H, T, D), kept in `added` by sub-layer: a logit's gradients for
    them are those for the heads' outputs."""

    def through(kind: SiteKind, name: str, x: Tensor) -> Tensor:
        if kind != "output":
            return x
        added[name] = torch.zeros_like(x, requires_grad=True)
        return x + added[name]

    return through


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
