"""What each head is needed for: the same text once for every head, with that head left out.

Axes: R rows of a batch, one ablated head each; T tokens, C width, V vocabulary.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.analysis.heads.families import Head, heads_of
from model.nn.recorder import Recorder, recording
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

Measure = Literal["probability", "logit", "divergence", "loss", "moved"]
Numbers = NDArray[np.float64]
MOST_ROWS = 24  # of a batch, so that progress is told often
MOST_TOKENS = 1024  # of a batch: others wait for its end
MOST_LOGITS = 2**24  # of a batch: 64 MB


@dataclass(frozen=True, eq=False)
class Ablations:
    """What the passes without one head said, for the heads done so far.

    Measures of a model that predicts: "probability" and "logit" (head, watched token) of the next
    token at the end of the text, "divergence" (head,) from the unchanged prediction there, in nats
    (KL), and "loss" (head,) of the text, in nats a token, if it has two tokens. Of an encoder:
    "moved" (head,), the mean distance of the final vectors as a share of their length.
    """

    heads: tuple[Head, ...]
    total: int  # heads that there are
    watched: tuple[int, ...]  # ids of the next tokens whose probability is kept
    measures: Mapping[Measure, Numbers]
    unchanged: Mapping[Measure, Numbers]  # the same without any ablation: (watched,) or ()

    @property
    def complete(self) -> bool:
        """Whether every head has had its pass."""
        return len(self.heads) == self.total

    def change(self, measure: Measure, watched: int = 0) -> Numbers:
        """(head,): the measure without the head minus the measure of the unchanged pass."""
        values, before = self.measures[measure], self.unchanged[measure]
        if values.ndim > 1:
            values, before = values[:, watched], before[watched]
        return values - before


def ablate_each(
    model: "Model",
    trace: Trace,
    watched: tuple[int, ...],
    turn: Callable[[], AbstractContextManager[None]],
) -> Iterator[Ablations]:
    """One pass for every head of the model over the tokens of a trace, in batches.

    Gives what is known after each batch; whoever stops asking stops the work. The changes that the
    trace was run with hold in every pass. watched: ids of next tokens to follow. turn: makes a
    context in which one batch runs.
    """
    heads, passes = heads_of(trace.attention), _Passes(model, trace, watched)
    with turn(), torch.inference_mode():
        unchanged = passes.run(())
        before = {name: values[0] for name, values in passes.measures(unchanged, unchanged).items()}
    found: list[Mapping[Measure, Numbers]] = []
    rows = _rows_at_once(model, trace)
    for start in range(0, len(heads), rows):
        batch = heads[start : start + rows]
        with turn(), torch.inference_mode():
            found.append(passes.measures(passes.run(batch), unchanged))
        yield Ablations(
            heads=heads[: start + len(batch)],
            total=len(heads),
            watched=watched,
            measures={name: np.concatenate([one[name] for one in found]) for name in before},
            unchanged=before,
        )


class _Passes:
    """Passes over the tokens of one trace, and what is measured of them."""

    def __init__(self, model: "Model", trace: Trace, watched: tuple[int, ...]) -> None:
        self._model = model
        self._trace = trace
        self._watched = list(watched)
        self._heads = {attention.name: attention.heads for attention in trace.attention}

    def run(self, ablated: Sequence[Head]) -> Tensor:
        """(R, T, V) logits, or (R, T, C) states of an encoder: one row for each ablated head, or
        one unchanged row for none."""
        trace, device = self._trace, self._model.device
        rows = max(len(ablated), 1)
        kept = {name: torch.ones(rows, heads, device=device) for name, heads in self._heads.items()}
        for row, (name, head) in enumerate(ablated):
            kept[name][row, head] = 0.0
        texts = [trace.tokens, trace.target_tokens] if trace.target_tokens else [trace.tokens]
        ids = [torch.tensor([[token.id for token in text]], device=device) for text in texts]
        source = self._model.config.source
        with recording(Recorder(trace.intervention, source=source, kept_heads=kept)):
            result: Tensor = self._model.module(*(one.expand(rows, -1) for one in ids))
        return result

    def measures(self, result: Tensor, unchanged: Tensor) -> dict[Measure, Numbers]:
        """Each measure of each row, (R, …), beside the one row of the unchanged pass."""
        if self._trace.prediction is None:
            apart = torch.linalg.vector_norm((result - unchanged).double(), dim=-1)
            lengths = torch.linalg.vector_norm(unchanged.double(), dim=-1)
            return {"moved": (apart / lengths).mean(-1).cpu().numpy()}
        logs, before = (rows[:, -1].double().log_softmax(-1) for rows in (result, unchanged))
        measures: dict[Measure, Tensor] = {
            "probability": logs[:, self._watched].exp(),
            "logit": result[:, -1, self._watched].double(),
            "divergence": (before.exp() * (before - logs)).sum(-1).clamp(min=0.0),
        }
        following = [token.id for token in self._trace.tokens_of("decoder")[1:]]
        if following:
            measures["loss"] = _loss(result[:, : len(following)], following)
        return {name: values.cpu().numpy() for name, values in measures.items()}


def _loss(logits: Tensor, following: list[int]) -> Tensor:
    """logits (R, T, V) to (R,): mean -ln p of the tokens that follow, in nats."""
    ids = torch.tensor(following, device=logits.device).expand(len(logits), -1)  # (R, T)
    right = logits.gather(-1, ids[..., None])[..., 0]
    return (logits.logsumexp(-1) - right).double().mean(-1)


def _rows_at_once(model: "Model", trace: Trace) -> int:
    """How many heads are ablated in one batch, so that its arrays stay small."""
    length = max(len(trace.tokens), len(trace.target_tokens))
    logits = 0 if trace.prediction is None else length * model.config.vocabulary
    bounds = MOST_ROWS, MOST_TOKENS // length, MOST_LOGITS // max(logits, 1)
    return max(min(bounds), 1)
