"""Beam search beside greedy decoding: the most probable texts that are found when several are kept.

A text that ended keeps its total and its place among the others. Totals are not divided by the length.
Source: Sutskever, Vinyals and Le 2014, "Sequence to Sequence Learning with Neural Networks". Axes: R rows
of a batch, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from model.analysis.attribution.patching import Turn
from model.analysis.heads.ablations import rows_at_once
from model.analysis.tokens.prediction import log_probabilities
from model.nn.recorder import Recorder, recording
from model.run.refusals import check_length
from model.system.elsewhere import asked
from model.trace.arrays import Wide
from model.trace.collect import numbers_of
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model


@dataclass(frozen=True)
class Continuation:
    """What is written after the text, and how probable the model finds it."""

    ids: tuple[int, ...]
    log_probability: float  # of its last token
    total: float  # the log-probabilities of its tokens, added up
    ended: bool = False


@dataclass(frozen=True)
class BeamStep:
    """One step: what it keeps, what comes next in rank and is dropped, and the greedy continuation."""

    kept: tuple[Continuation, ...]  # the highest total first
    dropped: tuple[Continuation, ...]  # as many, by their totals
    greedy: Continuation


@dataclass(frozen=True)
class BeamSearch:
    """What is known so far."""

    steps: tuple[BeamStep, ...]
    done: int
    total: int  # steps in all; those after every text ended need no pass

    @property
    def best(self) -> Continuation:
        return self.steps[-1].kept[0]

    @property
    def greedy(self) -> Continuation:
        return self.steps[-1].greedy


@asked
def beam_search(
    model: "Model", trace: Trace, *, beams: int, steps: int, turn: Turn = nullcontext
) -> Iterator[BeamSearch]:
    """The search after the text of a trace, step by step; all texts of a step are one batch. An
    encoder–decoder begins its target anew. Whoever stops asking stops the work. turn: makes a context in
    which one batch runs. Raises ValueError for an encoder, for a search without beams or steps, and for
    more steps than the context has room for."""
    if model.config.shape == "encoder":
        raise ValueError(f"{model.name} is an encoder: it reads text, it does not continue it.")
    if beams < 1 or steps < 1:
        raise ValueError(f"A search needs a beam and a step, not {beams} and {steps}.")
    check_length(len(model.begun(trace.tokens)) + steps - 1, model.config.n_ctx, model.name)
    greedy = Continuation((), 0.0, 0.0)
    kept: tuple[Continuation, ...] = (greedy,)
    found: tuple[BeamStep, ...] = ()
    while len(found) < steps and not (greedy.ended and all(one.ended for one in kept)):
        texts = {one.ids: one for one in (*kept, greedy) if not one.ended}
        rows = dict(zip(texts, _next(model, trace, list(texts), turn), strict=True))
        end = model.tokenizer.end
        ranked = [one for one in kept if one.ended]
        for one in kept:
            if not one.ended:
                ranked += _continued(one, rows[one.ids], 2 * beams, end)
        ranked.sort(key=lambda one: -one.total)
        kept, dropped = tuple(ranked[:beams]), tuple(ranked[beams : 2 * beams])
        if not greedy.ended:
            (greedy,) = _continued(greedy, rows[greedy.ids], 1, end)
        found += (BeamStep(kept, dropped, greedy),)
        yield BeamSearch(found, len(found), steps)
    if len(found) < steps:
        yield BeamSearch(found, steps, steps)


def _continued(
    text: Continuation, row: Wide, count: int, end: int | None
) -> tuple[Continuation, ...]:
    """A text with each of the `count` likeliest next tokens. row: their log-probabilities, (V,)."""
    return tuple(
        Continuation((*text.ids, id_), float(row[id_]), text.total + float(row[id_]), id_ == end)
        for id_ in np.argsort(-row, kind="stable")[:count].tolist()
    )


def _next(
    model: "Model", trace: Trace, texts: Sequence[tuple[int, ...]], turn: Turn
) -> Iterator[Wide]:
    """(V,) of each text: the log-probabilities of what follows it."""
    most = rows_at_once(trace, model.config.d_vocab * (model.module.output_matrix is None))
    for start in range(0, len(texts), most):
        with turn():
            logits = _last_logits(model, trace, texts[start : start + most])
        yield from log_probabilities(numbers_of(logits))


def _last_logits(model: "Model", trace: Trace, texts: Sequence[tuple[int, ...]]) -> Tensor:
    """(R, V): one pass over the text with each of these, all equally long, written after it."""
    begin = [token.id for token in model.begun(trace.tokens)]
    source = model.ids(trace.tokens).expand(len(texts), -1)
    rows = [[*begin, *text] for text in texts]
    written = torch.tensor(rows, dtype=torch.long, device=source.device)
    fed = [source, written] if model.config.shape == "encoder-decoder" else [written]
    recorder = Recorder(trace.intervention, source=model.config.source, deferred=True)
    with recording(recorder), torch.inference_mode():
        last, matrix = model.module(*fed)[:, -1], model.module.output_matrix
        logits: Tensor = last if matrix is None else last @ matrix.T
    return logits
