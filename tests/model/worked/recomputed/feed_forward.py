"""Sections 10 and 11: activations, gradients, dropout, windows, parameters. With torch or with loops."""

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.functional import (
    embedding,
    one_hot,
    relu,
    silu,
)

from tests.model.worked.recomputed.steps import Inputs, Steps, parameter_count


def slope_of(curve: Callable[[Tensor], Tensor], points: Tensor) -> Tensor:
    points = points.clone().requires_grad_()
    return torch.autograd.grad(curve(points).sum(), points)[0]


def gelu(v: Inputs) -> Steps:
    points = v["points"]
    exact, tanh = F.gelu(points), F.gelu(points, approximate="tanh")
    return [torch.special.ndtr(points), exact, tanh, tanh - exact, slope_of(F.gelu, points)]


def gelu_minimum(v: Inputs) -> Steps:
    grid = torch.linspace(-0.76, -0.74, 200_001, dtype=torch.float64)
    lowest = grid[F.gelu(grid).argmin()]
    point = lowest.clone()
    for _ in range(5):  # Newton's steps from the best point of the grid
        point = point - slope_of(F.gelu, point) / slope_of(lambda x: slope_twice(x), point)
    ends = torch.stack([v["low"], point, v["high"]])
    return [slope_of(F.gelu, ends), point, F.gelu(point)]


def slope_twice(points: Tensor) -> Tensor:
    density = torch.exp(-0.5 * points**2) / math.sqrt(2 * math.pi)
    return torch.special.ndtr(points) + points * density


def relu_and_gelu(v: Inputs) -> Steps:
    points = v["points"]
    slopes = torch.stack([slope_of(relu, points), slope_of(F.gelu, points)])
    return [torch.stack([relu(points), F.gelu(points)]), slopes]


def swiglu(v: Inputs) -> Steps:
    opening, content = v["gate"].T @ v["x"], v["up"].T @ v["x"]
    return [opening, silu(opening), content, silu(opening) * content]


def feed_forward_position_wise(v: Inputs) -> Steps:
    hidden = torch.einsum("td,dh->th", v["x"], v["first"])
    output = torch.einsum("th,hd->td", F.gelu(hidden), v["second"])
    return [hidden, F.gelu(hidden), output, torch.zeros(2, 2)]


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
