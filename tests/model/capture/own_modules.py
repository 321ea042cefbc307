"""Attention as people write it in exercises and courses, in many spellings, for the tests of capture."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH, HEADS = 16, 4
Heads = Callable[[Tensor, Tensor, Tensor], Tensor]  # (B, H, T, D), (B, H, S, D), (B, H, S, D)


def look_back(queries: int, keys: int) -> Tensor:
    return torch.tril(torch.ones(queries, keys))


def nano_gpt(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
    scores = scores.masked_fill(look_back(q.size(-2), k.size(-2)) == 0, float("-inf"))
    return F.dropout(F.softmax(scores, dim=-1), 0.5) @ v


def annotated_transformer(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(look_back(q.size(-2), k.size(-2))[None, None] == 0, -1e9)
    return torch.matmul(scores.softmax(dim=-1), v)


def in_place(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.mT
    scores /= math.sqrt(q.size(-1))
    scores[..., look_back(q.size(-2), k.size(-2)) == 0] = float("-inf")
    return torch.matmul(nn.Softmax(-1)(scores), v)


def first_gpt(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    seen = look_back(q.size(-2), k.size(-2))
    scores = torch.matmul(q, k.mT) / math.sqrt(q.size(-1))
    return nn.Softmax(-1)(scores * seen - 1e4 * (1 - seen)) @ v


def einsum(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    scores = torch.einsum("bthd,bshd->bhts", q, k) * q.size(-1) ** -0.5
    return torch.einsum("bhts,bshd->bthd", scores.softmax(-1), v).transpose(1, 2)


def heads_in_the_batch(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    texts = len(q)
    q, k, v = (x.reshape(texts * HEADS, -1, WIDTH // HEADS) for x in (q, k, v))
    scores = torch.bmm(q, k.transpose(1, 2)) / 2
    return torch.bmm(scores.softmax(2), v).view(texts, HEADS, -1, WIDTH // HEADS)


def one_key_head(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.einsum("bhtd,bsd->bhts", q, k[:, 0]) / 2
    return torch.einsum("bhts,bsd->bhtd", scores.softmax(-1), v[:, 0])


def softmax_by_hand(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.mT / 2
    powers = torch.exp(scores - scores.max(-1, keepdim=True).values)
    return (powers / powers.sum(-1, keepdim=True)) @ v


def scaled_queries(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return ((q * 0.5) @ k.mT).softmax(-1) @ v


def capped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (3 * torch.tanh(q @ k.mT / 2 / 3)).softmax(-1) @ v


def columns_first(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (v.mT @ (k @ q.mT / 2).softmax(-2)).mT


def distances(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    far = (torch.arange(k.size(-2)) - torch.arange(q.size(-2))[:, None]).abs()
    slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625])[:, None, None]
    return (q @ k.mT / 2 - slopes * far).softmax(-1) @ v


def sinks(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    column = torch.tensor([0.5, 1.0, -1.0, 2.0]).view(1, -1, 1, 1).expand(*q.shape[:3], 1)
    return torch.cat([q @ k.mT / 2, column], -1).softmax(-1)[..., :-1] @ v


def shared_keys(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    k, v = k[:, :2], v[:, :2]
    return F.scaled_dot_product_attention(q, k, v, dropout_p=0.5, is_causal=True, enable_gqa=True)


def where(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    seen = look_back(q.size(-2), k.size(-2)).bool()
    return torch.where(seen, q @ k.mT / 2, torch.finfo(q.dtype).min).softmax(-1) @ v


SPELLINGS: tuple[Heads, ...] = (
    nano_gpt, annotated_transformer, in_place, first_gpt, einsum, heads_in_the_batch, one_key_head,
    softmax_by_hand, scaled_queries, capped, columns_first, distances, sinks, shared_keys, where,
)  # fmt: skip


class OwnAttention(nn.Module):
    """An exercise's multi-head attention; `written` is how its heads are spelled."""

    def __init__(self, written: Heads) -> None:
        super().__init__()
        self.written = written
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Tensor, source: Tensor | None = None) -> Tensor:
        source = x if source is None else source
        q, k, v = (self.split(f(y)) for f, y in zip(self.maps, (x, source, source), strict=True))
        self.heads = self.written(q, k, v)  # some exercises keep what they show
        return self.out(self.heads.transpose(1, 2).flatten(2))

    @property
    def maps(self) -> tuple[nn.Linear, ...]:
        return self.query, self.key, self.value

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)
