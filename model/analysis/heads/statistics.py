"""Statistics of heads from full rows of weights: of one head, of families of heads that can be compared, and
put together."""

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from model.analysis.heads.labels import allowed_cells
from model.arithmetic.attention import entropy as entropy
from model.nn.config import Stack
from model.nn.places import Head
from model.system.remote import asked
from model.system.words import Words
from model.trace.arrays import Array, BoolArray, Wide, read_only
from model.trace.blocks import (
    CellBlock,
    block_of,
    by_queries,
    in_blocks,
    largest_of_blocks,
    rows_together,
)
from model.trace.records import Attention, Token
from model.trace.trace import Trace

say = Words("analysis.heads_statistics")

LayerSizes = tuple[int, int, int]  # heads, queries and keys of a layer


@dataclass(frozen=True)
class Family:
    """The attention sub-layers of one kind in one stack, one a layer."""

    stack: Stack
    cross: bool
    # Where they differ from layer to layer, as in somebody's own modules.
    sizes: LayerSizes | None = None

    @property
    def title(self) -> str:
        """In words: "Decoder self-attention"."""
        title = "Cross-attention" if self.cross else f"{self.stack.title()} self-attention"
        if self.sizes is None:
            return title
        heads, queries, keys = self.sizes
        return f"{title}, {heads} head{'s' * (heads > 1)}, {queries} × {keys} tokens"

    def members(self, trace: Trace) -> tuple[Attention, ...]:
        """The sub-layers of this family in a pass, from the first layer on."""
        return tuple(
            one
            for one in trace.attention
            if _kind(one) == (self.stack, self.cross) and self.sizes in (None, one.sizes)
        )

    def heads(self, trace: Trace) -> tuple[Head, ...]:
        return heads_of(self.members(trace))

    def queries(self, trace: Trace) -> tuple[Token, ...]:
        """The tokens that look."""
        return trace.queries_of(self.members(trace)[0])

    def keys(self, trace: Trace) -> tuple[Token, ...]:
        """The tokens that are looked at."""
        return trace.keys_of(self.members(trace)[0])


def family_of(trace: Trace, attention: Attention) -> Family:
    """The family of one of a pass's sub-layers."""
    return _family(attention, _uneven(trace))


def families(trace: Trace) -> tuple[Family, ...]:
    """The families of a pass: one, or three in an encoder–decoder, in order of execution."""
    uneven = _uneven(trace)
    return tuple(dict.fromkeys(_family(attention, uneven) for attention in trace.attention))


def _family(attention: Attention, uneven: Container[tuple[Stack, bool]]) -> Family:
    kind = _kind(attention)
    return Family(*kind, attention.sizes if kind in uneven else None)


def _uneven(trace: Trace) -> set[tuple[Stack, bool]]:
    """The kinds of which a pass has layers of several sizes."""
    first: dict[tuple[Stack, bool], LayerSizes] = {}
    pairs = [(_kind(one), one.sizes) for one in trace.attention]
    return {kind for kind, sizes in pairs if first.setdefault(kind, sizes) != sizes}


def _kind(attention: Attention) -> tuple[Stack, bool]:
    return attention.stack, attention.kind == "cross"


def heads_of(members: Iterable[Attention]) -> tuple[Head, ...]:
    """Every head of some sub-layers, in order."""
    return tuple((one.name, head) for one in members for head in range(one.heads))


def head_weights(members: Iterable[Attention]) -> Iterator[Array]:
    """(query, key): the weights of every head of some sub-layers, one at a time."""
    return (one.weights(head) for one in members for head in range(one.heads))


ROLLED = 1024  # tokens of a text whose rollout is computed: each layer takes tokens³ products
NOTHING_COMES_BACK = say("token_occurs_twice")


def distance(weights: Array) -> float:
    """Mean |query - key| in tokens, by weight."""
    queries, keys = weights.shape
    apart = np.abs(np.subtract.outer(np.arange(queries), np.arange(keys), dtype=np.float32))
    total = np.einsum("qk,qk", weights, apart, dtype=np.float64, casting="same_kind")
    return float(total / (weights.sum(dtype=np.float64) or 1))


