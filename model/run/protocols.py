"""What `Model` and the pages use of a module, our own transformer or one of the hub, and what is refused to
run."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol, Self

import torch
from torch import Tensor, nn

from model.nn.config import Reasons, TransformerConfig
from model.nn.intervention import UNCHANGED, Intervention, PassChange, intervention_of
from model.nn.key_value_cache import KEEPS_ALL, Eviction, KeyValueCache
from model.nn.patches import OF_HEADS, Patch
from model.nn.places import Head, Place, place_of, within
from model.nn.steering import Steering
from model.system.border import is_whole
from model.system.files import bytes_text
from model.system.memory import LARGEST_RECORD
from model.trace.records import Attention
from model.trace.unproven import require


class AttentionLayer(Protocol):
    @property
    def place(self) -> Place: ...

    @property
    def heads(self) -> int: ...

    @property
    def window(self) -> int | None:
        """How many keys the model's own sliding window lets a query read; None without one."""
        ...

    @property
    def output(self) -> nn.Linear:
        """W_O with its bias."""
        ...


class Tables(Protocol):
    """What is looked up before the first layer."""

    @property
    def tokens(self) -> nn.Embedding: ...

    @property
    def positions(self) -> nn.Embedding | None:
        """The learned table, row 0 for the first position; None without one."""
        ...

    def angles(self, length: int, device: torch.device) -> Tensor | None:
        """(T, pairs) rotary angles under the current intervention; None if not rotary."""
        ...


class Runnable(Protocol):
    """A transformer of any of the three shapes; the current recorder records and changes it."""

    @property
    def config(self) -> TransformerConfig: ...

    @property
    def unproven(self) -> Reasons:
        """Parts that could not be proven at load, and why; our own layers are proven by tests."""
        ...

    @property
    def unused(self) -> tuple[str, ...]:
        """Tensors of the model's files that the library leaves out, by name."""
        ...

    @property
    def logit_factor(self) -> float:
        """What the output matrix times the last state is multiplied by (Cohere); 1 as a rule."""
        ...

    @property
    def embedding(self) -> Tables: ...

    @property
    def rereads(self) -> bool:
        """Whether its decoder reads the text itself unless it is given something else (BART as a
        classifier)."""
        ...

    @property
    def rows_may_grow(self) -> bool:
        """Whether one row of a pass may become many before any of its layers. Not where the library's code
        makes something for the number of texts before them (BLOOM's slopes)."""
        ...

    def bias_table(self, place: Place) -> nn.Embedding | None:
        """The numbers that are added to a sub-layer's scores, by bucket and head; None without buckets."""
        ...

    def bias_terms(self, record: Attention) -> dict[str, Tensor]:
        """The terms of a sub-layer's biases, (H, T, T) each; none where there is only one."""
        ...

    @property
    def output(self) -> nn.Linear | None:
        """The output matrix; None where it is the token table, or where there is none."""
        ...

    @property
    def output_matrix(self) -> Tensor | None:
        """(V, C), where logits are the normed states times it and nothing else; else None."""
        ...

    def __call__(
        self, ids: Tensor, target: Tensor | None = None, *, padding: Tensor | None = None
    ) -> Tensor:
        """ids (B, S), target (B, T) to logits (B, T, V), or to an encoder's states (B, S, C). padding (B, S):
        True = real token, for batches."""
        ...

    def unembed(self, stream: Tensor) -> Tensor: ...

    def new_cache(self, eviction: Eviction = KEEPS_ALL) -> KeyValueCache:
        """An empty cache for a text that the decoder writes. A pass whose recorder carries it is fed the new
        tokens only. Raises ValueError, with a sentence, for a model that keeps something else."""
        ...

    def attentions(self) -> Sequence[AttentionLayer]: ...

    def named_weights(self) -> dict[str, Tensor]:
        """Every weight that a pass uses, under the names of our own transformer. Raises ValueError, with a
        sentence, for a layout that has no such names."""
        ...

    def extra_parameters(self) -> dict[str, int]:
        """Parameters by part that do not follow from the config."""
        ...

    def w_out(self, name: str) -> nn.Linear:
        """The second map of the feed-forward of this name."""
        ...

    def greedy(
        self,
        ids: Tensor,
        *,
        start: int | None,
        end: int | None,
        limit: int,
        first: int | None = None,
    ) -> list[int]:
        """Greedy decoding: the ids that are written, without `start`.

        Args:
            ids: (1, token).
            start: what the decoder of two stacks reads first; a decoder alone reads none.
            end: the id after which it stops; None: nothing ends it.
            limit: tokens at most.
            first: what the decoder of two stacks writes first; None: what it finds best.
        """
        ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def state_dict(self) -> dict[str, Tensor]: ...

    def to(self, device: torch.device) -> Self: ...

    def eval(self) -> Self: ...

    def requires_grad_(self, requires_grad: bool = True) -> Self: ...


LONGEST = 8_192  # tokens of a text on a page
STAGES_KEPT = 4  # of a pass with dropout: scores, masked scores, weights before and after it


