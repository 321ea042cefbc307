"""Two sentences of different length as one batch: what the padding mask hides, and what it would let in.

Axes: B sentences, T tokens of the longer one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from model.nn.recorder import Recorder
from model.run.passes import forward
from model.system.remote import asked
from model.trace.arrays import Array, BoolArray
from model.trace.collect import attention_record, row_of
from model.trace.records import Attention, Token

if TYPE_CHECKING:
    from model.run.model import Model

_PADS = ("[PAD]", "<pad>")  # the first token of many vocabularies


@dataclass(frozen=True, eq=False)
class Sentence:
    """One sentence of the batch, in three passes. Records by the names of the sub-layers."""

    tokens: tuple[Token, ...]  # T, with padding at the end
    count: int  # of its own tokens
    masked: Mapping[str, Attention]  # in the batch, with the padding mask
    open: Mapping[str, Attention]  # in the batch, without it
    alone: Mapping[str, Attention]
    apart: float  # of its own results, at most: in the batch with the mask and alone
    apart_open: float  # the same without the mask

    @property
    def padding(self) -> BoolArray:
        """(T,): True = a token of the sentence."""
        return np.arange(len(self.tokens)) < self.count

    def taken(self, name: str, head: int) -> Array:
        """(its own tokens,): the weight that padding takes of each without the padding mask."""
        weights: Array = self.open[name].weights(head)[: self.count, self.count :].sum(-1)
        return weights

    def weights_apart(self) -> float:
        """Largest difference between the weights in the batch with the mask and alone."""
        inside = slice(self.count)
        return max(
            float(np.abs(self.masked[name].weights(head)[inside, inside] - one.weights(head)).max())
            for name, one in self.alone.items()
            for head in range(one.heads)
        )


@asked
def padded_batch(model: "Model", first: str, second: str) -> tuple[Sentence, Sentence]:
    """Both sentences, run by the unchanged model as one batch with and without the padding mask, and alone.

    Results are logits, or the last states of an encoder. Raises ValueError for a text that cannot be run,
    and for an encoder–decoder, whose decoder would need two targets.
    """
    if model.config.shape == "encoder-decoder":
        raise ValueError(
            f"{model.name} reads a source and a target; a batch of two sentences is shown with a model "
            "that reads one text."
        )
    texts = [model.trace(text).tokens for text in (first, second)]
    rows, real = padded(model, texts)
    ids = torch.cat([model.ids(row) for row in rows])
    by_mask, masked = forward(model, [ids], level="attention", padding=real)
    without, unmasked = forward(model, [ids], level="attention")
    found = []
    for row, tokens in enumerate(texts):
        result, alone = forward(model, [ids[row : row + 1, : len(tokens)]], level="attention")
        found.append(
            Sentence(
                tokens=rows[row],
                count=len(tokens),
                masked=_records(model, masked, row, ids.shape),
                open=_records(model, unmasked, row, ids.shape),
                alone=_records(model, alone, 0, (1, len(tokens))),
                apart=_gap(by_mask[row, : len(tokens)], result[0]),
                apart_open=_gap(without[row, : len(tokens)], result[0]),
            )
        )
    return found[0], found[1]


def padded(
    model: "Model", texts: Sequence[tuple[Token, ...]]
) -> tuple[list[tuple[Token, ...]], Tensor]:
    """Texts filled up at their ends to the length of the longest, and (B, T): True = a token of the text."""
    longest = max(map(len, texts))
    # The id that fills up: the vocabulary's own for this, its end mark, or any; the mask hides it.
    (first,) = model.tokenizer.named([0])
    end = model.tokenizer.end
    (pad,) = model.tokenizer.named([(0 if first.text in _PADS or end is None else end)])
    rows = [tokens + (pad,) * (longest - len(tokens)) for tokens in texts]
    real = [[at < len(tokens) for at in range(longest)] for tokens in texts]
    return rows, torch.tensor(real).to(model.device, non_blocking=True)


def _records(
    model: "Model", recorder: Recorder, row: int, size: Sequence[int]
) -> Mapping[str, Attention]:
    """The records of one sentence of a batch, with its padding."""
    return {
        layer.place.name: attention_record(layer, (), model.config.projection)
        for layer in row_of(recorder, row, (size[0], size[1]), size[1]).attention
    }


def _gap(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max())
