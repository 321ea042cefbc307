"""Three small transformers as people write them in plain PyTorch, and copies of them with one thing wrong.

A GPT-2 (learned positions, layer norm before, GELU), a Llama (rotary positions, RMS norm, key heads for two
queries each, a gate) and a BERT (no mask, norm on the sum). Axes: B T C, B H T D.
"""

import math
from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH, HEADS, HIDDEN, TOKENS, VOCABULARY, LAYERS = 32, 4, 48, 9, 40, 3
Kind = Literal["gpt", "llama", "bert"]
KINDS: tuple[Kind, ...] = ("gpt", "llama", "bert")
AT = 1  # the layer that is wrong
IDS = (3, 1, 4, 1, 5, 9, 2, 6, 5)


class RmsNorm(nn.Module):
    def __init__(self, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon, self.weight = epsilon, nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * self.weight


def turned(x: Tensor, base: float = 10_000.0, *, first: int = 0, halves: bool = True) -> Tensor:
    """Rotary positions. (B, H, T, D)"""
    tokens, width = x.shape[-2:]
    steps = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.arange(first, first + tokens)[:, None] * steps
    cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    one, other = x.chunk(2, -1) if halves else (x[..., ::2], x[..., 1::2])
    both = (one * cosine - other * sine, other * cosine + one * sine)
    return torch.cat(both, -1) if halves else torch.stack(both, -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, kind: Kind, fault: str) -> None:
        super().__init__()
        self.kind, self.fault = kind, fault
        groups = 2 if kind == "llama" else HEADS
        d = WIDTH // HEADS
        self.query = nn.Linear(WIDTH, HEADS * d)
        self.key, self.value = nn.Linear(WIDTH, groups * d), nn.Linear(WIDTH, groups * d)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        fault, d = self.fault, WIDTH // HEADS
        maps = [self.query, self.key, self.value]
        if fault == "keys and values exchanged":
            maps = [self.query, self.value, self.key]
        q, k, v = (one(x).unflatten(-1, (-1, d)).transpose(1, 2) for one in maps)
        if fault == "W_Q transposed":
            q = (
                F.linear(x, self.query.weight.T, self.query.bias)
                .unflatten(-1, (-1, d))
                .transpose(1, 2)
            )
        if fault == "key heads exchanged":
            k = k.flip(1)
        if self.kind == "llama":
            q, k = self.turn(q), self.turn(k)
            v = turned(v) if fault == "values turned" else v
            k, v = (
                one.repeat(1, 2, 1, 1)
                if fault == "key heads tiled"
                else one.repeat_interleave(2, 1)
                for one in (k, v)
            )
        factor = {"not scaled": 1.0, "scaled twice": 1 / d}.get(fault, 1 / math.sqrt(d))
        scores = q @ k.mT * factor
        scores = scores.masked_fill(~self.mask(x.shape[1]), torch.finfo(scores.dtype).min)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def turn(self, x: Tensor) -> Tensor:
        match self.fault:
            case "no rotary positions":
                return x * 1.0
            case "rotary base":
                return turned(x, 500_000.0)
            case "rotary base of six digits":
                return turned(x, 123_456.0)
            case "rotary pairs":
                return turned(x, halves=False)
            case "rotary positions shifted":
                return turned(x, first=1)
        return turned(x)

    def mask(self, tokens: int) -> Tensor:
        whole = torch.ones(tokens, tokens, dtype=torch.bool)
        if self.fault == "mask shifted":
            return whole.tril(1)
        is_open = (self.kind == "bert") != (self.fault == "mask of the other kind")
        return whole if is_open else whole.tril()


class FeedForward(nn.Module):
    def __init__(self, kind: Kind, fault: str) -> None:
        super().__init__()
        self.kind, self.fault = kind, fault
        self.w_in, self.w_out = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
        self.gate = nn.Linear(WIDTH, HIDDEN) if kind == "llama" else None

    def forward(self, x: Tensor) -> Tensor:
        is_other = self.fault == "activation"
        if self.gate is None:
            return self.w_out(F.silu(self.w_in(x)) if is_other else F.gelu(self.w_in(x)))
        gate, value = self.gate(x), self.w_in(x)
        if self.fault == "gate and values exchanged":
            gate, value = value, gate
        return self.w_out((F.gelu(gate) if is_other else F.silu(gate)) * value)


class Block(nn.Module):
    def __init__(self, kind: Kind, fault: str) -> None:
        super().__init__()
        self.fault = fault
        self.is_post = (kind == "bert") != (fault == "norm place")
        is_rms = (kind == "llama") != (fault == "norm kind")
        make: Callable[[], nn.Module] = RmsNorm if is_rms else lambda: nn.LayerNorm(WIDTH)
        self.attention, self.feed_forward = Attention(kind, fault), FeedForward(kind, fault)
        self.norms = nn.ModuleList([make(), make()])

    def forward(self, x: Tensor) -> Tensor:
        parts = zip(self.norms, (self.attention, self.feed_forward), strict=True)
        for norm, part in parts:
            written = part(x if self.is_post else norm(x))
            lacks = isinstance(part, Attention) and self.fault == "no residual connection"
            x = written * 1.0 if lacks else x + written
            x = norm(x) if self.is_post else x
        return x


class Small(nn.Module):
    """Logits (B, T, vocabulary) of ids (B, T)."""

    def __init__(self, kind: Kind, fault: str = "") -> None:
        super().__init__()
        self.kind, self.fault = kind, fault
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(TOKENS + 1, WIDTH) if kind != "llama" else None
        self.blocks = nn.ModuleList(Block(kind, fault if at == AT else "") for at in range(LAYERS))
        is_open = fault == "norm place"  # in one layer alone: all are, as a stream needs
        if is_open:
            self.blocks = nn.ModuleList(Block(kind, fault) for _ in range(LAYERS))
        is_post = (kind == "bert") != is_open
        self.final = None if is_post else RmsNorm() if kind == "llama" else nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids)
        if self.positions is not None and self.fault != "no positions":
            first = 1 if self.fault == "positions shifted" else 0
            x = x + self.positions(torch.arange(first, first + ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(x if self.final is None else self.final(x))


def small(kind: Kind, fault: str = "") -> Small:
    """A module with the same weights each time, by name, and one fault."""
    module = Small(kind, fault)
    for name, parameter in module.named_parameters():
        draws = torch.Generator().manual_seed(sum(map(ord, name)))
        noise = torch.randn(parameter.shape, generator=draws)
        is_gain = ("norm" in name and name.endswith("weight")) or name == "final.weight"
        parameter.data = 1 + noise / 3 if is_gain else noise / parameter.shape[-1] ** 0.5
        if name == "tokens.weight":
            parameter.data *= 3
        if fault == "norm kind" and name == f"blocks.{AT}.norms.0.bias":
            parameter.data.zero_()  # the RMS norm has none
    block: Block = module.blocks[AT]  # type: ignore[assignment]
    with torch.no_grad():
        match fault:
            case "no bias":
                block.attention.query.bias.zero_()
            case "no bias of the output":
                block.attention.out.bias.zero_()
            case "bias of the logits":
                module.head.bias = nn.Parameter(torch.arange(VOCABULARY) / 9)
            case "norm gain":
                block.norms[0].weight.fill_(1.0)  # type: ignore[operator]
            case "norm epsilon":
                name = "epsilon" if isinstance(block.norms[0], RmsNorm) else "eps"
                setattr(block.norms[0], name, 1e-2)
            case "precision":
                module.bfloat16()
            case "parameters rounded":
                module.bfloat16().float()
    return module.eval()