def at_offset(weights: Array, offset: int) -> float:
    """Mean weight on the key `offset` tokens from its query: -1 is the previous token, 0 the token
    itself, 1 the next one. Raises ValueError if no query has such a key."""
    diagonal = np.diagonal(weights, offset)
    if not len(diagonal):
        raise ValueError(f"The text is too short: no two of its tokens are {abs(offset)} apart.")
    return float(diagonal.mean())


def on_first(weights: Array, *, across: bool = False) -> float:
    """Mean weight on the first token, over the queries after it. across: the queries are of another text, so
    that all of them count. Raises ValueError without any."""
    rows = weights if across else weights[1:]
    if not len(rows):
        raise ValueError("The text is too short: it has only one token.")
    return float(rows[:, 0].mean())


def on_keys(weights: Array, keys: BoolArray) -> float:
    """Mean share of a row on some of the keys, (key,) True where counted. Raises ValueError for no
    key."""
    if not keys.any():
        raise ValueError("The text has none of the tokens that this score counts.")
    return float(weights[:, keys].sum(-1).mean())


def after_the_same(tokens: Sequence[int] | Sequence[str]) -> BoolArray:
    """(query, key): True where the key follows an earlier occurrence of the query's token: in
    "a b … a" the second "a" looks at "b". In "a a" the token that followed is the query itself, which
    does not count."""
    these = np.asarray(tokens)
    follows = np.zeros((len(these), len(these)), dtype=bool)
    follows[:, 1:] = these[:, None] == these[None, :-1]
    mask: BoolArray = np.tril(follows, -1)
    return mask


def mean_share(weights: Array, cells: BoolArray) -> Wide:
    """(…): the share of weights (…, query, key) on some cells, averaged over the rows that have any.
    Raises ValueError if no row has."""
    rows = int(cells.any(-1).sum())
    if rows == 0:
        raise ValueError("No row has a cell that this score counts.")
    on_cells = np.where(cells, weights, 0.0).sum((-2, -1), dtype=np.float64)
    return np.asarray(on_cells / rows)


def prefix_matching(weights: Array, tokens: Sequence[int] | Sequence[str]) -> float:
    """Mean share of a row on what followed the same token earlier, over the tokens that come back
    (Olsson et al. 2022). Raises ValueError if no token comes back."""
    looked_for = after_the_same(tokens)
    if not looked_for.any():
        raise ValueError(NOTHING_COMES_BACK)
    return float(mean_share(weights, looked_for))


def induction(weights: Array, period: int) -> float:
    """`prefix_matching` in a text of `period` different tokens, said twice."""
    return prefix_matching(weights, [*range(period)] * 2)


@dataclass(frozen=True, eq=False)
class MeanWeights:
    """The mean weights of many heads: as many cells as a picture shows, and sums of all of them."""

    block: CellBlock  # queries and keys of a cell
    cells: Array  # (row, column): the largest mean of each block
    masked: BoolArray  # (row, column): no head may look anywhere in the block
    of_keys: Wide  # (key,): mean over the queries
    of_queries: Wide  # (query,): sum over the keys


@asked
def mean_weights(layers: Sequence[Attention]) -> MeanWeights:
    """The mean over all heads of these sub-layers, some queries at a time."""
    _, queries, keys = layers[0].sizes
    block = block_of(queries, keys)
    cells, masked, sums, of_keys = [], [], [], np.zeros(keys)
    for some in zip(*(by_queries(one, rows_together(block)) for one in layers), strict=True):
        total: Wide = np.zeros(())
        allowed: BoolArray = np.zeros((), np.bool_)
        for one in some:
            for head in range(one.heads):
                total = total + one.weights(head).astype(np.float64)
                allowed = allowed | allowed_cells(one, head)
        mean = total / sum(one.heads for one in some)
        cells.append(largest_of_blocks(mean, block))
        masked.append(~largest_of_blocks(allowed, block))
        sums.append(mean.sum(-1))
        of_keys += mean.sum(0)
    return MeanWeights(
        block,
        read_only(np.concatenate(cells)),
        read_only(np.concatenate(masked)),
        of_keys / queries,
        np.concatenate(sums),
    )


