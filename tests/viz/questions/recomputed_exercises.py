"""The answers of exercises once more, by PyTorch, from the numbers that are printed."""

import math
import re
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from viz.questions.exercises.exercise import Exercise


def given(exercise: Exercise, at: int = 0) -> Tensor:
    """A row of the table, as it is written there."""
    written = exercise.given[at].written
    return torch.tensor([number(one) for one in written], dtype=torch.float64)


def number(written: str) -> float:
    return float(written.replace("−", "-").replace(",", ""))


def told(pattern: str, exercise: Exercise) -> float:
    """A number that stands in the words of the task; 0 where it is not told."""
    found = re.search(pattern, exercise.task)
    return number(found[1]) if found else 0.0


def softmax(exercise: Exercise) -> Tensor:
    return torch.softmax(given(exercise), 0)


def score(exercise: Exercise) -> Tensor:
    number = r"(−?[\d.,]*\d)"
    whole = given(exercise) @ given(exercise, 1) + told(f"table sum to {number}", exercise)
    return torch.stack([whole, whole * told(f"scale is {number}", exercise)])


def weighted(exercise: Exercise) -> Tensor:
    return given(exercise) @ given(exercise, 1) + told(r"row add (−?[\d.]*\d)", exercise)


def ratio(exercise: Exercise) -> Tensor:
    weights = softmax(exercise).sort(descending=True).values
    return weights[0] / weights[1]


def masked(exercise: Exercise) -> Tensor:
    """What stays, by the sum of what stays, in the table and outside of it."""
    weights = given(exercise)
    hidden = exercise.labels.index(re.search(r"mask the key (.*) and normalize", exercise.task)[1])
    row = torch.cat([weights, 1 - weights.sum(dim=0, keepdim=True)])
    row[hidden] = 0
    return (row / row.sum())[[at for at in range(len(weights)) if at != hidden]]


def entropy(exercise: Exercise) -> Tensor:
    return torch.special.entr(given(exercise)).sum() + told(r"row add (−?[\d.]*\d)", exercise)


def normalized(exercise: Exercise) -> Tensor:
    vector, epsilon = given(exercise), told(r"ε is (\S+)\.", exercise)
    norm = nn.functional.layer_norm if "layer norm" in exercise.task else nn.functional.rms_norm
    return norm(vector, vector.shape, eps=epsilon)


def one_entry(exercise: Exercise) -> Tensor:
    known = dict(zip(exercise.labels, given(exercise), strict=True))
    zero = torch.tensor(0.0)
    return torch.addcmul(
        known.get("β", zero),
        known["γ"],
        (known["x"] - known.get("mean", zero)) / known.get("deviation", known.get("root")),
    )


def encoded(exercise: Exercise) -> Tensor:
    """The table as complex numbers of length 1: the cosine is the real part, the sine the other."""
    width, column, position = (
        told(rf"{word} (\d+)", exercise) for word in ("width of", "column", "position")
    )
    rates = torch.exp(-math.log(10_000) * torch.arange(0, width, 2, dtype=torch.float64) / width)
    turned = torch.polar(torch.ones_like(rates), position * rates)[int(column) // 2]
    return turned.real if column % 2 else turned.imag


def cut(exercise: Exercise) -> Tensor:
    shape = re.search(r"\((\d+), (\d+), (\d+)\)", exercise.task)
    batch, tokens, width = (int(shape[at]) for at in (1, 2, 3))
    heads, keys, column = (
        int(told(pattern, exercise))
        for pattern in (r"into (\d+) heads", r"over (\d+) keys", r"column (\d+)")
    )
    x = torch.arange(width).expand(batch, tokens, width)
    q = x.unflatten(2, (heads, -1)).transpose(1, 2)
    scores = q @ torch.empty(batch, heads, q.shape[3], keys, dtype=q.dtype)
    found = (q[0, :, 0] == column).nonzero()[0]
    return torch.tensor([*q.shape, *scores.shape, *found.tolist()])


def parameters(exercise: Exercise) -> Tensor:
    layers, heads, width, times = (
        int(told(pattern, exercise))
        for pattern in (r"has (\d+) layers", r"with (\d+) heads", r"heads: (\d+)", r"forward (\d+)")
    )
    with torch.device("meta"):
        layer = nn.TransformerEncoderLayer(heads * width, heads, times * heads * width)
    return torch.tensor(layers * sum(each.numel() for each in layer.parameters()))


def cost(exercise: Exercise) -> Tensor:
    heads, width, tokens = (
        int(told(pattern, exercise))
        for pattern in (r"have (\d+) heads", r"width (\d+)", r"has ([\d,]+) tokens")
    )
    counts = []
    for rows, count in ((1, 1), (tokens, heads)):
        q, k = (torch.empty(count, n, width, device="meta") for n in (rows, tokens))
        with FlopCounterMode(display=False) as counter:
            (q @ k.transpose(1, 2)) @ k
        counts.append(counter.get_total_flops() / 2)  # a multiplication and an addition each
    return torch.tensor(counts, dtype=torch.float64)


def two_logits(exercise: Exercise) -> Tensor:
    shares = torch.softmax(given(exercise), 0)
    return torch.stack([shares[0] / shares[1], shares[0]])


def loss(exercise: Exercise) -> Tensor:
    logit, total = given(exercise)
    logits = torch.stack([logit, logit + torch.log(torch.expm1(total - logit))])  # it, and the rest
    nats = nn.functional.cross_entropy(logits[None], torch.tensor([0]))
    return torch.stack([nats, (-nats).exp(), nats.exp()])


RECOMPUTED: dict[str, Callable[[Exercise], Tensor]] = {
    "Position encoding": encoded,
    "Cut into heads": cut,
    "A scaled score": score,
    "Softmax of a row": softmax,
    "The largest weight": ratio,
    "Mask a key": masked,
    "A weighted sum": weighted,
    "Entropy of a row": entropy,
    "Norm of a short vector": normalized,
    "One entry of a norm": one_entry,
    "Parameters": parameters,
    "Cost of attention": cost,
    "From logits to a probability": two_logits,
    "Loss of a token": loss,
}
