"""Operations on axes of the open model's own tensors: queries cut into heads, a softmax over each axis."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from model.analysis.axes import Outcome, TensorLines, run
from model.code.check import projected
from model.system.elsewhere import asked
from model.trace.blocks import of_queries
from model.trace.records import Attention
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

MOST_TOKENS = 64  # of the scores of all heads at once


@dataclass(frozen=True, eq=False)
class Operated:
    """Lines that ran on tensors of the model, and how far the result is from the recorded numbers at most.

    apart: None where nothing recorded compares with it.
    """

    lines: TensorLines
    outcome: Outcome
    apart: float | None


@asked
def queries_by_head(model: "Model", trace: Trace, attention: Attention) -> Operated:
    """The queries of a sub-layer as W_Q gives them, (1, token, width), viewed and transposed to
    (1, head, token, d_k). Raises ValueError where the model's weights are not known by name.

    apart: after the norms and rotary positions that follow, where there are any.
    """
    flat, made = projected(
        model, trace, attention, "query", model.module.named_weights(), trace.angles
    )
    heads, tokens, width = made.shape
    lines = (("by_head", f"q.view(1, {tokens}, {heads}, {width}).transpose(1, 2)"),)
    outcome = run(lines, {"q": torch.tensor(flat)[None]})
    later = attention.projection.normed or attention.projection.turned
    split = made if later else outcome.made.values[0]
    return Operated(lines, outcome, float(np.abs(split - attention.query).max()))


def softmax_over(attention: Attention, axis: int) -> Operated:
    """The masked scores of a sub-layer, (1, head, query, key), through a softmax over one of the four axes;
    of the first MOST_TOKENS queries and keys.

    apart: over the last axis, where all keys are there, from the model's weights.
    """
    most = MOST_TOKENS
    first = of_queries(attention, slice(most))
    scores = np.stack([first.masked(head)[:, :most] for head in range(attention.heads)])
    lines = (("weights", f"scores.softmax(dim={axis})"),)
    outcome = run(lines, {"scores": torch.from_numpy(scores)[None]})
    apart = None
    whole = max(attention.weights(0).shape) <= most
    own_softmax = not attention.weights_set and attention.sinks is None
    if axis == -1 and whole and own_softmax:
        own = np.stack([attention.weights(head) for head in range(attention.heads)])
        gaps = np.abs(outcome.made.values[0] - own)  # NaN in a row that is masked as a whole
        apart = float(gaps[np.isfinite(gaps)].max(initial=0.0))
    return Operated(lines, outcome, apart)
