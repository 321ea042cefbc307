"""Sections 1 to 6: attention, masks, the ladder of classes. With torch or with loops."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import (
    multi_head_attention_forward,
    scaled_dot_product_attention,
)

from tests.model.worked.recomputed.steps import Inputs, Steps

NEGATIVE = float("-inf")


def lower(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril()


def scores(query: Tensor, key: Tensor) -> Tensor:
    return torch.einsum("id,jd->ij", query, key)


def the_cat_sat(v: Inputs) -> Steps:
    query, key, value = (v["embedding"] @ v[f"{name}_matrix"] for name in "qkv")
    raw = scores(query, key)
    weights = torch.softmax(raw / 2, -1)
    output = scaled_dot_product_attention(query[None], key[None], value[None])[0]
    terms = torch.stack([weights[0, j] * value[j] for j in range(3)])
    return [query, key, value, raw, raw / 2, raw / 2, weights, terms, output]


def one_hot_picture(v: Inputs) -> Steps:
    x = v["embedding"]
    raw = scores(x, x)
    output = scaled_dot_product_attention(x[None], x[None], x[None])[0]
    return [raw, raw / 3**0.5, torch.softmax(raw / 3**0.5, -1), output, output.sum(1)]


def soft_look_up(v: Inputs) -> Steps:
    match = v["keys"] @ v["query"]
    weights = torch.softmax(match * v["sharpness"], 0)
    best = v["values"][match.argmax()]
    return [match[None], best[None], weights[None], (v["values"].T @ weights)[None]]


def two_keys_scaled(v: Inputs) -> Steps:
    raw = (v["keys"] @ v["query"])[None]
    return [raw, torch.softmax(raw, -1), raw / 2, torch.softmax(raw / 2, -1)]


def softmax_of_ten_and_one(v: Inputs) -> Steps:
    lead = float(v["scores"][0] - v["scores"][1])
    first = 1 / (1 + math.exp(-lead))
    return [v["scores"].exp(), torch.tensor([first, 1 / (1 + math.exp(lead))], dtype=torch.float64)]


def variance_of_a_dot_product(v: Inputs) -> Steps:
    variances, entropies, largest = [], [], []
    for width in v["widths"].int().tolist():
        generator = np.random.default_rng([int(v["seed"]), width])
        query = torch.tensor(generator.standard_normal((int(v["queries"]), width)))
        key = torch.tensor(generator.standard_normal((int(v["queries"]), int(v["keys"]), width)))
        raw = torch.einsum("nd,nkd->nk", query, key)
        for divisor in (1.0, width**0.5):
            spread = torch.distributions.Categorical(logits=raw / divisor)
            variances.append((raw / divisor).var(correction=0))
            entropies.append(spread.entropy().mean())
            largest.append(spread.probs.amax(-1).mean())
    law = torch.stack([v["widths"], torch.ones_like(v["widths"])])
    tables = (torch.stack(row).reshape(-1, 2).T for row in (variances, entropies, largest))
    return [law, *tables]


def softmax_slopes(v: Inputs) -> Steps:
    def slopes(values: Tensor) -> Tensor:
        return torch.autograd.functional.jacobian(lambda s: torch.softmax(s, -1), values)

    full = slopes(v["scores"])
    stretched = torch.stack([slopes(v["scores"] * factor).diag() for factor in v["stretch"]])
    return [torch.softmax(v["scores"], -1), full.diag(), full, stretched]


def average_gradient(v: Inputs) -> Steps:
    """By the square of one weight, 1/n - E[p²] with E[p²] = ∫ E[w² e^-w] φ^(n-1) d ln t."""
    equal = torch.stack([(1 / n) * (1 - 1 / n) for n in v["keys"]])
    columns = []
    for spread in v["spreads"].tolist():
        scores = torch.linspace(-9, 9, 2001, dtype=torch.float64)
        density = (-(scores**2) / 2).exp() / math.sqrt(2 * math.pi) * (18 / 2000)
        steps = torch.linspace(-60 - 9 * spread, 10 + 9 * spread, 3001, dtype=torch.float64)
        w = (steps[:, None] + spread * scores).clamp(max=700).exp()
        squares, fall = (w**2 * (-w).exp()) @ density, (-w).exp() @ density
        columns.append(
            torch.stack(
                [1 / n - torch.trapezoid(squares * fall ** (n - 1), steps) for n in v["keys"]]
            )
        )
    return [equal, torch.stack(columns, 1)]


def softmax_of_three(v: Inputs) -> Steps:
    weights = torch.softmax(v["scores"], -1)
    return [v["scores"].exp(), v["scores"].logsumexp(0).exp(), weights, weights]


def twice_the_score(v: Inputs) -> Steps:
    weights = torch.softmax(v["scores"], -1)
    return [weights, v["scores"][1] / v["scores"][0], weights[1] / weights[0]]


def softmax_over_keys(v: Inputs) -> Steps:
    four = v["scores"][None, None]
    keys, queries = torch.softmax(four, dim=-1)[0, 0], torch.softmax(four, dim=-2)[0, 0]
    return [keys, queries, torch.stack([keys.sum(-1), queries.sum(-1)])]


def weighted_sum_of_cat(v: Inputs) -> Steps:
    terms = torch.stack([w * row for w, row in zip(v["weights"], v["values"], strict=True)])
    return [v["weights"] * 100, v["weights"].sum(), terms, terms.sum(0, keepdim=True)]


def padding_mask(v: Inputs) -> Steps:
    real = (v["ids"] != 0).double()
    second = real[1]
    both = torch.tensor([[a * b for b in second] for a in second])
    return [v["ids"], real, both, second.expand(3, 3)]


def look_ahead_mask(v: Inputs) -> Steps:
    length = int(v["length"])
    future = torch.ones(length, length).triu(1)
    return [1 - future, future, torch.arange(1, length + 1)]


def combined_mask(v: Inputs) -> Steps:
    real = v["ids"] != 0
    both = real[:, None] & real[None, :]
    return [v["ids"], both, lower(3), both & lower(3), real.expand(3, 3) & lower(3)]


def two_padding_masks(v: Inputs) -> Steps:
    real = v["ids"] != 0
    both, keys = real[:, None] & real[None, :], real.expand(4, 4)
    return [v["ids"], both, keys, both ^ keys, keys & lower(4)]


def four_by_four_masked(v: Inputs) -> Steps:
    x = v["vectors"]
    allowed = lower(4) & (v["real"] > 0)
    raw = scores(x, x)
    hidden = (raw / 2).masked_fill(~allowed, float(v["mask_value"]))
    output = scaled_dot_product_attention(x[None], x[None], x[None], attn_mask=allowed[None])[0]
    unscaled = torch.softmax(raw.masked_fill(~allowed, NEGATIVE), -1)
    weights = torch.softmax((raw / 2).masked_fill(~allowed, NEGATIVE), -1)
    return [raw, raw / 2, allowed, hidden, weights, output, unscaled, unscaled @ x]


def two_routes_to_causal(v: Inputs) -> Steps:
    full = torch.softmax(v["scores"], -1)
    zeroed = full.tril()
    hidden = torch.softmax(v["scores"].masked_fill(~lower(3), NEGATIVE), -1)
    return [hidden, full, zeroed, zeroed.sum(1), hidden, torch.zeros(3, 3)]


def fill_values(v: Inputs) -> Steps:
    raw, covered = v["scores"], v["mask"] == 0
    mask_values = (NEGATIVE, -1e9, -1e20, 0.0)
    filled = torch.stack(
        [*(raw.masked_fill(covered, mask_value) for mask_value in mask_values), raw]
    )
    weights = torch.softmax(filled, -1)
    after = torch.softmax((raw / v["d_k"].sqrt()).masked_fill(covered, NEGATIVE), -1)
    return [filled.exp(), weights[0], weights, torch.zeros(5, 4), after]


def fully_masked_row(v: Inputs) -> Steps:
    zeros = torch.zeros(3)
    added = torch.softmax(v["scores"] + v["mask_value"], 0)
    return [
        v["mask_value"].expand(3),
        torch.full((3,), 1 / 3, dtype=torch.float64),
        added,
        zeros,
        zeros,
    ]


def projection_is_a_product(v: Inputs) -> Steps:
    product = torch.einsum("td,de->te", v["embedding"], v["q_matrix"])
    added = v["embedding"] + v["q_matrix"]
    return [product, added, product - added]


def padding_to_the_source(v: Inputs) -> Steps:
    padded = torch.nn.functional.pad(v["target"], (0, 1))
    return [padded, padded != 0, torch.tensor([[3, 4], [4, 4]]), v["source"]]


def ladder_without_weights(v: Inputs) -> Steps:
    x = v["x"]
    output = scaled_dot_product_attention(x[None], x[None], x[None], scale=1.0)[0]
    shapes = torch.tensor([[3, 4], [3, 3], [3, 4]])
    return [scores(x, x), torch.softmax(scores(x, x), -1), output, shapes]


def ladder_with_weights(v: Inputs) -> Steps:
    query, key, value = (v["x"] @ v[f"{name}_matrix"] for name in "qkv")
    raw = scores(query, key)
    output = scaled_dot_product_attention(query[None], key[None], value[None])[0]
    shapes = [[3, 4], [4, 2], [4, 2], [4, 3], [3, 2], [3, 2], [3, 3], [3, 3], [3, 3], [3, 3]]
    weights = torch.softmax(raw / 2**0.5, -1)
    return [query, key, value, raw, raw / 2**0.5, weights, output, torch.tensor(shapes)]


def ladder_causal_dropout(v: Inputs) -> Steps:
    query, key, value = (v["x"] @ v[f"{name}_matrix"] for name in "qkv")
    hidden = (scores(query, key) / 2**0.5).masked_fill(~lower(3), NEGATIVE)
    weights = torch.softmax(hidden, -1)
    draws = torch.tensor(np.random.default_rng(int(v["seed"])).random((3, 3)))
    keep = draws >= v["rate"]
    after = torch.where(keep, weights / (1 - v["rate"]), 0.0)
    whole = scaled_dot_product_attention(query[None], key[None], value[None], is_causal=True)[0]
    return [weights, draws, keep, after, after.sum(1), after @ value, whole]


def torch_heads(v: Inputs, heads: int, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Output (token, width) and weights (head, query, key) of PyTorch's own multi-head attention."""
    x = v["x"][:, None]
    inner = torch.cat([v[f"{name}_matrix"].T for name in "qkv"])
    bias = v.get("bias", torch.zeros(4, dtype=torch.float64))
    output, weights = multi_head_attention_forward(
        x, x, x, 4, heads, inner, bias.repeat(3), None, None, False, 0.0,
        v["o_matrix"].T, bias, training=False, attn_mask=mask, average_attn_weights=False,
    )  # fmt: skip
    return output[:, 0], weights[0]


def ladder_multi_head(v: Inputs) -> Steps:
    output, weights = torch_heads(v, 2)
    value = v["x"] @ v["v_matrix"]
    parts = [weights[head] @ value[:, 2 * head : 2 * head + 2] for head in range(2)]
    return [weights[0], parts[0], weights[1], parts[1], torch.cat(parts, 1), output]


def four_classes_agree(v: Inputs) -> Steps:
    heads = int(v["heads"])
    free = torch_heads({**v, "bias": torch.zeros(4, dtype=torch.float64)}, heads, ~lower(3))[0]
    biased = torch_heads(v, heads, ~lower(3))[0]
    apart = (free - biased).abs().max()
    same, other = torch.zeros(2, 2), apart.expand(2, 2)
    between = torch.cat([torch.cat([same, other], 1), torch.cat([other, same], 1)])
    return [free, free, biased, biased, between]
