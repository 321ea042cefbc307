"""Sections 7 to 14 computed a second time, with torch or with loops."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import (
    batch_norm,
    cosine_similarity,
    cross_entropy,
    embedding,
    gelu,
    layer_norm,
    one_hot,
    relu,
    scaled_dot_product_attention,
    silu,
)  # fmt: skip

Inputs = dict[str, Tensor]
Steps = list[Tensor]


def attend(query: Tensor, key: Tensor, value: Tensor, causal: bool = False) -> Tensor:
    return scaled_dot_product_attention(query[None], key[None], value[None], is_causal=causal)[0]


def weights_of(query: Tensor, key: Tensor, causal: bool = False) -> Tensor:
    """The weights are the output where the values are one-hot."""
    return attend(query, key, torch.eye(len(key), dtype=torch.float64), causal)


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


def slope_of(curve: Callable[[Tensor], Tensor], points: Tensor) -> Tensor:
    points = points.clone().requires_grad_()
    return torch.autograd.grad(curve(points).sum(), points)[0]


def gelu_by_both(v: Inputs) -> Steps:
    points = v["points"]
    exact, tanh = gelu(points), gelu(points, approximate="tanh")
    return [torch.special.ndtr(points), exact, tanh, tanh - exact, slope_of(gelu, points)]


def gelu_minimum(v: Inputs) -> Steps:
    grid = torch.linspace(-0.76, -0.74, 200_001, dtype=torch.float64)
    lowest = grid[gelu(grid).argmin()]
    point = lowest.clone()
    for _ in range(5):  # Newton's steps from the best point of the grid
        point = point - slope_of(gelu, point) / slope_of(lambda x: slope_twice(x), point)
    ends = torch.stack([v["low"], point, v["high"]])
    return [slope_of(gelu, ends), point, gelu(point)]


def slope_twice(points: Tensor) -> Tensor:
    density = torch.exp(-0.5 * points**2) / math.sqrt(2 * math.pi)
    return torch.special.ndtr(points) + points * density


def relu_and_gelu(v: Inputs) -> Steps:
    points = v["points"]
    slopes = torch.stack([slope_of(relu, points), slope_of(gelu, points)])
    return [torch.stack([relu(points), gelu(points)]), slopes]


def swiglu(v: Inputs) -> Steps:
    opening, content = v["gate"].T @ v["x"], v["up"].T @ v["x"]
    return [opening, silu(opening), content, silu(opening) * content]


def feed_forward_position_wise(v: Inputs) -> Steps:
    hidden = torch.einsum("td,dh->th", v["x"], v["first"])
    output = torch.einsum("th,hd->td", gelu(hidden), v["second"])
    return [hidden, gelu(hidden), output, torch.zeros(2, 2)]


def residual_gradient(v: Inputs) -> Steps:
    """The same stack, with the gradients of PyTorch's autograd."""
    seed, depth, width = (int(v[name]) for name in ("seed", "depth", "width"))
    draws = np.random.default_rng(seed).standard_normal((depth, width, width))
    matrices = torch.tensor(draws) * v["gain"] / width**0.5
    start = torch.tensor(np.random.default_rng([seed, 1]).standard_normal(width))
    sizes = []
    for shortcut in (False, True):
        stream = start.clone().requires_grad_()
        entering = []
        for matrix in matrices:
            entering.append(stream)
            inner = torch.tanh(matrix @ stream)
            stream = stream + inner if shortcut else inner
        gradients = torch.autograd.grad(stream.sum(), entering)
        sizes.append(torch.stack([gradient.norm() for gradient in gradients]))
    table = torch.stack(sizes)
    return [table, table[:, 0] / table[:, -1]]


def draws(v: Inputs, shape: tuple[int, ...]) -> Tensor:
    return torch.tensor(np.random.default_rng(int(v["seed"])).random(shape))


def dropout_by_hand(v: Inputs) -> Steps:
    values, chance = v["values"], draws(v, (10,))
    keep = (chance >= v["rate"]).double()
    after = keep * values / (1 - v["rate"])
    return [chance, keep, after, torch.stack([values.sum(), after.sum()]), values]


def dropout_on_weights(v: Inputs) -> Steps:
    chance = draws(v, (3, 3))
    after = torch.where(chance >= v["rate"], v["weights"], 0.0) / (1 - v["rate"])
    return [chance, after, torch.stack([v["weights"].sum(1), after.sum(1)])]


