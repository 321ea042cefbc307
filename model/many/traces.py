"""The traces of many texts, one after another: several texts in one pass where that changes no number."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from model.analysis.padded_batch import padded
from model.nn.intervention import MASKS, UNCHANGED, Intervention, PassChange
from model.run.inputs import TokenIds
from model.run.model import Model, trace_of_pass
from model.run.passes import forward, rows_of_length
from model.run.protocols import check_intervention, check_length, in_names
from model.system.border import at_border
from model.system.memory import enough_memory
from model.trace.arrays import Array
from model.trace.collect import row_of
from model.trace.lazy import arrays_of
from model.trace.records import Attention, Token
from model.trace.trace import Trace

ALIKE = 1e-4  # of the largest number of an array: single precision sums in another order
ROUNDINGS = 8  # of the numbers of half precision
Record = Literal["attention", "full"]


@at_border
def trace_all(
    model: Model,
    texts: Iterable[str | TokenIds],
    *,
    intervention: PassChange = UNCHANGED,
    batch: int | None = None,
    record: Record = "attention",
) -> Iterator[Trace]:
    """The traces of texts, one after another, in their order.

    ```python
    texts = ["Tom saw Anna. Anna saw Tom", "The cat sat on the mat"]
    for one in trace_all(model, texts):
        print(one.text, one.find("decoder.1.self").weights(7)[-1].max())
    ```

    Texts are read, and passes run, as traces are asked for; no more than one batch is in memory. To stop,
    stop asking. A trace holds the numbers of its own text only, so those that are kept add up, and no others
    do.

    Texts of one batch are filled up at their ends. Nothing of a text reads the padding, which is tried with
    the first batch, and the trace does not have it; but kernels add up in another order for other sizes, so
    numbers differ from those of `model.trace(text)` in their last digits. Measured over sentences of 2 to 30
    tokens on a CPU: weights by at most 1.5e-6 in House GPT (200 sentences) and 6.2e-6 in SmolLM2 (120); other
    arrays by 1.4e-6 and 1.2e-5 of their largest number. `batch=1` gives the same bits as `model.trace`. A
    text has a pass of its own in an encoder–decoder, and where an intervention lets padding be read (no
    causal mask, a finite mask value), draws dropout or puts in another text's parts.

    Args:
        model: what `load_model` gives.
        texts: texts, or token ids of each; read one by one; may be endless.
        intervention: what is changed in every pass; a `Steering` alone serves too.
        batch: texts of one pass at most; None: as many as keep its arrays small.
        record: "full" also keeps feed-forward activations and norm outputs.

    Raises ValueError as `model.trace` does, with the number of the text, and for a batch of less than one.
    """
    if batch is not None and batch < 1:
        raise ValueError(f"batch is {batch}; it must be a number of texts from 1 up.")
    change = in_names(intervention, model)
    if batch == 1 or not _may_be_padded(model, change):
        return _one_by_one(model, texts, change, record)
    return _together(model, texts, change, batch, record)


def _may_be_padded(model: Model, change: Intervention) -> bool:
    """Whether no token of a text reads the padding after it, and texts may be of several lengths."""
    layers = model.module.attentions()
    hides = model.config.shape == "encoder" or all(one.place.kind == "causal" for one in layers)
    if model.config.shape == "encoder-decoder" or not hides:
        return False
    return not (
        MASKS[change.mask].removes_model_mask
        or math.isfinite(change.fill)
        or change.dropout
        or change.patch is not None
    )


@dataclass(frozen=True)
class _ReadText:
    number: int
    text: str | TokenIds
    tokens: tuple[Token, ...]


def _one_by_one(
    model: Model, texts: Iterable[str | TokenIds], change: Intervention, record: Record
) -> Iterator[Trace]:
    for number, text in enumerate(texts):
        try:
            yield model.trace(text, intervention=change, record=record)
        except ValueError as refusal:
            refusal.add_note(_note(number, text))
            raise


def _note(number: int, text: object) -> str:
    return f"This is text {number}, counted from 0: {str(text)[:100]!r}"


def _together(
    model: Model,
    texts: Iterable[str | TokenIds],
    change: Intervention,
    batch: int | None,
    record: Record,
) -> Iterator[Trace]:
    passes = _Batches(model, change, record)
    logits = 0 if model.config.shape == "encoder" else model.config.d_vocab
    waiting: list[_ReadText] = []
    for text in _read(model, texts, change):
        longest = max(len(one.tokens) for one in (*waiting, text))
        most = batch or rows_of_length(longest, logits)
        if waiting and len(waiting) >= most:
            yield from passes.traces(waiting)
            waiting = []
        waiting.append(text)
    if waiting:
        yield from passes.traces(waiting)


def _read(
    model: Model, texts: Iterable[str | TokenIds], change: Intervention
) -> Iterator[_ReadText]:
    """The texts as tokens. Raises ValueError as `Model.trace` does."""
    model.require_run()
    for number, text in enumerate(texts):
        try:
            tokens = model.tokens(text)
            check_length(len(tokens), model.config.n_ctx, model.name)
            check_intervention(change, model, (len(tokens), 0))
        except ValueError as refusal:
            refusal.add_note(_note(number, text))
            raise
        yield _ReadText(number, text, tokens)


class _Batches:
    """Passes over several texts (B, T). Whether padding changes nothing is tried with the first texts of
    several lengths: some models of the library read how long the batch is (MPT) or a token's neighbour
    (MobileBERT)."""

    def __init__(self, model: Model, change: Intervention, record: Record) -> None:
        self.model, self.change, self.record = model, change, record
        self.pads: bool | None = None  # None: not tried yet

    def traces(self, texts: Sequence[_ReadText]) -> Iterator[Trace]:
        lengths = [len(text.tokens) for text in texts]
        padded_here = min(lengths) < max(lengths)
        if padded_here and self.pads is None:
            shortest = texts[lengths.index(min(lengths))]
            longest = texts[lengths.index(max(lengths))]
            (together, _), (alone,) = self._passed([shortest, longest]), self._passed([shortest])
            self.pads = _are_alike(together, alone, self.model.precision)
        if padded_here and not self.pads:
            for text in texts:
                yield from self._passed([text])
        else:
            yield from self._passed(texts)

    def _passed(self, texts: Sequence[_ReadText]) -> Iterator[Trace]:
        """The traces of one pass."""
        model, change = self.model, self.change
        if len(texts) == 1:
            yield model.trace(texts[0].text, intervention=change, record=self.record)
            return
        rows, real = padded(model, [text.tokens for text in texts])
        ids = torch.cat([model.ids(row) for row in rows])
        # A decoder hides what comes later, padding too, so it runs as a single text does.
        lengths = [len(text.tokens) for text in texts]
        is_padded = min(lengths) < max(lengths)
        mask = real if model.config.shape == "encoder" and is_padded else None
        with enough_memory(f"{len(texts)} texts of {ids.shape[1]:,} tokens in {model.name}"):
            ended, recorder = forward(
                model, [ids], intervention=change, level=self.record, padding=mask
            )
            for row, (text, length) in enumerate(zip(texts, lengths, strict=True)):
                own = row_of(recorder, row, (len(ids), ids.shape[1]), length)
                result = ended[row : row + 1, :length].clone()
                yield trace_of_pass(model, own, result, text.tokens, text=text.text)


def _are_alike(one: Trace, other: Trace, precision: torch.dtype) -> bool:
    """Whether two passes over a text differ by rounding alone."""
    close = max(ALIKE, ROUNDINGS * torch.finfo(precision).eps)
    mine, its = (
        [array for record in trace.attention for array in _numbers(record)]
        for trace in (one, other)
    )
    return len(mine) == len(its) and all(
        np.abs(ours - theirs).max() <= close * max(1.0, float(np.abs(theirs).max()))
        for ours, theirs in zip(mine, its, strict=True)
    )


def _numbers(attention: Attention) -> list[Array]:
    return [array for array in arrays_of(attention) if array.dtype.kind == "f"]
