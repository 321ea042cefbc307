"""Which of our norms computes what a norm of a hub model does, identified by its output in one pass."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from model.hub.parts import NormPart
from model.hub.probe import CLOSE, Call
from model.nn.config import NormKind

PYTORCHS = 1e-5


def norm_part(call: Call, name: str) -> NormPart:
    """The kind of norm, and the offset of γ, that reproduce this norm's output; no kind where none does."""
    module, read = call.module, call.read
    unknown = NormPart(name, module, None, _epsilon(module), 0.0)
    kinds: tuple[NormKind, ...] = ("layer", "rms")
    if read is None or gamma_of(unknown, read).shape != read.shape[-1:]:
        return unknown
    differences = {
        part: _difference(part, read, call.gave)
        for kind in kinds
        for offset in (0.0, 1.0)
        for part in [replace(unknown, kind=kind, offset=offset)]
    }
    nearest = min(differences, key=differences.__getitem__)
    return nearest if differences[nearest] <= CLOSE else unknown


def gamma_of(part: NormPart, read: Tensor) -> Tensor:
    """(C,): γ of a norm of such tensors; ones where it has none."""
    weight = getattr(part.module, "weight", None)
    if not isinstance(weight, Tensor):
        return torch.ones(read.shape[-1], dtype=read.dtype, device=read.device)
    return weight if part.offset == 0 else weight + part.offset


def beta_of(part: NormPart) -> Tensor | None:
    """(C,), or None."""
    beta = getattr(part.module, "bias", None)
    return beta if isinstance(beta, Tensor) else None


def _epsilon(norm: nn.Module) -> float:
    """The ε of a norm, under the name that its library gives it; without one PyTorch's own."""
    found = [getattr(norm, name, None) for name in ("eps", "variance_epsilon", "epsilon")]
    return next((float(value) for value in found if isinstance(value, float | int)), PYTORCHS)


def _difference(norm: NormPart, read: Tensor, gave: Tensor) -> float:
    """How far a norm's output is from the described one's, relative to its largest number."""
    x, beta = read.double(), beta_of(norm)
    centred = x - x.mean(-1, keepdim=True) if norm.kind == "layer" else x
    normed = centred / (centred.square().mean(-1, keepdim=True) + norm.epsilon).sqrt()
    made = normed * gamma_of(norm, x).double()
    made = made if beta is None else made + beta.double()
    return float((made - gave).abs().max()) / max(float(gave.abs().max()), 1e-6)