def sliding_windows(v: Inputs) -> Steps:
    length, stride = int(v["length"]), int(v["stride"])
    both = v["ids"].unfold(0, length + 1, stride)
    shared = len({*range(length)} & {*range(stride, stride + length)})
    starts = torch.arange(0, len(both) * stride, stride)
    return [both[:, :-1], both[:, 1:], starts, torch.tensor(shared)]


def look_up_is_one_hot(v: Inputs) -> Steps:
    ids = v["ids"].long()
    rows = embedding(ids, v["matrix"])
    return [one_hot(ids, 6), rows, rows, torch.zeros(4, 3)]


def parameter_count(*modules: nn.Module) -> int:
    return sum(part.numel() for module in modules for part in module.parameters())


def gpt_2_parameters(v: Inputs) -> Steps:
    """Counted on real PyTorch modules, without memory for their numbers."""
    vocabulary, context, width, heads, layers = (
        int(v[name]) for name in ("vocabulary", "context", "width", "heads", "layers")
    )
    with torch.device("meta"):
        token, position = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        qkv = nn.Linear(width, 3 * width, bias=False)
        mix = nn.Linear(width, width)
        wide = nn.Sequential(nn.Linear(width, 4 * width), nn.Linear(4 * width, width))
        norm = nn.LayerNorm(width)
        biases = nn.Linear(width, 3 * width).bias.numel() * layers
        output = nn.Linear(width, vocabulary, bias=False)
    counts = [
        parameter_count(token),
        parameter_count(position),
        layers * parameter_count(qkv, mix),
        layers * parameter_count(wide),
        layers * 2 * parameter_count(norm),
        parameter_count(norm),
        parameter_count(output),
    ]
    parts = torch.tensor(counts).double()
    names = ("vocabulary", "context", "width", "heads", "layers", "dropout", "qkv_bias")
    return [
        torch.stack([v[name] for name in names]),
        torch.tensor(width / heads),
        parts,
        parts / parts.sum() * 100,
        parts.sum(),
        parts[:-1].sum(),
        parts[:-1].sum() + biases,
    ]


def encoder_layer(v: Inputs) -> Steps:
    x = v["source"]
    output = attend(x, x, x)
    first = layer_norm(x + output, (4,))
    hidden = relu(first @ v["first"]) @ v["second"]
    return [x @ x.T, weights_of(x, x), output, first, hidden, layer_norm(first + hidden, (4,))]


def decoder_layer(v: Inputs) -> Steps:
    target, source = v["target"], v["source"]
    own = attend(target, target, target, causal=True)
    first = layer_norm(target + own, (4,))
    cross = attend(first, source, source)
    second = layer_norm(first + cross, (4,))
    hidden = relu(second @ v["first"]) @ v["second"]
    return [
        weights_of(target, target, causal=True),
        own,
        first,
        first @ source.T,
        weights_of(first, source),
        cross,
        second,
        hidden,
        layer_norm(second + hidden, (4,)),
    ]


def encoder_of_the_paper(v: Inputs) -> Steps:
    layers, width, heads = (int(v[name]) for name in ("layers", "width", "heads"))
    layer = nn.TransformerEncoderLayer(width, heads, 4 * width, device="meta")
    parts = [
        parameter_count(layer.self_attn),
        parameter_count(layer.linear1, layer.linear2),
        parameter_count(layer.norm1, layer.norm2),
    ]
    whole = parameter_count(layer) * layers
    sizes = torch.tensor([layers, width, heads])
    return [sizes, torch.tensor(layer.self_attn.head_dim), torch.tensor(parts), torch.tensor(whole)]


def all_positions_at_once(v: Inputs) -> Steps:
    x = v["x"]
    together = attend(x, x, x, causal=True)
    return [together, together, torch.zeros(3, 4)]


