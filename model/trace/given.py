"""Attention that was given and not computed here: arrays of queries, keys and values, and names of tokens."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from model.nn.config import Stack
from model.nn.places import Kind, Place
from model.trace.arrays import Array, BoolArray, read_only
from model.trace.records import Attention, Token

GivenTokens = Sequence[str | int]  # tokens as words, or as ids
WITHOUT_MODEL = "It was made of plain arrays: only attention was given."
MASKED_BELOW = -1e4  # an added number that leaves no weight beside scores of the usual size


def tokens_named(words: GivenTokens | None, count: int, what: str = "tokens") -> tuple[Token, ...]:
    """So many tokens; without words their positions are their names. Equal words have equal ids. Raises
    ValueError where there are more or fewer words."""
    if words is None:
        return tuple(Token(position, str(position)) for position in range(count))
    if isinstance(words, str):
        raise ValueError(f"{what} is one string; it must be a list with one string for each token.")
    if len(words) != count:
        raise ValueError(f"{what} names {len(words)} tokens, but attention reads {count}.")
    ids: dict[str, int] = {}
    return tuple(
        Token(ids.setdefault(word, len(ids)), word)
        if isinstance(word, str)
        else Token(int(word), str(int(word)))
        for word in words
    )


def lengths_of(records: Sequence[Attention]) -> tuple[int, int]:
    """How many tokens the text has, and how many the second one; 0 without one."""
    if not records:
        raise ValueError("There is no attention to make a trace of.")
    own: dict[Stack, int] = {}
    for record in records:
        if record.kind != "cross":
            own.setdefault(record.stack, record.sizes[2 if record.kind == "causal" else 1])
    for record in records:
        if record.kind == "cross":
            own.setdefault("encoder", record.sizes[2])
            own.setdefault("decoder", record.sizes[1])
    if len(own) == 2:
        return own["encoder"], own["decoder"]
    return next(iter(own.values())), 0


def texts_of(
    records: Sequence[Attention], tokens: GivenTokens | None, target_tokens: GivenTokens | None
) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """The tokens of the text and of the second one. Raises ValueError for more or fewer words."""
    source, target = lengths_of(records)
    if target_tokens is not None and not target:
        raise ValueError("target_tokens names a second text, but attention reads only one.")
    read = tokens_named(tokens, source)
    return read, tokens_named(target_tokens, target, "target_tokens") if target else ()


def of_length(tokens: tuple[Token, ...], count: int) -> tuple[Token, ...]:
    """Tokens of a text; the numbers of positions where a module reads others, such as learned keys."""
    return tokens if len(tokens) == count else tokens_named(None, count)


def is_look_ahead(mask: BoolArray) -> bool:
    """Whether a mask (query, key) hides the future and nothing else; the first keys of more keys are those of
    tokens read before."""
    queries, keys = mask.shape
    return queries > 1 and np.array_equal(mask, np.tri(queries, keys, keys - queries, dtype=bool))


def attention_given(
    query: object,
    key: object,
    value: object,
    *,
    mask: object = None,
    bias: object = None,
    scale: float | None = None,
    crosses: bool = False,
) -> tuple[Attention, ...]:
    """Layers of attention from their vectors; each argument is one layer's, or a list of them.

    The output is computed here. Raises ValueError for shapes that do not fit and for numbers that are not
    finite.

    Args:
        query, key, value: (head, token, d_k); the heads of queries may share fewer of keys and values.
        mask: (query, key) or (head, query, key), True = may look; numbers are added, and very negative ones
            hide. None: nothing is hidden.
        bias: added to the scaled scores; None: nothing is.
        scale: the factor on the scores; None: 1/√d_k.
        crosses: whether queries and keys stand in two texts; two lengths say so, unless the mask looks back.
    """
    queries, keys, values = (_layers(one) for one in (query, key, value))
    count = len(queries)
    masks, biases = (_layers(one) if one is not None else [None] * count for one in (mask, bias))
    masks, biases = (one * count if len(one) == 1 else one for one in (masks, biases))
    sizes = {"query": queries, "key": keys, "value": values, "mask": masks, "bias": biases}
    for name, layers in sizes.items():
        if len(layers) != count:
            raise ValueError(f"query has {count} layers, but {name} has {len(layers)}.")
    if scale is not None and not math.isfinite(scale):
        raise ValueError(f"scale is {scale}; it must be a finite number.")
    made = [
        _layer(number, *of_layer, scale, crosses)
        for number, of_layer in enumerate(zip(queries, keys, values, masks, biases, strict=True))
    ]
    causal = any(one.kind == "causal" for one in made)
    crosses = any(one.kind == "cross" for one in made)
    stack: Stack = "decoder" if crosses or causal else "encoder"
    return tuple(
        replace(one, place=Place(stack, layer, one.kind)) for layer, one in enumerate(made)
    )


def _layers(given: object) -> list[Any]:
    return [*given] if isinstance(given, list | tuple) else [given]


def _layer(
    number: int,
    query: object,
    key: object,
    value: object,
    mask: object,
    bias: object,
    scale: float | None,
    crosses: bool,
) -> Attention:
    q, k, v = (
        _vectors(one, f"{name} of layer {number}")
        for one, name in ((query, "query"), (key, "key"), (value, "value"))
    )
    shapes = f"query {q.shape}, key {k.shape}, value {v.shape}"
    if q.shape[2] != k.shape[2]:
        raise ValueError(f"In layer {number} queries and keys differ in d_k: {shapes}.")
    if k.shape[:2] != v.shape[:2]:
        raise ValueError(f"In layer {number} there is not one value for each key: {shapes}.")
    if len(q) % len(k):
        raise ValueError(
            f"In layer {number} the heads of queries cannot share those of keys: {shapes}."
        )
    whole = len(q), q.shape[1], k.shape[1]
    allowed, added = _mask_and_bias(mask, whole, number)
    if bias is not None:
        given = _fitting(plain_numbers(bias, f"bias of layer {number}"), whole, "bias", number)
        added = given if added is None else read_only(given + added)
    looks_back = allowed is not None and allowed.ndim == 2 and is_look_ahead(allowed)
    crosses = crosses or (whole[1] != whole[2] and not looks_back)
    kind: Kind = "cross" if crosses else "causal" if looks_back else "self"
    by_rule = kind == "causal" and whole[1] == whole[2]
    record = Attention(
        place=Place("decoder", number, kind),
        heads=len(q),
        scale=1 / math.sqrt(q.shape[2]) if scale is None else float(scale),
        mask_value=-math.inf,
        output=q,
        ablated=(),
        vectors=(q, k, v),
        own_mask=None if by_rule else allowed,
        look_ahead=by_rule,
        steps={},
        bias=added,
    )
    output = np.stack([record.context(head) for head in range(len(q))])
    return replace(record, output=read_only(output))


def plain_numbers(given: Any, name: str) -> Array:
    """A copy in float32, of numpy's or PyTorch's numbers."""
    if hasattr(given, "detach"):
        given = given.detach().cpu()
        given = (given if given.dtype.is_floating_point is False else given.float()).numpy()
    array = np.array(given)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold numbers.")
    return array if array.dtype.kind == "b" else array.astype(np.float32)


def _vectors(given: object, name: str) -> Array:
    array = plain_numbers(given, name)
    if array.ndim != 3 or not array.size:
        raise ValueError(
            f"{name} has the shape {array.shape}; it must have three axes: (head, token, d_k)."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds numbers that are not finite.")
    return read_only(array.astype(np.float32))


def _mask_and_bias(
    mask: object, whole: tuple[int, int, int], number: int
) -> tuple[BoolArray | None, Array | None]:
    """A mask of bool, True = may look. One of numbers is both: its very negative ones hide, the others are
    added."""
    if mask is None:
        return None, None
    if "int" in str(getattr(mask, "dtype", None) or np.asarray(mask).dtype):
        raise ValueError(
            f"mask of layer {number} holds whole numbers; it must say True where a query may look, or hold "
            "the numbers that are added to the scores."
        )
    array: Any = plain_numbers(mask, f"mask of layer {number}")
    if np.isnan(array).any():
        raise ValueError(f"mask of layer {number} holds what is no number (NaN).")
    added = None
    if array.dtype.kind == "f":
        allowed = array > MASKED_BELOW
        rest = np.where(allowed, array, np.float32(0))
        added = _fitting(rest, whole, "mask", number) if rest.any() else None
        array = allowed
    if array.ndim not in (2, 3):
        raise ValueError(f"mask of layer {number} has {array.ndim} axes; it must be (query, key).")
    try:
        cells = np.broadcast_to(array, (*whole[:1], *whole[1:]) if array.ndim == 3 else whole[1:])
    except ValueError as error:
        raise ValueError(
            f"mask of layer {number} has the shape {array.shape}; queries and keys need {whole[1:]}."
        ) from error
    if cells.ndim == 3 and (cells == cells[:1]).all():
        cells = cells[0]
    return (None if cells.all() else read_only(cells.copy())), added


def _fitting(array: Array, whole: tuple[int, int, int], name: str, number: int) -> Array:
    """(head or 1, query or 1, key)"""
    array = array.reshape((1,) * (3 - array.ndim) + array.shape) if array.ndim < 3 else array
    fits = array.ndim == 3 and array.shape[2] == whole[2]
    if not fits or any(a not in (1, b) for a, b in zip(array.shape, whole, strict=True)):
        raise ValueError(f"{name} of layer {number} has the shape {array.shape}, not {whole}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} of layer {number} holds numbers that are not finite.")
    return read_only(array.astype(np.float32))
