"""The config of a hub model, read from its parts instead of its own config."""

from typing import Any

from torch import Tensor, nn

from model.analysis.attribution.modules import is_map
from model.hub.parts import Anatomy, StackPart
from model.hub.probe import is_norm
from model.nn.config import PositionKind, RotaryPairs, Shape, TransformerConfig

LONGEST = 4_096  # tokens: a longer text would not fit on a page
_CONTEXTS = ("max_position_embeddings", "n_positions", "max_sequence_length", "n_ctx")


def config_of(anatomy: Anatomy, body: Any, turned: tuple[RotaryPairs, int]) -> TransformerConfig:
    """The config of a model. turned: which dimensions of a head are rotated in pairs, and how many.

    Raises ValueError where layers differ in size.
    """
    blocks = [block for stack in anatomy.stacks for block in stack.blocks]
    layers = {stack.stack: len(stack.blocks) for stack in anatomy.stacks}
    heads, key_heads, head_width = _one(
        {(part.heads, part.key_heads, part.head_width) for part in anatomy.attentions()}, "heads"
    )
    feeds = [block.feed_forward for block in blocks]
    hidden = _one({part.parts.hidden if part else 0 for part in feeds}, "feed-forward sizes")
    first, source = blocks[0], anatomy.stacks[0]
    norm = first.attentions[0].norm
    table, output = body.get_input_embeddings().weight, body.get_output_embeddings()
    pairs, turned_width = turned
    fitting = anatomy.width % heads == 0 and anatomy.width // heads == head_width
    return TransformerConfig(
        shape=anatomy.shape,
        d_vocab=table.shape[0],
        n_ctx=context_of(source, body.config),
        d_model=anatomy.width,
        heads=heads,
        encoder_layers=layers.get("encoder", 0),
        decoder_layers=layers.get("decoder", 0),
        d_mlp=hidden,
        norm=norm.kind,
        norm_place=_one({stack.norm_place for stack in anatomy.stacks}, "places of norms"),
        activation="gelu" if first.feed_forward is None else first.feed_forward.parts.activation,
        positions=_positions(anatomy),
        segments=0 if source.segments is None else _rows(source.segments),
        embedding_norm=source.embedding_norm is not None,
        scaled_embedding=source.token_factor != 1.0,
        qkv_bias=_has_bias(first.attentions[0].module),
        output_bias=getattr(first.attentions[0].output, "bias", None) is not None,
        tied=output is not None and output.weight.data_ptr() == table.data_ptr(),
        epsilon=norm.epsilon,
        rotary_base=_rotary_base(body.config),
        rotary_pairs=pairs,
        rotary_width=0 if turned_width == head_width else turned_width,
        key_heads=0 if key_heads == heads else key_heads,
        head_size=0 if fitting else head_width,
        hidden_bias=first.feed_forward is None
        or getattr(first.feed_forward.parts.w_out, "bias", None) is not None,
        parallel=source.parallel,
        norm_bias=getattr(norm.module, "bias", None) is not None,
        query_key_norm=_inner_norms(first.attentions[0].module),
        shared_norm=first.feed_forward is not None
        and first.feed_forward.norm.module is norm.module,
    )


def context_of(source: StackPart, described: Any) -> int:
    """How many tokens a model reads, at most `LONGEST`."""
    sizes = [getattr(described, name, None) for name in _CONTEXTS]
    found = [size for size in sizes if isinstance(size, int) and size > 0]
    if source.positions is not None and isinstance(
        getattr(source.positions, "weight", None), Tensor
    ):
        found.append(_rows(source.positions) - source.first_position)
    return min([*found, LONGEST])


def _one(found: set[Any], what: str) -> Any:
    if len(found) > 1:
        raise ValueError(f"its layers have different {what}")
    return found.pop()


def _positions(anatomy: Anatomy) -> PositionKind:
    source = anatomy.stacks[0]
    if source.positions is not None:
        return "sinusoidal" if "Sinusoidal" in type(source.positions).__name__ else "learned"
    return "rotary" if anatomy.rotary else "none"


def _rows(table: nn.Module) -> int:
    weight = table.weight
    return weight.shape[0] if isinstance(weight, Tensor) else 0


def _has_bias(attention: nn.Module) -> bool:
    """Whether the maps to queries, keys and values add a bias."""
    maps = [part for part in attention.modules() if is_map(part)]
    return getattr(maps[0], "bias", None) is not None if maps else False


def _inner_norms(attention: nn.Module) -> int:
    """How many numbers the norms of queries and keys hold."""
    norms = [part for part in attention.modules() if is_norm(part)]
    return sum(weight.numel() for part in norms for weight in part.parameters())


def _rotary_base(described: Any) -> float:
    parameters = getattr(described, "rope_parameters", None)
    base = parameters.get("rope_theta") if isinstance(parameters, dict) else None
    return float(base) if isinstance(base, int | float) else 10_000.0


def shape_of(described: Any) -> Shape:
    """Which of the three shapes a config describes. Raises ValueError for a model that does not read text."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    )

    kind = described.model_type
    made = " ".join(getattr(described, "architectures", None) or ())
    writes = "ForCausalLM" in made or "LMHeadModel" in made
    if getattr(described, "is_encoder_decoder", False):
        if kind in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES:
            return "encoder-decoder"
    elif kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not writes:
        return "encoder"
    elif kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return "decoder"
    raise ValueError(f"its architecture {kind!r} is not one that reads and writes text")
