"""One window of a corpus: a pass of the model, and what it adds to the profile."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.analysis.attribution.stream_parts import StreamReader, sub_layers_back
from model.analysis.stream.stream import weight_and_bias
from model.nn.places import Head, Place
from model.nn.recorder import AttentionTensors
from model.profile.examples import CRITERIA, ROW, Examples, by_chance
from model.profile.measures import Pairs, effects_histogram, measured, weights_of
from model.profile.sums import Field, Sums, UncountedError, counted, fields, whole
from model.trace.arrays import Array
from model.trace.collect import numbers_of, tensors_of
from model.trace.trace import Trace
from model.trace.transfer import fetch, together

if TYPE_CHECKING:
    from model.run.model import Model

SHORTEST = 2  # tokens of a window: one alone has no other to look at


@dataclass(frozen=True, eq=False)
class Profiled:
    """A model, and what of it every window needs. W_O is missing where it is not proven."""

    model: "Model"
    heads: tuple[Head, ...]  # in order of execution
    outputs: Mapping[str, Array]  # sub-layer -> W_O (d_model, H · D)
    squares: Mapping[
        str, Tensor
    ]  # sub-layer -> W_Oᵀ W_O of each head (H, D, D): lengths of v W_O follow
    unembedding: Array | None  # (vocabulary, d_model), less its mean row

    @classmethod
    def of(cls, model: "Model") -> "Profiled":
        layers = model.module.attentions()
        proven = () if "output" in model.unproven else layers
        outputs = {one.place.name: weight_and_bias(one.output)[0] for one in proven}
        squares = {
            one.place.name: _squares(outputs[one.place.name], one.heads).to(model.device)
            for one in proven
        }
        return cls(model, heads_of_model(model), outputs, squares, _unembedding(model))


def heads_of_model(model: "Model") -> tuple[Head, ...]:
    """Every head, in order of execution."""
    layers = model.module.attentions()
    return tuple((layer.place.name, head) for layer in layers for head in range(layer.heads))


def _squares(output: Array, heads: int) -> Tensor:
    by_head = torch.tensor(output).reshape(len(output), heads, -1).transpose(0, 1)  # (H, C, D)
    return by_head.mT @ by_head


def _unembedding(model: "Model") -> Array | None:
    if model.config.shape == "encoder" or "logit_parts" in model.unproven:
        return None
    matrix = numbers_of((model.module.output or model.module.embedding.tokens).weight)
    return (matrix - matrix.mean(0)) * model.module.logit_factor


def window_sums(profiled: Profiled, text: str, number: int, window: int) -> Sums:
    """What one window adds.

    Args:
        number: of the window in its corpus.
        window: most tokens of one.

    Raises UncountedError for a text that the model does not read, for one of too few or too many tokens, also
    the one that a decoder writes itself, and for numbers that are not finite.
    """
    _check_length(_tokens(profiled.model, text), "the model reads", window)
    trace = profiled.model.trace(text)
    if trace.target_tokens:
        _check_length(len(trace.target_tokens), "its decoder writes", window)
    made, kinds = Sums.none(profiled.heads, window), fields(window)
    sums: list[tuple[str, slice, Tensor]] = []  # of which field and heads
    cells: list[_Cells] = []
    effects = dict(_effects(profiled, trace))
    pairs: dict[tuple[str, str], Pairs] = {}
    at = 0
    for attention in trace.attention:
        mine = slice(at, at := at + attention.heads)
        cross = attention.kind == "cross"
        of = attention.stack, attention.kind
        if of not in pairs:
            queries, keys = trace.queries_of(attention), trace.keys_of(attention)
            pairs[of] = Pairs.of(queries, keys, cross=cross).to(profiled.model.device)
        call = tensors_of(attention)
        weights, allowed = weights_of(call)
        lengths = _lengths(profiled, call)
        found = measured(weights, allowed, pairs[of], lengths, kinds)
        if attention.name in effects:
            found |= _sums_of_effects(effects[attention.name], kinds)
        sums += ((name, mine, numbers) for name, numbers in found.items())
        best = _best(weights, lengths, effects.get(attention.name), cross=cross)
        cells += _examples(best, weights, pairs[of], number, mine.start)
    found_here = iter(
        together([one for *_, one in sums] + [x for one in cells for x in one.numbers])
    )
    for (name, heads, _), numbers in zip(sums, found_here, strict=False):
        made.numbers[name][heads] = counted(numbers)
    rows = [one.rows(number, *islice(found_here, len(one.numbers))) for one in cells]
    tokens = len(trace.tokens) + len(trace.target_tokens)
    examples = Examples.best(np.concatenate(rows))
    return Sums(profiled.heads, window, 1, tokens, made.numbers, examples)


def _tokens(model: "Model", text: str) -> int:
    try:
        return len(model.tokens(text))
    except ValueError as refusal:
        raise UncountedError(str(refusal)) from refusal


def _check_length(tokens: int, whose: str, window: int) -> None:
    if not SHORTEST <= tokens <= window:
        raise UncountedError(
            f"The text that {whose} has {tokens:,} tokens; here it must have {SHORTEST} to {window:,}."
        )


def _lengths(profiled: Profiled, call: AttentionTensors) -> Tensor | None:
    """(H, K): the length of each key's value through W_O: the root of v (W_Oᵀ W_O) vᵀ."""
    if call.place.name not in profiled.squares:
        return None
    value = call.value[0].repeat_interleave(call.groups, 0)
    squared = ((value @ profiled.squares[call.place.name]) * value).sum(-1)
    return squared.clamp_(min=0).sqrt()


