"""What each head is needed for: one pass over the same text for every head, without that head.

Axes: R rows of a batch, one ablated head each; T tokens, C width, V vocabulary.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from model.analysis.heads.families import heads_of
from model.nn.places import Head
from model.nn.recorder import Recorder, recording
from model.system.elsewhere import asked
from model.trace.arrays import Wide
from model.trace.collect import doubled
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

Measure = Literal["probability", "logit", "divergence", "loss", "moved"]
MOST_ROWS = 24  # of a batch, so that progress shows often
MOST_TOKENS = 1024  # of a batch: other visitors wait for its end
MOST_LOGITS = 2**24  # of a batch: 64 MB


@dataclass(frozen=True, eq=False)
class Ablations:
    """Measures of the passes without one head, for the heads done so far.

    Of a model that predicts: "probability" and "logit" (head, watched token) of the next token at the
    end of the text, "divergence" (head,) there from the unchanged prediction, in nats (KL), and
    "loss" (head,), in nats a token, of a text of two tokens or more. Of an encoder: "moved" (head,),
    the mean distance of the final vectors as a share of their length.
    """

    heads: tuple[Head, ...]
    total: int  # heads of the model
    watched: tuple[int, ...]  # ids of the next tokens that are followed
    measures: Mapping[Measure, Wide]
    unchanged: Mapping[Measure, Wide]  # the same without any ablation: (watched,) or ()

    @property
    def done(self) -> int:
        """How many heads have had their pass."""
        return len(self.heads)

    @property
    def complete(self) -> bool:
        """Whether every head has had its pass."""
        return self.done == self.total

    def change(self, measure: Measure, watched: int = 0) -> Wide:
        """(head,): the measure without the head minus that of the unchanged pass."""
        change = self.measures[measure] - self.unchanged[measure]
        return change[:, watched] if change.ndim > 1 else change


@asked
def ablate_each(
    model: "Model",
    trace: Trace,
    watched: tuple[int, ...],
    turn: Callable[[], AbstractContextManager[None]],
) -> Iterator[Ablations]:
    """One pass for every head of the model over the tokens of a trace, in batches.

    Yields what is known after each batch; a caller that stops ends the work. The interventions of the
    trace hold in every pass. watched: ids of next tokens to follow. turn: a context for each batch.
    """
    heads = heads_of(trace.attention)
    with turn(), torch.inference_mode():
        unchanged = _without(model, trace, ())
        before = {
            name: values[0]
            for name, values in _measures(trace, unchanged, unchanged, watched).items()
        }
    found: list[Mapping[Measure, Wide]] = []
    rows = rows_at_once(trace, 0 if trace.prediction is None else model.config.d_vocab)
    for start in range(0, len(heads), rows):
        batch = heads[start : start + rows]
        with turn(), torch.inference_mode():
            found.append(_measures(trace, _without(model, trace, batch), unchanged, watched))
        yield Ablations(
            heads=heads[: start + len(batch)],
            total=len(heads),
            watched=watched,
            measures={name: np.concatenate([one[name] for one in found]) for name in before},
            unchanged=before,
        )


def _without(model: "Model", trace: Trace, ablated: Sequence[Head]) -> Tensor:
    """(R, T, V) logits, or (R, T, C) states of an encoder: a row for each ablated head; one unchanged
    row for none."""
    rows = max(len(ablated), 1)
    kept = {one.name: torch.ones(rows, one.heads, device=model.device) for one in trace.attention}
    for row, (name, head) in enumerate(ablated):
        kept[name][row, head] = 0.0
    with recording(Recorder(trace.intervention, source=model.config.source, kept_heads=kept)):
        result: Tensor = model.module(*texts_in_rows(model, trace, rows))
    return result


def texts_in_rows(model: "Model", trace: Trace, rows: int) -> list[Tensor]:
    """The ids of each text of a trace, the same in every row, (R, T)."""
    texts = filter(None, (trace.tokens, trace.target_tokens))
    return [model.ids(text).expand(rows, -1) for text in texts]


def _measures(
    trace: Trace, result: Tensor, unchanged: Tensor, watched: tuple[int, ...]
) -> dict[Measure, Wide]:
    """Each measure of each row, (R, …), beside the one row of the unchanged pass."""
    if trace.prediction is None:
        apart = torch.linalg.vector_norm(doubled(result - unchanged), dim=-1)
        lengths = torch.linalg.vector_norm(doubled(unchanged), dim=-1)
        return {"moved": (apart / lengths).mean(-1).cpu().numpy()}
    logs, before = (doubled(rows[:, -1]).log_softmax(-1) for rows in (result, unchanged))
    measures: dict[Measure, Tensor] = {
        "probability": logs[:, list(watched)].exp(),
        "logit": doubled(result[:, -1, list(watched)]),
        "divergence": F.kl_div(logs, before, reduction="none", log_target=True)
        .sum(-1)
        .clamp(min=0),
    }
    following = [token.id for token in trace.tokens_of("decoder")[1:]]
    if following:
        ids = torch.tensor(following, device=result.device).expand(len(result), -1)  # (R, T)
        logits = result[:, : len(following)].transpose(1, 2)  # (R, V, T)
        measures["loss"] = doubled(F.cross_entropy(logits.float(), ids, reduction="none")).mean(-1)
    return {name: values.cpu().numpy() for name, values in measures.items()}


def rows_at_once(trace: Trace, logits: int) -> int:
    """How many passes over a trace's tokens run in one batch, so that its arrays stay small. logits: those
    that each token leaves."""
    length = max(len(trace.tokens), len(trace.target_tokens))
    return max(min(MOST_ROWS, MOST_TOKENS // length, MOST_LOGITS // max(length * logits, 1)), 1)
