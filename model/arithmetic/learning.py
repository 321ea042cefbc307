"""One-hot vectors, loss, sliding windows, cosine similarity, gradients through a deep stack."""

import numpy as np

from model.arithmetic import Array64


def one_hot(ids: Array64, size: int) -> Array64:
    """For each id a row of zeros with a single 1, (id, size)."""
    return np.eye(size)[np.asarray(ids, dtype=np.int64)]


def cross_entropy(logits: Array64, target: Array64) -> float:
    """−Σ target · log softmax(logits) in nats, for one row of logits and its one-hot target."""
    highest = logits.max()
    total = highest + np.log(np.exp(logits - highest).sum())
    return float((target * (total - logits)).sum())


def windows(ids: Array64, length: int, stride: int, offset: int = 0) -> Array64:
    """Every window of `length` ids that is followed by another id, (window, length).

    Args:
        stride: ids from the start of one window to that of the next.
        offset: 1: the targets: the same windows, shifted by one.
    """
    starts = range(offset, len(ids) - length + offset, stride)
    return np.array([ids[start : start + length] for start in starts], dtype=np.float64)


def cosine(first: Array64, second: Array64) -> float:
    """The cosine of the angle between two vectors; 0 where one of them is all zeros."""
    sizes = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / sizes if sizes > 0 else 0.0


def stack_weights(seed: int, depth: int, width: int, gain: float) -> Array64:
    """Random square matrices, (layer, width, width), normally distributed.

    Args:
        depth: how many.
        gain: the entries have variance gain² / width.
    """
    draws = np.random.default_rng(seed).standard_normal((depth, width, width))
    return draws * (gain / np.sqrt(width))


def gradient_by_layer(matrices: Array64, start: Array64, *, shortcut: bool) -> Array64:
    """The length of the gradient at the input of each layer of a stack x ← tanh(Wx), or x + tanh(Wx).

    The loss is the sum of the stack's output. Index 0 is the first layer.
    """
    stream, bends = start, []
    for matrix in matrices:
        inner = np.tanh(matrix @ stream)
        bends.append(1.0 - inner**2)
        stream = stream + inner if shortcut else inner
    gradient = np.ones_like(stream)
    lengths = []
    for matrix, bend in zip(reversed(matrices), reversed(bends), strict=True):
        through = matrix.T @ (bend * gradient)
        gradient = gradient + through if shortcut else through
        lengths.append(float(np.linalg.norm(gradient)))
    return np.array(lengths[::-1])