@asked
def sink_share(layers: Sequence[Attention]) -> Wide:
    """(query,): what the sinks of these sub-layers take of a row, in the mean over all heads."""
    taken = [one.sink_weights(head) for one in layers for head in range(one.heads)]
    return np.mean(taken, axis=0, dtype=np.float64)


@asked
def reachable(layers: Sequence[Attention]) -> BoolArray:
    """(token, token): whether these sub-layers of self-attention, one after another, can bring a token into
    another one: through a window only the tokens between lead further back."""
    reach = np.eye(layers[0].sizes[1], dtype=bool)
    for one in layers:
        allowed = np.any([allowed_cells(one, head) for head in range(one.heads)], axis=0)
        reach |= (allowed.astype(np.float32) @ reach.astype(np.float32)) > 0
    return reach


@asked
def rolled(layers: Sequence[Attention]) -> Array:
    """`rollout` of the mean weights of these sub-layers' heads. Raises ValueError for a long text."""
    tokens = layers[0].sizes[1]
    if tokens > ROLLED:
        raise ValueError(
            "Rollout multiplies matrices of tokens × tokens, one for each layer. It is computed for texts of "
            f"up to {ROLLED:,} tokens; this one has {tokens:,}."
        )
    return rollout(np.mean(list(head_weights([one])), axis=0) for one in layers)


def rollout(layers: Iterable[Array]) -> Array:
    """(token, token): how much of each token these layers, the first one first, mix into a token, by the
    weights alone.

    layers: (token, token) mean weights of self-attention. The shortcut counts as half: A = W/2 + I/2,
    rows normalized; each A is multiplied by the product of those below. Values, W_O, norms and
    feed-forward are left out. Source: Abnar and Zuidema 2020, Quantifying attention flow, 3.
    """
    product: Wide | None = None
    for weights in layers:
        mixed = weights.astype(np.float64) / 2 + np.eye(len(weights)) / 2
        mixed /= mixed.sum(-1, keepdims=True)
        product = mixed if product is None else mixed @ product
    return read_only(np.asarray(product))


MOST = 32  # rows and columns of a tile


@dataclass(frozen=True, eq=False)
class Tiles:
    """The weights of every head of a family. A cell is the largest weight of a block of tokens."""

    layers: tuple[str, ...]  # attention names, from the first layer on
    weights: Array  # (layer, head, row, column), each 0 to 1
    blocked: BoolArray  # (layer, row, column): True where no token of the block may look
    block: tuple[int, int]  # queries and keys of one cell


@asked
def tiles(
    trace: Trace, family: Family, most: int = MOST, layers: Collection[str] | None = None
) -> Tiles:
    """Every head of a family as a tile of at most `most` by `most` cells. layers: names of its layers whose
    heads are wanted; None: all."""
    members = [one for one in family.members(trace) if layers is None or one.name in layers]
    lengths = len(family.queries(trace)), len(family.keys(trace))
    block = -(-lengths[0] // most), -(-lengths[1] // most)
    weights = [
        [
            in_blocks(layer, block, partial(Attention.weights, head=head))
            for head in range(layer.heads)
        ]
        for layer in members
    ]
    allowed = [in_blocks(layer, block, _allowed) for layer in members]
    return Tiles(
        tuple(one.name for one in members),
        read_only(np.array(weights)),
        read_only(~np.stack(allowed)),
        block,
    )


def _allowed(attention: Attention) -> BoolArray:
    """(query, key): where a query may look in any head."""
    mask = attention.mask
    if mask is None:
        return np.ones(attention.sizes[1:], np.bool_)
    of_any: BoolArray = mask if mask.ndim == 2 else np.any(mask, axis=0)
    return of_any


def chosen_tiles(found: Tiles, heads: Sequence[Head]) -> Tiles:
    """Some of the tiles side by side, as if they were one layer's."""
    places = [(found.layers.index(layer), head) for layer, head in heads]
    return Tiles(
        (heads[0][0],),
        read_only(np.stack([found.weights[place] for place in places])[None]),
        read_only(np.all([found.blocked[layer] for layer, _ in places], axis=0)[None]),
        found.block,
    )
