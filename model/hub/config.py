"""The config of a hub model, read from its parts instead of its own config; and the library's model without
memory for its tensors."""

import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from model.analysis.attribution.modules import is_map
from model.hub.hooks import BASE
from model.hub.inline_attention import position_kind
from model.hub.parts import Anatomy, AttentionPart, NormPart, StackPart, expert_sizes, latent_sizes
from model.hub.probe import FeedForwardParts, Probe, is_norm
from model.nn.config import Shape, TransformerConfig
from model.nn.positions import PositionKind, RotaryPairs

LONGEST = 8_192  # tokens: the weights of one head of a longer text would take more than 256 MB
T5_CONTEXT = 512  # tokens that T5 is trained on (Raffel et al. 2020)
Turned = tuple[RotaryPairs, int]
_CONTEXTS = (
    "max_position_embeddings",
    "n_positions",
    "max_sequence_length",
    "n_ctx",
    "max_seq_len",
)


def config_of(
    anatomy: Anatomy, body: Any, turned: Turned, found: Probe, separator: int
) -> TransformerConfig:
    """The config of a model. Where layers differ, it holds the largest of their sizes.

    Args:
        turned: which dimensions of a head are rotated in pairs, and how many.
        found: the probe pass behind the anatomy.
        separator: the id between two sentences of a text; 0: it reads no pairs.
    """
    blocks = [block for stack in anatomy.stacks for block in stack.blocks]
    layers = {stack.stack: len(stack.blocks) for stack in anatomy.stacks}
    heads, key_heads, head_width = max(sizes_of(anatomy))
    first, source = blocks[0], anatomy.stacks[0]
    norm, feed = _first_norm(anatomy), _with_neurons(anatomy)
    table, output = body.get_input_embeddings().weight, body.get_output_embeddings()
    pairs, rotary_dim = turned
    fitting = anatomy.width % heads == 0 and anatomy.width // heads == head_width
    return TransformerConfig(
        shape=anatomy.shape,
        d_vocab=table.shape[0],
        n_ctx=context_of(source, body.config),
        d_model=anatomy.width,
        heads=heads,
        encoder_layers=layers.get("encoder", 0),
        decoder_layers=layers.get("decoder", 0),
        d_mlp=0 if feed is None else max(hidden_of(anatomy)),
        norm=(norm and norm.kind) or "layer",
        norm_place=anatomy.stacks[-1].norm_place or "pre",
        activation="gelu" if feed is None else feed.activation,
        **_positions(anatomy, rotary_dim),
        segments=0 if source.segments is None else _rows(source.segments),
        separator=separator,
        embedding_norm=source.embedding_norm is not None,
        scaled_embedding=source.token_factor != 1.0,
        qkv_bias=_has_bias(first.attentions[0].module),
        output_bias=getattr(first.attentions[0].output, "bias", None) is not None,
        tied=output is not None and output.weight.data_ptr() == table.data_ptr(),
        epsilon=(norm and norm.epsilon) or 1e-5,
        rotary_base=_rotary_base(body.config),
        rotary_pairs=pairs,
        rotary_width=0 if rotary_dim == head_width else rotary_dim,
        key_heads=0 if key_heads == heads else key_heads,
        head_size=0 if fitting else head_width,
        hidden_bias=feed is None or getattr(feed.w_out, "bias", None) is not None,
        parallel=source.parallel,
        norm_bias=getattr(norm and norm.module, "bias", None) is not None,
        query_key_norm=_inner_norms(first.attentions[0], found),
        shared_norm=norm is not None
        and first.feed_forward is not None
        and first.feed_forward.norm is not None
        and first.feed_forward.norm.module is norm.module,
        **_of_today(anatomy, found),
        first_norm=source.norm_place != "pre" or first.attentions[0].norm is not None,
    )


def uneven(anatomy: Anatomy, found: Probe) -> str | None:
    """Why the parameters and operations of a model do not follow from a few sizes; None where they do."""
    blocks = [block for stack in anatomy.stacks for block in stack.blocks]
    if any(block.turns > 1 for block in blocks):
        return "its layers share one set of weights"
    try:
        expert_sizes(anatomy, found)
    except ValueError as reason:
        return str(reason)
    if len(sizes_of(anatomy)) > 1:
        return "its layers have different numbers of heads"
    return "its feed-forward layers have different sizes" if len(hidden_of(anatomy)) > 1 else None