def two_layer_decoder(v: Inputs) -> Steps:
    names = ("vocabulary", "context", "width", "heads", "hidden", "layers")
    vocabulary, context, width, heads, hidden, layers = (int(v[name]) for name in names)
    layer = nn.TransformerEncoderLayer(width, heads, hidden, device="meta")
    parts = [
        vocabulary * width,
        context * width,
        layers * parameter_count(layer.self_attn),
        layers * parameter_count(layer.linear1, layer.linear2),
        layers * parameter_count(layer.norm1, layer.norm2),
        parameter_count(nn.Linear(width, vocabulary, device="meta")),
    ]
    bounds = []
    for outputs in (width, hidden, vocabulary):
        start = nn.init.xavier_uniform_(torch.empty(outputs, width))
        bound = (6 / (width + outputs)) ** 0.5
        assert 0.99 * bound < float(start.abs().max()) <= bound
        bounds.append(bound)
    return [
        torch.tensor(layer.self_attn.head_dim),
        torch.tensor(parts),
        torch.tensor(sum(parts)),
        torch.tensor(bounds, dtype=torch.float64),
    ]


def most_probable_word(v: Inputs) -> Steps:
    logits = (v["matrix"].T @ v["hidden"] + v["bias"]).requires_grad_()
    target = v["target"].long()
    loss = cross_entropy(logits, target)
    gradient = torch.autograd.grad(loss, logits)[0]
    after = cross_entropy(logits - v["rate"] * gradient, target)
    return [
        logits.detach(),
        logits.detach().softmax(0),
        logits.argmax(),
        one_hot(target, 6),
        loss.detach(),
        gradient,
        torch.stack([loss, after]).detach(),
    ]


def to_the_vocabulary(v: Inputs) -> Steps:
    length, width, vocabulary = (int(v[name]) for name in ("length", "width", "vocabulary"))
    linear = nn.Linear(width, vocabulary, device="meta")
    logits = linear(torch.empty(length, width, device="meta"))
    clueless = cross_entropy(torch.zeros(vocabulary, dtype=torch.float64), torch.tensor(0))
    matrix = torch.tensor(linear.weight.T.shape)
    return [matrix, torch.tensor(logits.shape), torch.tensor(parameter_count(linear)), clueless]


def sequence_in_three_steps(v: Inputs) -> Steps:
    """In turn, as at generation: at each step only what was given out before is there."""
    source, target = v["source"], v["target"]
    own, cross, vectors = torch.zeros(3, 3, dtype=torch.float64), [], []
    for time in range(3):
        query, seen = target[time : time + 1], target[: time + 1]
        own[time, : time + 1] = weights_of(query, seen)[0]
        stream = query + attend(query, seen, seen)
        cross.append(weights_of(stream, source)[0])
        vectors.append((stream + attend(stream, source, source))[0])
    final = torch.stack(vectors)
    logits = final @ v["matrix"]
    return [own, torch.stack(cross), final, logits, logits.softmax(-1), logits.argmax(-1)]


def same_word_two_sentences(v: Inputs) -> Steps:
    word = v["word"][None]
    sentences = [torch.cat([word, v[name]]) for name in ("first", "second")]
    weights = torch.cat([weights_of(word, sentence) for sentence in sentences])
    after = torch.cat([attend(word, sentence, sentence) for sentence in sentences])
    cosines = torch.stack([torch.tensor(1.0), cosine_similarity(after[0], after[1], dim=0)])
    return [word.expand(2, 4), weights, after, cosines]


RECOMPUTED: dict[str, Callable[[Inputs], Steps]] = {
    way.__name__.replace("_", "-"): way
    for way in (
        one_matrix_then_split, head_widths, shape_walk_c, shape_walk_d, contiguous_before_merge,
        projection_parameters, words_and_tokens, memory_and_operations, sinusoidal_table,
        embedding_plus_position, learned_positions, shift_is_a_rotation, rotary_positions,
        lion_kills_tiger, layer_norm_by_hand, biased_and_unbiased, where_the_norm_stands, houses,
        pixels_min_max, gelu_minimum, relu_and_gelu, swiglu, feed_forward_position_wise,
        residual_gradient, dropout_by_hand, dropout_on_weights, sliding_windows,
        look_up_is_one_hot, gpt_2_parameters, encoder_layer, decoder_layer, encoder_of_the_paper,
        all_positions_at_once, two_layer_decoder, most_probable_word, to_the_vocabulary,
        sequence_in_three_steps, same_word_two_sentences,
    )
}  # fmt: skip
RECOMPUTED["gelu"] = gelu_by_both


@pytest.mark.parametrize("name", RECOMPUTED)
def test_every_step_equals_a_second_computation(check, name: str) -> None:
    check(name, RECOMPUTED[name])


def test_no_example_of_these_sections_goes_unchecked(names_of) -> None:
    assert set(RECOMPUTED) == names_of(range(7, 15))
