"""How a hub model rotates its queries: which dimensions form a pair, found by a pass without rotation.

A rotation keeps the length of each pair, so the pairs are those whose lengths are equal in both passes.
Axes: B batch, H heads, T tokens, D width of a head, R dimensions that turn.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from model.hub.hooks import unturned
from model.hub.inline_attention import is_inline
from model.hub.probe import CLOSE, Probe, hooked, is_rotary, near
from model.nn.attention import rotate
from model.nn.config import RotaryPairs
from model.nn.intervention import Intervention
from model.nn.recorder import Recorder, recording

BASE = 10_000.0  # of the angles, where a config names no other


def rotary_pairs(
    rotary: Sequence[nn.Module], found: Probe, again: Callable[[], Probe]
) -> tuple[RotaryPairs, int]:
    """Which dimensions form a pair, and how many of a head are rotated. `again` repeats the pass. Without
    rotation these are halves of 0."""
    turns = next((call.gave for call in found.calls if is_rotary(call.module)), None)
    width = 0 if turns is None else turns.shape[-1] * (2 if turns.is_complex() else 1)
    if not rotary and any(is_inline(event.module) for event in found.attended):
        return _own_rotation(found, again)
    if not rotary or not width:
        return "halves", 0
    # Every position gets the cosines and sines of position 0.
    with hooked((part, lambda module, read, gave: unturned(gave)) for part in rotary):
        still = again()
    for turned, plain in zip(found.attended, still.attended, strict=True):
        if not torch.equal(turned.query, plain.query):  # the first layer that turns its queries
            return _pairs_of_head(plain.query, turned.query, width), width
    return "other", width


def _own_rotation(found: Probe, again: Callable[[], Probe]) -> tuple[RotaryPairs, int]:
    """The same of modules that rotate queries and keys themselves (GPT-J)."""
    with recording(Recorder(Intervention(positions=False))):
        still = again()
    for turned, plain in zip(found.attended, still.attended, strict=True):
        apart = (turned.query != plain.query).flatten(0, -2).any(0).nonzero()
        if not len(apart):
            continue
        width = int(apart.max()) // 2 * 2 + 2
        pairs = _pairs_of_head(plain.query, turned.query, width)
        angles = standard_angles(turned.query.shape[-2], width, turned.query.device)
        query = plain.query[..., :width]
        if pairs == "neighbours":
            query = torch.cat([query[..., ::2], query[..., 1::2]], -1)
        expected = rotate(query, angles)
        if pairs == "neighbours":
            expected = expected.unflatten(-1, (2, -1)).transpose(-1, -2).flatten(-2)
        return (pairs if near(turned.query[..., :width], expected) else "other"), width
    return "halves", 0


def standard_angles(length: int, width: int, device: torch.device) -> Tensor:
    """(T, R/2): position / base^(2i/R) (Su et al. 2021, 3.2)."""
    where = torch.arange(length, device=device, dtype=torch.float32)
    return where[:, None] / BASE ** (torch.arange(0, width, 2, device=device) / width)


def _pairs_of_head(plain: Tensor, turned: Tensor, width: int) -> RotaryPairs:
    """The kind of pairs among the first dimensions of (B, H, T, D). Where the others do not stay as they
    are, the turned ones stand elsewhere: behind them in DeepSeek."""
    stays = torch.equal(turned[..., width:], plain[..., width:])
    return _pairs(plain[..., :width], turned[..., :width]) if stays else "other"


def _pairs(plain: Tensor, turned: Tensor) -> RotaryPairs:
    """The kind of pairs in (B, H, T, R) that keep their lengths."""
    lengths: dict[RotaryPairs, Callable[[Tensor], Tensor]] = {
        "halves": lambda x: x.unflatten(-1, (2, -1)).norm(dim=-2),
        "neighbours": lambda x: x.unflatten(-1, (-1, 2)).norm(dim=-1),
    }
    apart = {
        name: float((length(turned) - length(plain)).abs().max())
        for name, length in lengths.items()
    }
    nearest = min(apart, key=apart.__getitem__)
    return nearest if apart[nearest] <= CLOSE * float(plain.abs().max()) else "other"