class TextTooLongError(ValueError):
    """The text has more tokens, `.length`, than the model reads, `.context`.

    >>> model.trace("red " * 2000)
    Traceback (most recent call last):
        ...
    TextTooLongError: The text is 2,001 tokens long; house-gpt reads at most 256. Shorten it.
    """

    def __init__(self, length: int, context: int, name: str) -> None:
        super().__init__(
            f"The text is {length:,} tokens long; {name} reads at most {context:,}. Shorten it."
        )
        self.length = length
        self.context = context


def cannot_be_shown(name: str, reason: ValueError) -> ValueError:
    """The refusal of a model. reason: the rest of the sentence."""
    return ValueError(f"{name} cannot be shown: {str(reason).removesuffix('.')}.")


def check_length(length: int, context: int, name: str) -> None:
    """Raises TextTooLongError where a text has more tokens than the model's context."""
    if length > context:
        raise TextTooLongError(length, context, name)


def check_shown(length: int) -> None:
    """Raises ValueError where a text has more tokens than a page shows."""
    if length > LONGEST:
        raise ValueError(
            f"The text has {length:,} tokens; a page shows at most {LONGEST:,}. Shorten it."
        )


def check_record(
    config: TransformerConfig, length: int, layers: int, *, full: bool, dropout: bool
) -> int:
    """Bytes that a pass would record. Raises ValueError where they are more than a page holds.

    Args:
        length: tokens of the text.
        layers: attention sub-layers.
        full: whether it keeps the outputs of norms and the neurons too.
        dropout: whether it keeps every stage of every head's weights.
    """
    states = (2 * layers + 1) * config.d_model  # before, between and after the sub-layers
    heads = 2 * config.d_model * (1 + config.key_head_count / config.heads)  # q and output, k and v
    size = 4.0 * length * (states + layers * heads)
    if full:
        neurons = (1 + config.is_gated) * config.feed_forward_layers * config.d_mlp
        neurons += (
            2 * config.expert_layers * (config.experts_read * config.d_expert + config.d_shared)
        )
        size += 4 * length * (states + neurons)
    if dropout:
        size += 4 * STAGES_KEPT * layers * config.heads * length**2
    if size > LARGEST_RECORD:
        kept = " With dropout it keeps all weights of all heads." if dropout else ""
        raise ValueError(
            f"A pass over {length:,} tokens would record {bytes_text(int(size))} here; a page holds at most "
            f"{bytes_text(LARGEST_RECORD)}.{kept} Shorten the text."
        )
    return int(size)


def check_id(id_: int, size: int, name: str) -> None:
    """Raises ValueError for an id outside a vocabulary of this size."""
    if not is_whole(id_) or not 0 <= id_ < size:
        raise ValueError(f"{name} has {size:,} tokens; none has the id {id_}.")


class Named(Protocol):
    """A model, as far as a change of its pass names its parts."""

    name: str
    module: Runnable


def in_names(change: PassChange, model: Named) -> Intervention:
    """A change whose sub-layers go by their names, and whose heads count from 0, in place of layers by number
    and of heads counted from the end. Raises ValueError for what the model does not have.
    """
    heads = {layer.place.name: layer.heads for layer in model.module.attentions()}

    def named(place: str | int) -> str:
        return [*heads][place_of(place, [*heads], model.name)]

    change = intervention_of(change)
    steering = change.steering
    if steering is not None:
        steering = _in_names(steering, named(steering.place), model)

    def of_head(place: str | int, head: int) -> Head:
        return named(place), within(head, heads[named(place)], f"{named(place)} has heads")

    ablated = sorted(change.ablated, key=str)
    weights, stream = (sorted(change.weights, key=str), sorted(change.stream, key=str))
    only = None if change.only is None else sorted(change.only, key=str)
    if only is None and not (ablated or weights or stream or steering):
        return change
    return replace(
        change,
        only=None if only is None else frozenset(map(named, only)),
        ablated=frozenset(of_head(*cell) for cell in ablated),
        weights=frozenset(
            (*of_head(place, head), query, key, weight)
            for place, head, query, key, weight in weights
        ),
        stream=frozenset((named(place), token, at, value) for place, token, at, value in stream),
        steering=steering,
    )


def _in_names(steering: Steering, place: str, model: Named) -> Steering:
    """Raises ValueError where a model cannot be steered before this sub-layer."""
    require(model.name, "stream", model.module.unproven)
    if Place.named(place).kind == "cross":
        raise ValueError(f"The stream is read before a layer, which {place} is not.")
    width = model.module.config.d_model
    if len(steering.toward) != width:
        raise ValueError(
            f"The direction has {len(steering.toward)} numbers; the stream of {model.name} has {width}."
        )
    return replace(steering, place=place)