def _effects(profiled: Profiled, trace: Trace) -> Iterator[tuple[str, Tensor]]:
    """(H, Q - 1) by sub-layer: what each head adds directly to the logit of the token that comes next, above
    what it adds to the mean logit. Nothing where the model predicts no next token, or its parts are not
    proven."""
    if profiled.unembedding is None or profiled.model.config.shape != "decoder":
        return
    ids = [token.id for token in trace.tokens]
    yield from direct_effects(
        profiled, trace, profiled.unembedding[ids[1:]], np.arange(len(ids) - 1)
    )


def direct_effects(
    profiled: Profiled, trace: Trace, rows: Array, tokens: NDArray[np.intp]
) -> Iterator[tuple[str, Tensor]]:
    """(H, R) by sub-layer of the decoder, the last one first: what each head adds, through the norms as they
    were recorded, to what rows read of the last state.

    Args:
        rows: (R, d_model).
        tokens: (R,): the position at which each row reads.
    """
    norms = [vars(norm) for norm in trace.norms]
    fetch(*(one[name] for one in norms for name in ("gamma", "beta", "inverse_deviation")))
    reader = StreamReader(rows.astype(np.float64), tokens)
    for part in sub_layers_back(profiled.model, trace, "decoder", reader, None):
        if Place.named(part.name).kind == "feed_forward":
            continue
        attention, inner = trace.find(part.name), reader.through(part)
        read = (inner.rows * inner.factor).astype(np.float32)  # (R, C)
        mapped = torch.from_numpy(read @ profiled.outputs[part.name])  # (R, H · D)
        output = tensors_of(attention).output[0]
        by_head = mapped.to(output.device).reshape(len(read), attention.heads, -1).transpose(0, 1)
        at = torch.from_numpy(tokens).to(output.device)
        yield part.name, (by_head * output[:, at]).sum(-1)


def _sums_of_effects(effects: Tensor, kinds: Mapping[str, Field]) -> dict[str, Tensor]:
    heads, rows = effects.shape
    return {
        "effect": whole(effects.sum(1, keepdim=True), kinds["effect"].bits),
        "effect_rows": torch.full((heads, 1), rows),
        "effects": effects_histogram(effects),
    }


def _best(
    weights: Tensor, lengths: Tensor | None, effects: Tensor | None, *, cross: bool
) -> dict[str, tuple[Tensor, Tensor, Tensor]]:
    """The strongest cell of each head by each criterion: score, query and key, (H,) each."""
    keys = weights.shape[2]
    others = weights.clone()  # a token itself and the first one take much of many heads' weight
    if not cross:
        others[..., 0] = 0
        others.diagonal(dim1=1, dim2=2).zero_()
    cells = {"weight": others}
    if lengths is not None:
        cells["carried"] = weights * lengths[:, None]
    best = {}
    for name, numbers in cells.items():
        score, flat = numbers.flatten(1).max(1)
        best[name] = (score, flat // keys, flat % keys)
    if effects is not None:
        score, query = effects.max(1)
        best["effect"] = (score, query, _strongest_key(weights, query))
    return best


def _strongest_key(weights: Tensor, query: Tensor) -> Tensor:
    """(H,): the key with the largest weight in one row of each head."""
    return weights[torch.arange(len(weights), device=weights.device), query].argmax(1)


@dataclass(frozen=True, eq=False)
class _Cells:
    """One cell of each head of a sub-layer, chosen by one criterion."""

    criterion: str
    first: int  # head of the sub-layer
    pairs: Pairs
    numbers: tuple[Tensor, ...]  # score, query, key and weight, (H,) each

    def rows(
        self, window: int, score: Tensor, query: Tensor, key: Tensor, weight: Tensor
    ) -> NDArray[np.void]:
        """The examples of a window, from the numbers on the processor."""
        rows = np.empty(len(score), ROW)
        rows["head"] = np.arange(self.first, self.first + len(score))
        rows["criterion"], rows["window"] = CRITERIA.index(self.criterion), window
        rows["score"], rows["weight"] = score.double().numpy(), weight.numpy()
        rows["query"], rows["key"] = query.numpy(), key.numpy()
        rows["query_token"] = self.pairs.query_texts[rows["query"]]
        rows["key_token"] = self.pairs.key_texts[rows["key"]]
        return rows


def _examples(
    best: dict[str, tuple[Tensor, Tensor, Tensor]],
    weights: Tensor,
    pairs: Pairs,
    number: int,
    first: int,
) -> Iterator[_Cells]:
    """Those of one sub-layer: each criterion's best cell, and one by chance."""
    heads, queries, _ = weights.shape
    chance = by_chance(number, np.arange(first, first + heads))
    query = torch.from_numpy((chance * 2**40).astype(np.int64) % queries).to(weights.device)
    drawn = (torch.from_numpy(chance), query, _strongest_key(weights, query))
    each = torch.arange(heads, device=weights.device)
    for name, (score, at, key) in (best | {"chance": drawn}).items():
        yield _Cells(name, first, pairs, (score, at, key, weights[each, at, key]))