def sizes_of(anatomy: Anatomy) -> set[tuple[int, int, int]]:
    """The heads, key heads and width of a head of every attention."""
    return {(part.heads, part.key_heads, part.head_width) for part in anatomy.attentions()}


def hidden_of(anatomy: Anatomy) -> set[int]:
    """The number of neurons of every feed-forward where it is known; 0 where it is not, in a layer without
    one, and for experts."""
    feeds = [block.feed_forward for stack in anatomy.stacks for block in stack.blocks]
    plain = [part for part in feeds if part is None or part.router is None]
    return {0 if part is None or part.parts is None else part.parts.hidden for part in plain}


def _with_neurons(anatomy: Anatomy) -> FeedForwardParts | None:
    """The first feed-forward that tells its neurons."""
    feeds = [block.feed_forward for stack in anatomy.stacks for block in stack.blocks]
    return next((part.parts for part in feeds if part is not None and part.parts is not None), None)


def _of_today(anatomy: Anatomy, found: Probe) -> dict[str, Any]:
    """The sizes of sinks, latent vectors and experts. Where the sizes of experts are not known, only their
    number."""
    attention = anatomy.attentions()[0].module
    # How many experts the first router chooses from; 0 without any.
    feeds = [block.feed_forward for stack in anatomy.stacks for block in stack.blocks]
    routers = [part.router for part in feeds if part is not None and part.router is not None]
    weight = getattr(routers[0], "weight", None) if routers else None
    sizes = {
        "experts": (len(weight) if isinstance(weight, Tensor) else len(routers[:1])),
        "sinks": isinstance(getattr(attention, "sinks", None), nn.Parameter),
    }
    with suppress(ValueError):
        sizes |= expert_sizes(anatomy, found)
    return sizes | latent_sizes(attention)


def _first_norm(anatomy: Anatomy) -> NormPart | None:
    """The first norm of an attention that is one of ours."""
    parts = anatomy.attentions()
    norms = [norm for part in parts for norm in (part.norm, part.after) if norm is not None]
    return next((norm for norm in norms if norm.kind is not None), None)


def context_of(source: StackPart, described: Any) -> int:
    """How many tokens a model reads, at most `LONGEST`."""
    sizes = [getattr(described, name, None) for name in _CONTEXTS]
    found = [size for size in sizes if isinstance(size, int) and size > 0]
    if source.positions is not None and isinstance(
        getattr(source.positions, "weight", None), Tensor
    ):
        found.append(_rows(source.positions) - source.first_position)
    if not found and isinstance(getattr(described, "relative_attention_num_buckets", None), int):
        return T5_CONTEXT  # its config names no length, and its buckets reach any
    return min([*found, LONGEST])


def _position_kind(anatomy: Anatomy, turned: int) -> PositionKind:
    source, attention = anatomy.stacks[0], anatomy.attentions()[0].module
    if source.positions is not None:
        return "sinusoidal" if "Sinusoidal" in type(source.positions).__name__ else "learned"
    return position_kind(attention) or ("rotary" if anatomy.rotary or turned else "none")


def _positions(anatomy: Anatomy, turned: int) -> dict[str, Any]:
    """The kind of positions and, of T5's buckets of distances, their sizes. turned: how many dimensions of a
    head are rotated."""
    kind = _position_kind(anatomy, turned)
    if kind != "buckets":
        return {"positions": kind}
    attention: Any = anatomy.attentions()[0].module
    return {
        "positions": kind,
        "buckets": attention.relative_attention_num_buckets,
        "farthest": attention.relative_attention_max_distance,
        "scaled_scores": False,
    }


def _rows(table: nn.Module) -> int:
    weight = table.weight
    return weight.shape[0] if isinstance(weight, Tensor) else 0


def _has_bias(attention: nn.Module) -> bool:
    """Whether the maps to queries, keys and values add a bias."""
    maps = [part for part in attention.modules() if is_map(part)]
    return getattr(maps[0], "bias", None) is not None if maps else False


