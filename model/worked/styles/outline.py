"""A tensor without numbers: its shape and the kind of its numbers, as PyTorch's operations give them."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Kind = Literal["float", "whole", "truth"]
Sizes = tuple[int, ...]
_SAME = set(  # methods that keep the shape
    re.findall(
        r"\w+",
        "exp sqrt sin cos log tanh square abs sigmoid nan_to_num clamp softmax log_softmax tril triu flip",
    )
)
_REDUCING = ("sum", "mean", "var", "std", "norm", "max", "min", "amax", "argmax")


@dataclass(frozen=True)
class Outline:
    """Raises ValueError, as PyTorch does, where sizes do not fit."""

    shape: Sizes
    kind: Kind = "float"

    @property
    def T(self) -> "Outline":  # noqa: N802
        return Outline(self.shape[::-1], self.kind)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> "Outline":
        """Without memory: an array whose strides are 0."""
        parts = index if isinstance(index, tuple) else (index,)
        if any(isinstance(part, Outline) and part.kind == "truth" for part in parts):
            raise ValueError("how many are chosen depends on the numbers")
        numbers = tuple(
            np.zeros(part.shape, int) if isinstance(part, Outline) else part for part in parts
        )
        return Outline(np.broadcast_to(0.0, self.shape)[numbers].shape, self.kind)

    def method(self, name: str) -> Callable[..., Any]:
        """What is called on it. Raises KeyError for what is not known."""
        if name in _SAME:
            return lambda *_, **__: self
        if name in _REDUCING:
            return lambda axis=None, dim=None, keepdim=False, correction=1: self._reduced(
                dim if axis is None else axis, keepdim, "whole" if name == "argmax" else self.kind
            )
        methods: dict[str, Callable[..., Any]] = {
            "long": lambda: Outline(self.shape, "whole"),
            "bool": lambda: Outline(self.shape, "truth"),
            "to": lambda other: Outline(self.shape, other.kind),
            "masked_fill": lambda mask, _: self.with_(mask),
            "transpose": self._transposed,
            "flatten": self._flattened,
            "unflatten": self._unflattened,
            "reshape": lambda *sizes: self._shaped(sizes),
            "view": lambda *sizes: self._shaped(sizes),
            "expand": lambda *sizes: Outline(sizes, self.kind),
            "chunk": self._chunks,
        }
        return methods[name]

    def with_(self, other: Any, kind: Kind | None = None) -> "Outline":
        """Both, number by number."""
        shape = np.broadcast_shapes(self.shape, shape_of(other) or ())
        return Outline(shape, kind or _stronger(self.kind, kind_of(other)))

    def product(self, other: "Outline") -> "Outline":
        """self @ other"""
        left, right = self.shape, other.shape
        if left[-1] != right[-2:][0]:
            raise ValueError(f"{left} @ {right}")
        batch = np.broadcast_shapes(left[:-2], right[:-2])
        rows, columns = left[-2:-1], right[-1:] if len(right) > 1 else ()
        return Outline((*batch, *rows, *columns), self.kind)

    def _reduced(self, axis: int | Sequence[int] | None, keep: bool, kind: Kind) -> "Outline":
        if axis is None:
            return Outline((), kind)
        axes = {one % len(self.shape) for one in ([axis] if isinstance(axis, int) else axis)}
        sizes = enumerate(self.shape)
        left = (1 if at in axes else size for at, size in sizes if keep or at not in axes)
        return Outline(tuple(left), kind)

    def _transposed(self, first: int, second: int) -> "Outline":
        sizes = list(self.shape)
        sizes[first], sizes[second] = sizes[second], sizes[first]
        return Outline(tuple(sizes), self.kind)

    def _flattened(self, start: int = 0) -> "Outline":
        return Outline((*self.shape[:start], math.prod(self.shape[start:])), self.kind)

    def _unflattened(self, axis: int, sizes: Sizes) -> "Outline":
        axis %= len(self.shape)
        parts = Outline(self.shape[axis : axis + 1])._shaped(sizes).shape
        return Outline((*self.shape[:axis], *parts, *self.shape[axis + 1 :]), self.kind)

    def _shaped(self, sizes: Sizes) -> "Outline":
        known = math.prod(size for size in sizes if size != -1)
        whole = math.prod(self.shape)
        found = tuple(whole // known if size == -1 else size for size in sizes)
        if math.prod(found) != whole:
            raise ValueError(f"{self.shape} has no view {sizes}")
        return Outline(found, self.kind)

    def _chunks(self, count: int, axis: int = 0) -> tuple["Outline", ...]:
        if self.shape[axis] % count:
            raise ValueError(f"{self.shape} in {count} chunks")
        sizes = list(self.shape)
        sizes[axis] //= count
        return (Outline(tuple(sizes), self.kind),) * count


def shape_of(meaning: Any) -> Sizes | None:
    """Of a tensor; () of a single number; None of anything else."""
    if isinstance(meaning, Outline):
        return meaning.shape
    return () if isinstance(meaning, (int, float)) else None


def kind_of(meaning: Any) -> Kind:
    if isinstance(meaning, Outline):
        return meaning.kind
    return "whole" if isinstance(meaning, int) else "float"


def _stronger(*kinds: Kind) -> Kind:
    order: tuple[Kind, ...] = ("float", "whole", "truth")
    return next(kind for kind in order if kind in kinds)


def _listed(parts: Any) -> Outline:
    """torch.tensor of numbers, or of lists of numbers."""
    if not isinstance(parts, tuple):
        return Outline((), kind_of(parts))
    inner = [_listed(part) for part in parts]
    if len({one.shape for one in inner}) != 1:
        raise ValueError("rows of different length")
    return Outline((len(parts), *inner[0].shape), _stronger(*(one.kind for one in inner)))


def _stacked(parts: Sequence[Outline], axis: int = 0, dim: int = 0) -> Outline:
    first, axis = parts[0], axis or dim
    sizes = list(first.shape)
    sizes.insert(axis % (len(sizes) + 1), len(parts))
    if len({one.shape for one in parts}) != 1:
        raise ValueError("parts of different shape")
    return Outline(tuple(sizes), _stronger(*(one.kind for one in parts)))


def _joined(parts: Sequence[Outline], axis: int = 0, dim: int = 0) -> Outline:
    sizes, axis = list(parts[0].shape), axis or dim
    sizes[axis] = sum(one.shape[axis] for one in parts)
    return Outline(tuple(sizes), _stronger(*(one.kind for one in parts)))


def _einsum(letters: str, *operands: Outline) -> Outline:
    inputs, result = letters.split("->")
    pairs = zip(inputs.split(","), operands, strict=True)
    sizes = {
        letter: size for part, one in pairs for letter, size in zip(part, one.shape, strict=True)
    }
    return Outline(tuple(sizes[letter] for letter in result))


def _kernel(query: Outline, _: Outline, value: Outline, **__: Any) -> Outline:
    return Outline((*query.shape[:-1], value.shape[-1]))


def _filled(*sizes: int, dtype: Kind = "float") -> Outline:
    return Outline(sizes, dtype)


FUNCTIONS: Mapping[str, Any] = {
    "torch.tensor": _listed,
    "torch.empty": _filled,
    "torch.ones": _filled,
    "torch.zeros": _filled,
    "torch.eye": lambda size, dtype="float": Outline((size, size), dtype),
    "torch.arange": lambda *ends: Outline((len(range(*ends)),), "whole"),
    "torch.full_like": lambda like, _: like,
    "torch.stack": _stacked,
    "torch.cat": _joined,
    "torch.outer": lambda one, other: Outline(one.shape + other.shape, one.kind),
    "torch.diag": lambda one: Outline(one.shape * 2, one.kind),
    "torch.where": lambda condition, one, other: condition.with_(one.with_(other), one.kind),
    "torch.xlogy": lambda one, other: one.with_(other),
    "torch.einsum": _einsum,
    "torch.cos": lambda one: one,
    "torch.tanh": lambda one: one,
    "torch.special.ndtr": lambda one: one,
    "torch.cosine_similarity": lambda one, other, dim: one.with_(other).method("sum")(dim),
    "torch.pi": math.pi,
    "torch.long": "whole",
    "torch.bool": "truth",
    "F.relu": lambda one: one,
    "F.gelu": lambda one, approximate="none": one,
    "F.silu": lambda one: one,
    "F.layer_norm": lambda one, *_, eps=0.0: one,
    "F.one_hot": lambda ids, count: Outline((*ids.shape, count), "whole"),
    "F.cross_entropy": lambda logits, target: Outline(()),
    "F.scaled_dot_product_attention": _kernel,
    "len": len,
    "range": range,
    "max": max,
    "float": float,
    "zip": zip,
}