def check_intervention(change: PassChange, model: Named, lengths: tuple[int, int]) -> Intervention:
    """The change as `in_names` writes it. Raises ValueError where it names something that this pass does not
    have.

    lengths: tokens of the text, and of the target (0 without one).
    """
    intervention, name, module = in_names(change, model), model.name, model.module
    if not intervention.positions:
        require(name, "positions", module.unproven)
    layers = {layer.place.name: layer for layer in module.attentions()}
    for position in sorted(intervention.hidden):
        if position >= lengths[0]:
            raise ValueError(
                f"Position {position} cannot be hidden: the text has {lengths[0]} tokens."
            )
    for name_of, _, query, key, _ in sorted(intervention.weights):
        queries, keys = _size(layers[name_of].place, lengths[0], lengths[1] or lengths[0])
        if query >= queries or key >= keys:
            raise ValueError(
                f"Query {query} and key {key} have no weight to set: {name_of} has {queries} queries "
                f"and {keys} keys."
            )
    for name_of, token, dimension, _ in sorted(intervention.stream):
        require(name, "stream", module.unproven)
        layer, width = layers[name_of].place, module.config.d_model
        tokens, _ = _size(layer, lengths[0], lengths[1] or lengths[0])
        if layer.kind == "cross":
            raise ValueError(f"The stream is read before a layer, which {name_of} is not.")
        if token >= tokens or dimension >= width:
            raise ValueError(
                f"Token {token} has no dimension {dimension} in the stream before {name_of}: it has {tokens} "
                f"tokens of {width} dimensions."
            )
    if (
        intervention.blocked
        and module.config.shape == "encoder-decoder"
        and intervention.only is None
    ):
        raise ValueError("Name the sub-layers (`only`) in which the edges are cut.")
    places = [layer.place for layer in layers.values() if intervention.applies(layer.place.name)]
    sizes = {_size(place, lengths[0], lengths[1] or lengths[0]) for place in places}
    for query, key in sorted(intervention.blocked):
        if not any(query < queries and key < keys for queries, keys in sizes):
            raise ValueError(
                f"Query {query} and key {key} cannot be cut: no sub-layer has both positions."
            )
    return intervention


def check_patch(
    patch: Patch, name: str, module: Runnable, lengths: tuple[int, int], other: int
) -> None:
    """Raises ValueError where parts of another run cannot be put into this pass.

    Args:
        name: the model's.
        lengths: tokens of the text, and of the target (0 without one).
        other: tokens of the other text.
    """
    if patch.model != name:
        raise ValueError(f"A run of {patch.model} has no parts that {name} could take.")
    check_same_length(lengths[0], other)
    heads = {layer.place.name: layer.heads for layer in module.attentions()}
    for kind, place, index in patch.parts:
        stack = Place.named(place).stack
        tokens = (lengths[1] or lengths[0]) if stack == "decoder" else lengths[0]
        if kind == "stream":
            require(name, "stream", module.unproven)
        if kind == "feed_forward":
            module.w_out(place)  # raises where there is none
        else:
            place_of(place, [*heads], name)
        if kind == "stream" and Place.named(place).kind == "cross":
            raise ValueError(f"The stream is put in before a layer, which {place} is not.")
        if kind in OF_HEADS:
            within(index, heads[place], f"{place} has heads")
        if kind not in OF_HEADS and index >= tokens:
            raise ValueError(f"There is no token {index}: the {stack} reads {tokens} tokens.")


def check_same_length(one: int, other: int) -> None:
    """Raises ValueError where two texts have not as many tokens."""
    if one != other:
        raise ValueError(
            f"One text has {one} tokens and the other {other}: each part is copied to the same "
            "position, so both texts need the same number of tokens."
        )


def _size(place: Place, source: int, target: int) -> tuple[int, int]:
    """(queries, keys) of an attention sub-layer. Without a second stack both lengths are equal."""
    queries = target if place.stack == "decoder" else source
    return queries, source if place.kind == "cross" else queries


def check_continues(
    name: str, config: TransformerConfig, intervention: PassChange = UNCHANGED
) -> None:
    """Raises ValueError where a model cannot continue a text, or not under an intervention."""
    if config.shape == "encoder":
        raise ValueError(f"{name} is an encoder: it reads text, it does not continue it.")
    intervention = intervention_of(intervention)
    if intervention.patch is not None:
        raise ValueError(
            "A run with parts of another sentence has a fixed length, so it cannot be continued."
        )
    if intervention.stream:
        raise ValueError(
            "Numbers of the stream set by hand belong to one text: such a run cannot be continued."
        )
    if intervention.weights:
        raise ValueError(
            "Weights set by hand stand in one matrix, which grows with each token: such a run cannot be "
            "continued."
        )


def check_cached(
    name: str, config: TransformerConfig, intervention: Intervention, *, explicit: bool
) -> None:
    """Raises ValueError where a text is not read with a cache."""
    check_continues(name, config, intervention)
    filled = math.isfinite(intervention.fill)
    if explicit or intervention.masks or filled or intervention.dropout:
        raise ValueError(
            "With a cache a token is read before those after it are there: such passes are not explicit, and "
            "no mask, mask value or dropout is changed in them."
        )