def _inner_norms(part: AttentionPart, found: Probe) -> int:
    """How many numbers the norms of queries and keys hold: those that run before the attention and give
    vectors of one head, or of all side by side."""
    attended = next((call.at for call in found.attended if call.module is part.module), 0)
    whole = {part.head_width * heads for heads in (part.heads, part.key_heads)}
    inside = set(part.module.modules())
    norms = {
        call.module
        for call in found.calls
        if call.at < attended and call.module in inside and is_norm(call.module)
        if call.gave.shape[-1] in ({part.head_width} if call.gave.ndim > 3 else whole)
    }
    return sum(weight.numel() for norm in norms for weight in norm.parameters())


def _rotary_base(described: Any) -> float:
    parameters = getattr(described, "rope_parameters", None)
    base = parameters.get("rope_theta") if isinstance(parameters, dict) else None
    return float(base) if isinstance(base, int | float) else BASE


def shape_of(described: Any) -> Shape:
    """Which of the three shapes a config describes. Raises ValueError for a model that does not read text."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    )

    kind = described.model_type
    made = " ".join(getattr(described, "architectures", None) or ())
    if "EncoderModel" in made:  # the encoder of T5 alone
        return "encoder"
    writes = "ForCausalLM" in made or "LMHeadModel" in made
    if getattr(described, "is_encoder_decoder", False):
        if kind in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES:
            return "encoder-decoder"
    elif kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not writes:
        return "encoder"
    elif kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return "decoder"
    raise ValueError(f"its architecture {kind!r} is not one that reads and writes text")


_WRITING: dict[Shape, Any] = {
    "decoder": transformers.AutoModelForCausalLM,
    "encoder-decoder": transformers.AutoModelForSeq2SeqLM,
}
_OTHER_HEADS = re.compile(r"Classification|QuestionAnswering|MultipleChoice|Reward")
_FEW, _MORE = 8, 16
# While the library makes a model it replaces functions of its own and of PyTorch for the whole process, and
# puts back what it found: two at once leave a library that ties no weights.
BUILDING = threading.RLock()


def class_of(settings: Any, shape: Shape) -> Any:
    """The library's class for the layers of a model, with the matrix that makes logits of tokens where its
    files are of a model that has one: not of a classifier, nor of layers alone with a matrix of their own."""
    made = " ".join(settings.architectures or ())
    if "EncoderModel" in made:
        return transformers.AutoModelForTextEncoding
    bare = made == MODEL_MAPPING_NAMES.get(settings.model_type)
    if _OTHER_HEADS.search(made) or (bare and not settings.tie_word_embeddings):
        return transformers.AutoModel
    return _WRITING.get(shape, transformers.AutoModel)


def empty_body(settings: Any, shape: Shape) -> nn.Module:
    """The library's model on the meta device. Raises what the library raises for sizes that do not fit."""
    with BUILDING, torch.device("meta"):
        body: nn.Module = class_of(settings, shape).from_config(
            settings, attn_implementation="eager"
        )
    return body


def grows_with(described: Mapping[str, Any], name: str, others: Mapping[str, object]) -> bool:
    """Whether a model needs more memory when its config gives `name` a larger value: tried with two small
    values. others: sizes that are kept small meanwhile. True where it cannot be tried.
    """
    try:
        few, more = (
            _taken(_with(described, dict.fromkeys(others, _FEW) | {name: size}))
            for size in (_FEW, _MORE)
        )
    except Exception:  # each architecture has its own way to fail on sizes that do not fit
        return True
    return few != more


def _taken(described: dict[str, Any]) -> tuple[int, int]:
    """The values of a config once the library has read it, and the bytes of its model."""
    settings = transformers.AutoConfig.for_model(**described)
    values = _values(settings.to_dict())
    body = empty_body(settings, shape_of(settings))
    return values, sum(tensor.nbytes for tensor in (*body.parameters(), *body.buffers()))


def _values(value: object) -> int:
    if isinstance(value, Mapping):
        return sum(map(_values, value.values()))
    return sum(map(_values, value)) if isinstance(value, list | tuple) else 1


def _with(described: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """A config with other sizes, wherever in it they stand."""
    return {
        name: _with(value, sizes) if isinstance(value, Mapping) else sizes.get(name, value)
        for name, value in described.items()
    }
