"""The four multi-head classes that study notes write, in our words: all compute one function.

(a) bias-free, einsum, filled with -1e20 before the scores are scaled; (b) one head without output
matrix; (c) biases, filled with -1e9 after scaling; (d) minus infinity and dropout on the weights.
"""

import math
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from model.nn.attention import MultiHeadAttention, attend
from model.nn.config import TransformerConfig
from model.nn.masks import causal_mask, padding_mask
from model.nn.places import Place
from tests.cases import cases

BATCH, LENGTH, WIDTH, HEADS = 2, 6, 24, 3
PLACE = Place("encoder", 0, "self")


class EinsumAttention(nn.Module):
    """(a)"""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.head_dim = heads, width // heads
        self.values = nn.Linear(width, width, bias=False)
        self.keys = nn.Linear(width, width, bias=False)
        self.queries = nn.Linear(width, width, bias=False)
        self.fc_out = nn.Linear(width, width, bias=False)

    def forward(self, values: Tensor, keys: Tensor, queries: Tensor, mask: Tensor | None) -> Tensor:
        def split(x: Tensor) -> Tensor:
            return x.reshape(x.shape[0], x.shape[1], self.heads, self.head_dim)

        v, k, q = split(self.values(values)), split(self.keys(keys)), split(self.queries(queries))
        energy = torch.einsum("nqhd,nkhd->nhqk", q, k)
        if mask is not None:
            energy = energy.masked_fill(mask == 0, -1e20)
        weights = torch.softmax(energy / self.head_dim**0.5, dim=3)
        context = torch.einsum("nhql,nlhd->nqhd", weights, v)
        return self.fc_out(context.reshape(x_shape(queries, self.heads * self.head_dim)))


class SelfAttention(nn.Module):
    """(b)"""

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.w_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.w_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: Tensor) -> Tensor:
        keys, queries, values = self.w_key(x), self.w_query(x), self.w_value(x)
        scores = queries @ keys.transpose(1, 2)
        return torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1) @ values


class BiasedAttention(nn.Module):
    """(c)"""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        def split(x: Tensor) -> Tensor:
            return x.view(x.shape[0], -1, self.num_heads, self.d_k).transpose(1, 2)

        query, key, value = split(self.wq(q)), split(self.wk(k)), split(self.wv(v))
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        context = torch.matmul(scores.softmax(-1), value)
        return self.wo(context.transpose(1, 2).contiguous().view(x_shape(q, WIDTH)))


class CausalAttention(nn.Module):
    """(d)"""

    def __init__(self, width: int, context: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.project = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("future", torch.triu(torch.ones(context, context), diagonal=1).bool())

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        parts = (linear(x).chunk(self.heads, -1) for linear in (self.query, self.key, self.value))
        contexts = []
        for q, k, v in zip(*parts, strict=True):
            scores = (q @ k.mT).masked_fill(self.future[:length, :length], -torch.inf)
            contexts.append(self.dropout((scores / q.shape[-1] ** 0.5).softmax(-1)) @ v)
        return self.project(torch.cat(contexts, -1))


def x_shape(x: Tensor, width: int) -> tuple[int, int, int]:
    return x.shape[0], x.shape[1], width


def ours(
    query: nn.Linear, key: nn.Linear, value: nn.Linear, output: nn.Linear, **kind: object
) -> MultiHeadAttention:
    """Our attention with the same weights."""
    place = Place("decoder", 0, "causal") if kind.pop("causal", False) else PLACE
    config = TransformerConfig(
        "encoder",
        1,
        LENGTH,
        query.in_features,
        int(str(kind.pop("heads", HEADS))),
        encoder_layers=1,
        qkv_bias=query.bias is not None,
        output_bias=output.bias is not None,
    )
    attention = MultiHeadAttention(config, place)
    pairs = zip(("query", "key", "value", "output"), (query, key, value, output), strict=True)
    for name, linear in pairs:
        getattr(attention, name).load_state_dict(linear.state_dict())
    return attention


def masks() -> dict[str, Tensor | None]:
    real = torch.tensor([[True] * LENGTH, [True] * 4 + [False] * 2])
    return {
        "none": None,
        "causal": causal_mask(LENGTH)[None, None],
        "padding": padding_mask(real),
        "combined": padding_mask(real) & causal_mask(LENGTH),
    }


@pytest.fixture
def x() -> Tensor:
    return torch.randn(BATCH, LENGTH, WIDTH, generator=torch.Generator().manual_seed(1))


def test_the_class_is_our_attention(x: Tensor, subtests: pytest.Subtests) -> None:
    for mask, (kind, maps) in product(
        masks(),
        [
            (EinsumAttention, ("queries", "keys", "values", "fc_out")),
            (BiasedAttention, ("wq", "wk", "wv", "wo")),
        ],
    ):
        with subtests.test(mask=mask, maps=maps):
            torch.manual_seed(0)
            theirs = kind(WIDTH, HEADS)
            same = ours(*(getattr(theirs, name) for name in maps))
            torch.testing.assert_close(same(x, mask=masks()[mask]), theirs(x, x, x, masks()[mask]))


def test_a_reads_another_sequence_as_our_cross_attention_does(x: Tensor) -> None:
    theirs = EinsumAttention(WIDTH, HEADS)
    source = torch.randn(BATCH, 9, WIDTH)
    same = ours(theirs.queries, theirs.keys, theirs.values, theirs.fc_out)
    torch.testing.assert_close(same(x, source), theirs(source, source, x, None))


@cases("bias", [False, True])
def test_b_the_single_head_class_is_our_attention_with_one_head(bias, x: Tensor) -> None:
    torch.manual_seed(0)
    theirs = SelfAttention(WIDTH, WIDTH, qkv_bias=bias)
    unchanged = nn.Linear(WIDTH, WIDTH, bias=False)
    nn.init.eye_(unchanged.weight)
    same = ours(theirs.w_query, theirs.w_key, theirs.w_value, unchanged, heads=1)
    torch.testing.assert_close(same(x), theirs(x))


def test_b_with_another_width_out_is_our_attend(x: Tensor) -> None:
    theirs = SelfAttention(WIDTH, 10)
    vectors = (linear(x)[:, None] for linear in (theirs.w_query, theirs.w_key, theirs.w_value))
    torch.testing.assert_close(attend(*vectors, PLACE)[:, 0], theirs(x))


def test_d_the_causal_class_with_dropout_is_our_attention_in_evaluation(x: Tensor) -> None:
    theirs = CausalAttention(WIDTH, 16, HEADS, dropout=0.5).eval()
    same = ours(theirs.query, theirs.key, theirs.value, theirs.project, causal=True)
    torch.testing.assert_close(same(x), theirs(x))
    assert not torch.allclose(same(x), theirs.train()(x))
