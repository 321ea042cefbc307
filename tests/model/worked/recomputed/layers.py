"""Sections 7 to 9: heads and shapes, positions, norms. With torch or with loops."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import (
    batch_norm,
    embedding,
    layer_norm,
)

from tests.model.worked.recomputed.steps import Inputs, Steps, attend, weights_of


def one_matrix_then_split(v: Inputs) -> Steps:
    query = v["x"] @ v["q_matrix"]
    heads = query.chunk(int(v["heads"]), dim=1)
    return [query, *heads, torch.zeros_like(query)]


def head_widths(v: Inputs) -> Steps:
    each = v["widths"] / v["heads"]
    columns = torch.arange(int(v["widths"][1])).chunk(int(v["heads"][1]))
    table = torch.stack([torch.stack([part[0], part[-1]]) for part in columns])
    return [each, table[0], table]


def shape_walk(v: Inputs) -> Steps:
    """The same walk with real tensors, by PyTorch's own view and transpose."""
    batch, length, width, heads = (int(v[name]) for name in ("batch", "length", "width", "heads"))
    x = torch.zeros(batch, length, width)
    project = nn.Linear(width, width, bias=False)
    query = project(x)
    cut = query.view(batch, length, heads, width // heads)
    first = cut.transpose(1, 2)
    scores = first @ first.transpose(-2, -1)
    weights = scores.softmax(-1)
    context = weights @ first
    again = context.transpose(1, 2)
    merged = again.flatten(2)
    walk = [x, query, cut, first, scores, weights, context, again, merged, project(merged)]
    return [torch.tensor(tensor.shape) for tensor in walk]


def shape_walk_c(v: Inputs) -> Steps:
    return shape_walk(v)


def shape_walk_d(v: Inputs) -> Steps:
    return shape_walk(v)


def contiguous_before_merge(v: Inputs) -> Steps:
    shape = tuple(int(v[name]) for name in ("length", "heads", "head_width"))
    whole = torch.arange(math.prod(shape)).view(shape)
    swapped = whole.transpose(0, 1)
    flags = [part.is_contiguous() for part in (whole, swapped, swapped.contiguous())]
    strides = torch.tensor([whole.stride(), swapped.stride()])
    return [strides, swapped.flatten(0, 1), torch.tensor(flags)]


def projection_parameters(v: Inputs) -> Steps:
    width = int(v["width"])

    def count(size: int) -> int:
        module = nn.MultiheadAttention(size, 1, bias=False, device="meta")
        return sum(part.numel() for part in module.parameters())

    each = torch.full((4,), nn.Linear(width, width, bias=False, device="meta").weight.numel())
    counts = torch.tensor([count(width), count(2 * width), count(4 * width)])
    return [each, counts[0], counts]


def words_and_tokens(v: Inputs) -> Steps:
    return [v["rate"], v["tokens"] * v["rate"]]


def memory_and_operations(v: Inputs) -> Steps:
    def stages(batch: int, n: int, d: int, h: int) -> tuple[list[int], list[int]]:
        pairs = sum(1 for _ in range(h) for _ in range(n) for _ in range(n)) * batch
        numbers = [3 * batch * n * d, pairs, pairs, pairs, batch * n * d, batch * n * d]
        one_pair = 2 * d // h
        flops = [
            3 * batch * n * d * 2 * d, pairs * one_pair, pairs, 5 * pairs, pairs * one_pair,
            batch * n * d * 2 * d,
        ]  # fmt: skip
        return numbers, flops

    batch, n, d, h = (int(v[name]) for name in ("batch", "length", "width", "heads"))
    numbers, flops = (torch.tensor(part).double() for part in stages(batch, n, d, h))
    twice = [torch.tensor(part).double() for part in stages(batch, 2 * n, d, h)]
    growth = torch.stack([twice[0] / numbers, twice[1] / flops], 1)
    return [numbers, numbers * v["bytes"] / 1024 / 1024, flops, flops.sum(), growth]


def encoding(positions: Tensor, width: int, base: float) -> tuple[Tensor, Tensor, Tensor]:
    powers = torch.tensor([2 * (c // 2) / width for c in range(width)], dtype=torch.float64)
    angles = torch.tensor(
        [[float(p) / base ** float(e) for e in powers] for p in positions], dtype=torch.float64
    )
    table = angles.clone()
    table[:, 0::2], table[:, 1::2] = angles[:, 0::2].sin(), angles[:, 1::2].cos()
    return powers, angles, table


def sinusoidal_table(v: Inputs) -> Steps:
    return list(encoding(v["positions"], int(v["width"]), float(v["base"])))


def embedding_plus_position(v: Inputs) -> Steps:
    table = encoding(torch.arange(3), 4, float(v["base"]))[2]
    return [table, v["embedding"] + table]


def learned_positions(v: Inputs) -> Steps:
    looked_up = embedding(torch.arange(3), v["table"])
    table = nn.Embedding(int(v["context"]), int(v["width"]), device="meta")
    return [v["embedding"] + looked_up, torch.tensor([0, table.weight.numel()])]


def shift_is_a_rotation(v: Inputs) -> Steps:
    angle, turn = v["position"] * v["rate"], v["shift"] * v["rate"]
    here = torch.stack([angle.sin(), angle.cos()])
    there = torch.stack([(angle + turn).sin(), (angle + turn).cos()])
    matrix = torch.matrix_exp(torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64) * turn)
    mirror = torch.stack([here[0], -here[1]])
    return [torch.stack([here, mirror]), matrix, there, there, torch.zeros(2)]


def rotary_positions(v: Inputs) -> Steps:
    """Rotation as multiplication of complex numbers."""
    query, key = torch.view_as_complex(v["query"]), torch.view_as_complex(v["key"])

    def at(vector: Tensor, position: Tensor) -> Tensor:
        return vector * torch.polar(torch.ones_like(position), position * v["rate"])

    m, n, shift = v["m"], v["n"], v["shift"]
    turned = torch.view_as_real(torch.stack([at(query, m), at(key, n)]))
    places = [(m, n), (m + shift, n + shift), (m + shift, n)]
    scores = [(at(query, q) * at(key, k).conj()).real for q, k in places]
    return [turned, torch.stack(scores)]


def lion_kills_tiger(v: Inputs) -> Steps:
    x, table = v["embedding"], encoding(torch.arange(3), 4, 10_000.0)[2]
    turned = x.flip(0)
    plain, placed = attend(x, x, x), attend(x + table, x + table, x + table)
    other = attend(turned + table, turned + table, turned + table)
    return [plain, plain.flip(0), torch.zeros(3, 4), placed, other, placed - other.flip(0)]


def layer_norm_by_hand(v: Inputs) -> Steps:
    x, epsilon = v["x"], float(v["epsilon"])
    variance = x.var(correction=0)
    unit = layer_norm(x, (4,), eps=epsilon)
    output = layer_norm(x, (4,), v["gamma"], v["beta"], epsilon)
    wrong = (x - x.mean()) / (variance + epsilon)
    both = torch.stack([unit.var(correction=0), wrong.var(correction=0)])
    root = (variance + epsilon).sqrt()
    return [x.mean(), x - x.mean(), variance, root, unit, output, wrong, both]


def biased_and_unbiased(v: Inputs) -> Steps:
    x, epsilon = v["x"], v["epsilon"]
    variances = torch.stack([x.var(correction=0), x.var(correction=1)])
    units = torch.stack([(x - x.mean()) / (part + epsilon).sqrt() for part in variances])
    off = []
    for width in v["widths"].int().tolist():
        row = torch.arange(width, dtype=torch.float64)
        off.append(100 * (1 - row.std(correction=0) / row.std(correction=1)))
    return [variances, units, torch.stack(off)]


def where_the_norm_stands(v: Inputs) -> Steps:
    x = v["x"]
    added = x + v["matrix"].T @ x
    post = layer_norm(added, (4,))
    entering = layer_norm(x, (4,))
    pre = x + v["matrix"].T @ entering
    final = layer_norm(pre, (4,))
    statistics = torch.stack(
        [torch.stack([row.mean(), row.var(correction=0)]) for row in (post, pre, final)]
    )
    return [added, post, entering, pre, final, statistics]


def houses(v: Inputs) -> Steps:
    table, epsilon = v["houses"], float(v["epsilon"])
    padded = nn.functional.pad(table, (0, 0, 0, 1))

    def by_column(rows: Tensor) -> Tensor:
        return batch_norm(rows, None, None, training=True, eps=epsilon)

    def statistics(rows: Tensor) -> Tensor:
        return torch.stack([rows.mean(0), rows.var(0, correction=0)])

    return [
        torch.cat([table, v["prices"][:, None]], 1),
        statistics(table),
        by_column(table),
        layer_norm(table, (2,), eps=epsilon),
        statistics(padded),
        by_column(padded),
        layer_norm(padded, (2,), eps=epsilon),
    ]


def pixels_min_max(v: Inputs) -> Steps:
    pixels = v["pixels"]
    scaled = (pixels - v["lowest"]) / (v["highest"] - v["lowest"])
    return [scaled, (pixels - pixels.mean()) / pixels.std(correction=0)]


def induction_circuit(v: Inputs) -> Steps:
    """As maps W_Q, W_K, W_V, W_O of width 4, run by PyTorch's own attention, which divides by 2."""
    word, place, before = torch.eye(12, dtype=torch.float64).split(4, dim=1)
    x = word.T[v["ids"].long()] + place.T
    past = torch.cat([place[:, 1:], torch.zeros(12, 1, dtype=torch.float64)], dim=1)
    look, match = v["look"] * past @ place.T, v["match"] * word @ before.T
    written, copied = word @ before.T, v["copy"] * word @ word.T
    h = attend(x @ past * v["look"] * 2, x @ place, x @ word, causal=True) @ before.T
    stream, key = x + h, (x + h) @ before
    query, value = stream @ word * v["match"], stream @ word * v["copy"]
    both = stream[-1] @ word + attend(2 * query, key, value, causal=True)[-1]
    alone = x @ word, torch.zeros(4, 4, dtype=torch.float64)
    bare = alone[0][-1] + attend(*alone, alone[0] * v["copy"], causal=True)[-1]
    ratios = [
        (written @ read).square().sum().sqrt() / 2 / read.square().sum().sqrt()
        for read in (match, match.T, copied)
    ]
    return [
        x,
        look,
        written,
        torch.einsum("ia,ab,jb->ij", x, look, x),
        weights_of(x @ past * v["look"] * 2, x @ place, causal=True),
        h,
        match,
        copied,
        v["match"] * torch.eye(4, dtype=torch.float64),
        torch.stack(ratios),
        query @ (x @ before).T,
        query @ (h @ before).T,
        weights_of(2 * query, key, causal=True),
        both,
        torch.stack([both, bare]).softmax(-1),
    ]
