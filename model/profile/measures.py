"""One window's numbers for each head of one attention sub-layer. Axes: H heads, Q queries, K keys."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from model.analysis.heads.statistics import after_the_same
from model.nn.attention import score_steps, softmax_rows
from model.nn.recorder import AttentionCall
from model.nn.stages import SINKS
from model.profile.sums import (
    ENTROPY_BINS,
    ENTROPY_STEP,
    LOG_BINS,
    MAP,
    SIGNED_LOG_BINS,
    Field,
    whole,
)
from model.profile.token_classes import CLASSES, DELIMITERS, token_classes
from model.trace.records import Token


@dataclass(frozen=True, eq=False)
class Pairs:
    """The queries and keys of some sub-layers in one window, and what does not depend on the head."""

    queries: Tensor  # (class, Q): 1 where a query is of the class
    keys: Tensor  # (K, class)
    same: Tensor | None  # (Q, K): an earlier or later token with the same id; None across two texts
    induction: (
        Tensor | None
    )  # (Q, K): keys right after an earlier occurrence of the query's token, except the previous token
    query_texts: NDArray[np.str_]  # (Q,)
    key_texts: NDArray[np.str_]  # (K,)

    @classmethod
    def of(cls, queries: tuple[Token, ...], keys: tuple[Token, ...], *, cross: bool) -> "Pairs":
        """The pairs of one window, on the CPU.

        Args:
            cross: whether queries and keys stand in two texts: then no token has come before.
        """
        classes = (_one_hot(token_classes(queries)).T, _one_hot(token_classes(keys)))
        texts = [np.array([token.text for token in tokens]) for tokens in (queries, keys)]
        if cross:
            return cls(*classes, None, None, *texts)
        ids = np.array([token.id for token in keys])
        same = (ids[:, None] == ids) & ~np.eye(len(ids), dtype=bool)
        before = np.eye(len(ids), k=-1, dtype=bool)
        copied = after_the_same(ids.tolist()) & ~before
        return cls(*classes, torch.from_numpy(same), torch.from_numpy(copied), *texts)

    def to(self, device: torch.device) -> "Pairs":
        """The same there."""
        same, copied = (
            one if one is None else one.to(device) for one in (self.same, self.induction)
        )
        return replace(
            self,
            queries=self.queries.to(device),
            keys=self.keys.to(device),
            same=same,
            induction=copied,
        )


def _one_hot(classes: NDArray[np.int64]) -> Tensor:
    return F.one_hot(torch.from_numpy(classes), len(CLASSES)).float()


def weights_of(call: AttentionCall) -> tuple[Tensor, Tensor]:
    """(H, Q, K): the weights of all heads of a sub-layer, as `Attention.weights` gives each; and
    (H or 1, Q, K): where a head may look. They lie where the vectors do."""
    steps, mask = score_steps(call)
    weights = softmax_rows(SINKS.joined(steps["masked"], call.sinks))[0, ..., : call.key.shape[2]]
    if mask is None:
        return weights, weights.new_ones(1, *weights.shape[1:], dtype=torch.bool)
    return weights, mask.reshape(-1, *weights.shape[1:])


def measured(
    weights: Tensor, allowed: Tensor, pairs: Pairs, lengths: Tensor | None, fields: dict[str, Field]
) -> dict[str, Tensor]:
    """(H, size) each: the sums of one sub-layer over one window, but those of logits, as `whole` gives them.

    Args:
        weights: (H, Q, K), rows sum to 1, or to less beside a sink.
        allowed: (H or 1, Q, K): where a head may look.
        lengths: (H, K): of each key's value through W_O; None where W_O is not known.
        fields: the sums of a profile, by name.
    """
    heads, queries, keys = weights.shape
    columns, entropy = weights.sum(1), torch.special.entr(weights).sum(-1)
    offsets = by_offset(weights)
    found = _shares(weights, columns, offsets, pairs, allowed)
    found["rows"] = weights.new_full((heads, 1), float(queries))
    found["entropy"] = entropy.sum(-1, keepdim=True)
    if lengths is not None:
        found["carried"] = (columns * lengths).sum(-1, keepdim=True)
    if pairs.same is not None:
        beside = (fields["by_offset"].size - offsets.shape[1]) // 2
        found["by_offset"] = F.pad(offsets, (beside, beside))
    found["classes"] = (pairs.queries @ weights @ pairs.keys).flatten(1)
    found["class_rows"] = pairs.queries.sum(1).expand(heads, -1)
    if queries >= MAP and keys >= MAP:
        found["map"] = F.adaptive_avg_pool2d(weights, MAP).flatten(1)
        found["map_windows"] = weights.new_ones(heads, 1)
    numbers = {name: whole(values, fields[name].bits) for name, values in found.items()}
    numbers["weights"] = _weights_histogram(weights, allowed)
    bins = (entropy / ENTROPY_STEP).long().clamp_(0, ENTROPY_BINS - 1)
    numbers["entropies"] = histogram(bins, ENTROPY_BINS)
    return numbers


def _shares(
    weights: Tensor, columns: Tensor, offsets: Tensor, pairs: Pairs, allowed: Tensor
) -> dict[str, Tensor]:
    """(H, 1) each: the weight on some kinds of keys, and the number of rows that may attend to such a key."""
    heads, keys = len(weights), weights.shape[2]
    later = 0 if pairs.same is None else 1  # within one text query 0 is the first token itself
    sums: dict[str, Tensor] = {"first": weights[:, later:, 0].sum(1)}
    rows: dict[str, Tensor] = {"first": allowed[:, later:, 0].sum(1)}  # (H or 1,) each
    delimiter = torch.stack([pairs.keys[:, CLASSES.index(name)] for name in DELIMITERS]).sum(0)
    for name, of in (
        ("punctuation", pairs.keys[:, CLASSES.index("punctuation")]),
        ("delimiter", delimiter),
    ):
        sums[name], rows[name] = columns @ of, (allowed & of.bool()).any(-1).sum(1)
    if pairs.same is not None and pairs.induction is not None:
        for name, offset in (("self", 0), ("previous", 1), ("next", -1)):
            sums[name] = offsets[:, keys - 1 + offset]
            rows[name] = allowed.diagonal(-offset, 1, 2).sum(1)
        for name, cells in (("same", pairs.same), ("induction", pairs.induction)):
            sums[name] = weights.flatten(1) @ cells.flatten().float()
            rows[name] = (allowed & cells).any(-1).sum(1)
    found = {name: total[:, None] for name, total in sums.items()}
    return found | {
        f"{name}_rows": count.expand(heads)[:, None].float() for name, count in rows.items()
    }


def by_offset(weights: Tensor) -> Tensor:
    """(H, Q + K - 1): the weight by query - key, from -(K - 1) on."""
    heads, queries, keys = weights.shape
    # Each row is moved one column further than the one above it, so that diagonals become columns.
    padded = F.pad(weights.flip(-1), (0, queries)).flatten(1)
    return padded[:, : queries * (keys + queries - 1)].reshape(heads, queries, -1).sum(1)


def log_bins(numbers: Tensor) -> Tensor:
    """Float32's sign, exponent and the first three digits of its fraction, as one number: eight bins from
    each power of two to the next."""
    return (numbers.contiguous().view(torch.int32) >> 20) & 0xFFF


def histogram(bins: Tensor, count: int) -> Tensor:
    """(H, count): how often each bin occurs in the row of each head."""
    flat = bins.flatten(1).long()
    found = flat.new_zeros(len(flat), count)
    return found.scatter_add_(1, flat, torch.ones_like(flat))  # bincount waits for the largest bin


def _weights_histogram(weights: Tensor, allowed: Tensor) -> Tensor:
    """(H, bin): of the weights of all cells where a head may look."""
    bins = log_bins(weights).clamp_(0, LOG_BINS - 1)  # of what is no number, which is not counted
    found = histogram(bins, LOG_BINS)
    found[:, 0] -= (~allowed).sum((1, 2))  # a forbidden cell is 0
    return found


def effects_histogram(effects: Tensor) -> Tensor:
    """(H, bin): of signed numbers (H, row)."""
    return histogram(log_bins(effects.float()), SIGNED_LOG_BINS)
