"""Seeded attention records with the true layout, for the tests of the explorer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.nn.places import Kind, Place
from model.trace.records import Attention
from viz.explorer import Selection, assets, payload
from viz.explorer.message import HeadClaim, Hero, without_arrays
from viz.explorer.packing import packed

HERO = Hero("No mask", detail="full", ways={"why?": "/?show=Why", "carries": "/"})


def record(
    queries: int = 6,
    keys: int | None = None,
    *,
    heads: int = 3,
    width: int = 8,
    kind: Kind = "causal",
    scale: float | None = None,
    mask: NDArray[np.bool_] | None = None,
    mask_value: float = -math.inf,
    layer: int = 2,
    ablated: tuple[int, ...] = (),
    seed: int = 0,
) -> Attention:
    """An attention record of random vectors whose output is what they make.

    A mask replaces the look-ahead mask of a causal record.
    """
    keys = keys or queries
    random = np.random.default_rng(seed)
    query, key, value = (
        random.normal(size=(heads, count, width)).astype(np.float32)
        for count in (queries, keys, keys)
    )
    made = Attention(
        place=Place("decoder", layer, kind),
        heads=heads,
        scale=1 / math.sqrt(width) if scale is None else scale,
        mask_value=mask_value,
        output=np.zeros((heads, queries, width), np.float32),
        ablated=ablated,
        vectors=(query, key, value),
        own_mask=mask,
        look_ahead=kind == "causal" and mask is None,
        steps={},
    )
    return with_output(made)


def staged(made: Attention) -> Attention:
    """The record with a cap, a bias of each head, and sinks."""
    random = np.random.default_rng(1)
    shape = made.heads, made.query.shape[1], made.key.shape[1]
    bias, sinks = (random.normal(size=size).astype(np.float32) for size in (shape, made.heads))
    return with_output(replace(made, cap=1.5, bias=bias, sinks=sinks))


def dropping(attention: Attention) -> Attention:
    """The same layer in a pass that dropped half of its weights and doubled the others."""
    heads = range(attention.heads)
    weights = np.stack([attention.weights(head) for head in heads])
    kept = np.random.default_rng(0).random(weights.shape) > 0.5
    steps = {
        "scores": np.stack([attention.scores(head) for head in heads]),
        "masked": np.stack([attention.masked(head) for head in heads]),
        "weights": weights,
        "dropped": (weights * np.float32(2) * kept).astype(np.float32),
    }
    dropped = replace(attention, steps=steps)
    return replace(dropped, output=np.stack([dropped.context(head) for head in heads]))


def grouped(made: Attention) -> Attention:
    """The record with keys and values that three heads share."""
    query, key, value = made.vectors
    return with_output(replace(made, vectors=(query, key[::3], value[::3])))


def with_output(made: Attention) -> Attention:
    """The record with the output that its vectors make."""
    return replace(made, output=np.stack([made.context(head) for head in range(made.heads)]))


def labels(count: int) -> list[str]:
    """Tokens, some of them equal."""
    words = ["The", " cat", " saw", " the", " cat", " and", " the", " dog"]
    return [words[n % len(words)] for n in range(count)]


def weighing(weights: NDArray[np.floating]) -> Attention:
    """A record of cross-attention with one head, which gives these weights (query, key): rows sum to 1.

    Each query is an axis of its own, along which each key lies as far as the logarithm of its weight.
    """
    with np.errstate(divide="ignore"):
        scores = np.maximum(np.log(weights), -200.0).astype(np.float32)  # e^-200 is 0 in float32
    queries, keys = weights.shape
    made = record(queries, keys, heads=1, width=queries, kind="cross", scale=1.0)
    vectors = (np.eye(queries, dtype=np.float32)[None], scores.T[None], made.vectors[2])
    made = replace(made, vectors=vectors)
    return replace(made, output=made.context(0)[None])


def sent(
    attention: Attention,
    asked: Selection | None = None,
    *,
    check: float | None = 3e-7,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    held: Sequence[str] = (),
    claims: Sequence[HeadClaim] = (),
    hero: Hero = HERO,
    said: Mapping[str, object] | None = None,
    **more: Any,
) -> NDArray[np.uint8]:
    """The block that the browser gets. asked: the reader's choice, which says what of a large layer is sent.
    held: the parts that come without their arrays, because the browser has them already. said: what else the
    message says."""
    asked = asked or Selection()
    made = payload(
        attention,
        queries=queries or labels(attention.query.shape[1]),
        keys=keys or labels(attention.key.shape[1]),
        head=asked.head,
        stage=asked.stage,
        check=check,
        **more,
    )
    extra: dict[str, object] = {"claims": [asdict(claim) for claim in claims], "hero": asdict(hero)}
    extra |= {"assets": assets.addresses(), **(said or {})}
    return np.frombuffer(packed(without_arrays(made, held) | extra), np.uint8)
