"""Why it is built so. With torch or with loops."""

import torch
from torch import nn
from torch.nn.functional import cosine_similarity, normalize

from tests.model.worked.recomputed.attention import scores
from tests.model.worked.recomputed.steps import Inputs, Steps, attend, parameter_count, weights_of


def softmax_or_plain_shares(v: Inputs) -> Steps:
    raw, higher = v["scores"], v["scores"] + v["raised"]
    weights = torch.softmax(raw, -1)
    return [raw / raw.sum(), weights, torch.stack([higher / higher.sum(), weights])]


def separate_queries_and_keys(v: Inputs) -> Steps:
    query, key = v["x"] @ v["q_matrix"], v["x"] @ v["k_matrix"]
    two = scores(query, key)
    one = torch.stack([torch.mv(query, row) for row in query])
    return [query, key, two, two - scores(key, query), one, torch.zeros_like(one)]


def one_head_or_two(v: Inputs) -> Steps:
    query, key, value = (v["x"] @ v[f"{name}_matrix"] for name in "qkv")
    one = attend(query, key, value) @ v["o_matrix"]
    halves = [tuple(each[:, part] for each in (query, key, value)) for part in HALVES]
    two = torch.cat([attend(*half) for half in halves], 1) @ v["o_matrix"]
    weights = [weights_of(*half[:2]) for half in halves]
    count = parameter_count(*(nn.Linear(4, 4, bias=False) for _ in range(4)))
    return [weights_of(query, key), one, *weights, two, one - two, torch.tensor([count, count])]


HALVES = (slice(0, 2), slice(2, 4))


def grouped_queries(v: Inputs) -> Steps:
    groups, size = int(v["key_heads"]), int(v["group"])
    heads, shared = groups * size, torch.arange(groups).repeat_interleave(size)
    cache = torch.tensor(
        [2 * torch.empty(count, int(v["width"])).numel() for count in (heads, groups, 1)]
    )
    return [shared, cache, cache * v["length"]]


def added_or_appended(v: Inputs) -> Steps:
    words, places = v["words"], v["places"]
    appended = torch.cat([words, places], 1)
    parts = torch.outer(torch.ones(2), torch.ones(2)).double()
    for i, one in enumerate((words, places)):
        for j, other in enumerate((words, places)):
            parts[i, j] = (one[0] * other[1]).sum()
    both = torch.stack([parts.sum(), (appended[0] * appended[1]).sum()])
    counts = [parameter_count(nn.Linear(size, size, bias=False)) for size in (3, 6)]
    return [words + places, appended, parts.flatten(), both, torch.tensor(counts)]


def why_ten_thousand(v: Inputs) -> Steps:
    pairs = int(v["width"]) // 2
    turns, alike = [], []
    for base in v["bases"]:
        speeds = base ** (-torch.arange(pairs, dtype=torch.float64) / pairs)
        turns.append(2 * torch.pi / speeds[[0, pairs // 2, -1]])
        distances = torch.tensor([1, 10, 100, 1_000, 10_000], dtype=torch.float64)
        alike.append(torch.cos(torch.outer(distances, speeds)).mean(1))
    return [torch.stack(turns), torch.stack(alike)]


def how_wide_inside(v: Inputs) -> Steps:
    width, inside = int(v["width"]), (v["factors"] * v["width"]).int().tolist()
    with torch.device("meta"):
        own = [parameter_count(nn.Linear(width, each), nn.Linear(each, width)) for each in inside]
        beside = parameter_count(*(nn.Linear(width, width, bias=False) for _ in range(4)))
    shares = [100 / (1 + beside / each) for each in own]
    return [torch.tensor(inside), torch.tensor(own), torch.tensor(shares, dtype=torch.float64)]


def sentence_vector(v: Inputs) -> Steps:
    chosen = v["tokens"][v["mask"].bool()]
    mean = chosen.mean(0)
    each = torch.stack([mean, v["tokens"][0], v["tokens"].mean(0)])
    return [
        chosen.sum(0),
        mean,
        normalize(mean, dim=0),
        cosine_similarity(each, v["other"][None], dim=1),
    ]


def beam_beside_greedy(v: Inputs) -> Steps:
    both = torch.diag(v["first"]) @ v["second"]
    return [both, both[v["first"].argmax()].max(), both.max()]
