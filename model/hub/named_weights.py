"""The weights of a hub model under the names that our own transformer gives them, without copies, except
where a matrix mixes them group by group.

Libraries name and lay out their maps in many ways. Here a query map is a query map, whatever it was part of.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from model.analysis.attribution.modules import is_map, matrix_and_bias, weight_and_bias
from model.hub.feed_forward import FeedForwardParts
from model.hub.inline_attention import adds_to_scores, is_inline
from model.hub.parts import Anatomy, AttentionPart, BlockPart, NormPart, StackPart
from model.hub.probe import is_norm
from model.nn.config import TransformerConfig

Named = Iterator[tuple[str, Tensor]]
_LETTERS = {"q": "query", "k": "key", "v": "value"}


def named_weights(body: Any, anatomy: Anatomy, config: TransformerConfig) -> dict[str, Tensor]:
    """Every weight that a pass uses, by name. Raises ValueError, with a sentence, for a layout that this app
    does not know."""
    _check_layout(anatomy, config)
    _check_rotary(anatomy, config)
    found: dict[str, Tensor] = {}
    for stack in anatomy.stacks:
        found.update(_embedding(stack, alone=len(anatomy.stacks) == 1))
        for number, block in enumerate(stack.blocks):
            within = f"{stack.stack}.blocks.{number}"
            found.update({f"{within}.{name}": weight for name, weight in _block(block)})
        if stack.final_norm is not None:
            found.update(_norm(f"{stack.stack}.final_norm", stack.final_norm))
    if config.shape != "encoder":
        found.update(_output(body, config))
    return {name: weight.detach() for name, weight in found.items()}


def _check_layout(anatomy: Anatomy, config: TransformerConfig) -> None:
    """Raises ValueError for layers of another kind than those of our own transformer."""
    if config.norms_output:
        raise ValueError("a norm stands on what each of its sub-layers writes")
    if any(stack.token_factor not in (1.0, anatomy.width**0.5) for stack in anatomy.stacks):
        raise ValueError("its token vectors are multiplied by a factor of its own")
    if not config.first_norm:
        raise ValueError("its first layer has no norm")
    if any(adds_to_scores(part.module) for part in anatomy.attentions()):
        raise ValueError("its layers add numbers to the scores")


def _check_rotary(anatomy: Anatomy, config: TransformerConfig) -> None:
    """Raises ValueError for angles that do not follow from the base in the config."""
    for part in anatomy.rotary:
        width = config.turned_width
        expected = 1 / config.rotary_base ** (torch.arange(0, width, 2) / width)
        own = getattr(part, "inv_freq", None)
        if not isinstance(own, Tensor) or own.shape != expected.shape:
            raise ValueError(
                "its rotary angles are made in a way that this app cannot write as code"
            )
        if not torch.allclose(own.cpu().float(), expected, rtol=1e-5):
            raise ValueError("its rotary angles do not follow from one base")


def _embedding(stack: StackPart, *, alone: bool) -> Named:
    """The tables of a stack; two stacks may have tables of their own."""
    within = "embedding" if alone else f"{stack.stack}.embedding"
    for name, table in (("tokens", stack.tokens), ("segments", stack.segments)):
        if table is not None:
            yield f"{within}.{name}.weight", weight_and_bias(table)[0]
    if stack.positions is not None:
        rows = getattr(stack.positions, "weight", None)
        if not isinstance(rows, Tensor):
            raise ValueError("its positions are not a table")
        yield f"{within}.positions.weight", rows[stack.first_position :]
    if stack.embedding_norm is not None:
        yield from _norm(f"{within}.norm", stack.embedding_norm)


def _block(block: BlockPart) -> Named:
    for part in block.attentions:
        kind = "cross" if part.place.kind == "cross" else "self"
        for name, weight in _attention(part):
            yield f"{kind}_attention.{name}", weight
        yield from _norm(f"{kind}_norm", part.norm)
    if block.feed_forward is not None:
        if block.feed_forward.parts is None:
            raise ValueError("the neurons of its feed-forward layers are not told")
        for name, weight in _feed_forward(block, block.feed_forward.parts):
            yield f"feed_forward.{name}", weight
        yield from _norm("feed_forward_norm", block.feed_forward.norm)


def _norm(name: str, norm: NormPart | None) -> Named:
    if norm is None:
        raise ValueError(f"it has no {name.replace('_', ' ')}")
    weight, bias = weight_and_bias(norm.module)
    yield f"{name}.gamma", weight + norm.offset if norm.offset else weight
    if bias is not None:
        yield f"{name}.beta", bias


def _map(name: str, matrix: Tensor, bias: Tensor | None) -> Named:
    yield f"{name}.weight", matrix
    if bias is not None:
        yield f"{name}.bias", bias


def _attention(part: AttentionPart) -> Named:
    described = getattr(part.module, "config", None)
    windows = [
        getattr(where, name, None)
        for where in (part.module, described)
        for name in ("sliding_window", "window_size")
    ]
    if any(window is not None for window in windows):
        raise ValueError("its tokens attend to a window of the last ones only")
    inner = [(name.rpartition(".")[2], inner) for name, inner in part.module.named_modules()]
    maps = [(name, one) for name, one in inner if is_map(one) and one is not part.output]
    if len(maps) == 1 and not is_inline(part.module):
        yield from _fused(part, *maps[0])
    elif sorted(name[:1] for name, _ in maps) == sorted(_LETTERS):
        for name, one in maps:
            yield from _map(_LETTERS[name[0]], *matrix_and_bias(one))
    else:
        raise ValueError("its maps to queries, keys and values cannot be told apart")
    for name, one in inner:
        if is_norm(one) and name[:1] in ("q", "k"):
            offset = 0.0 if part.norm is None else part.norm.offset
            yield from _norm(f"{_LETTERS[name[0]]}_norm", NormPart(name, one, "rms", 0.0, offset))
    if part.output is None:
        raise ValueError("its output matrices are not known")
    yield from _map("output", *matrix_and_bias(part.output))


def _fused(part: AttentionPart, name: str, fused: nn.Module) -> Named:
    """Queries, keys and values out of one matrix: one after the other, or group by group (GPT-NeoX)."""
    matrix, bias = matrix_and_bias(fused)
    shared, width = part.heads // part.key_heads, part.head_width
    in_groups = name == "query_key_value"
    sizes = (shared, 1, 1) if in_groups else (part.heads, part.key_heads, part.key_heads)
    outer = part.key_heads if in_groups else 1

    def split(values: Tensor) -> list[Tensor]:
        rows = values.unflatten(0, (outer, sum(sizes), width)).split(sizes, 1)
        return [one.flatten(0, 2) for one in rows]

    biases = [None] * 3 if bias is None else split(bias)
    for own, weight, shift in zip(_LETTERS.values(), split(matrix), biases, strict=True):
        yield from _map(own, weight, shift)


def _feed_forward(block: BlockPart, parts: FeedForwardParts) -> Named:
    attention = {id(one) for part in block.attentions for one in part.module.modules()}
    attention |= {id(part.output) for part in block.attentions}
    others = [
        one
        for one in block.module.modules()
        if is_map(one) and id(one) not in attention and one not in (parts.before, parts.w_out)
    ]
    matrix, bias = matrix_and_bias(parts.before)
    if parts.half != "all":  # both maps of a gated layer are one matrix
        order = ("gate", "w_in") if parts.half == "first" else ("w_in", "gate")
        biases = [None, None] if bias is None else bias.chunk(2)
        for name, half, shift in zip(order, matrix.chunk(2), biases, strict=True):
            yield from _map(name, half, shift)
    elif others:
        yield from _map("gate", matrix, bias)
        yield from _map("w_in", *matrix_and_bias(others[0]))
    else:
        yield from _map("w_in", matrix, bias)
    yield from _map("w_out", *matrix_and_bias(parts.w_out))


def _output(body: Any, config: TransformerConfig) -> Named:
    """The output matrix, where it is not the token table, and what is added to the logits."""
    weight, bias = weight_and_bias(body.get_output_embeddings())
    if not config.tied:
        yield "output.weight", weight
    shift = getattr(body, "final_logits_bias", None)
    added = shift[0] if bias is None and isinstance(shift, Tensor) else bias
    if added is not None:
        yield "output.bias", added
