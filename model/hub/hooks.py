"""Hooks that record a pass of a Hugging Face model in the current recorder.

They are registered once, at load, because one model serves many sessions. Without a recorder they do nothing.
Axes: B batch, T tokens, C width of the model.
"""

from typing import Any

import torch
from torch import Tensor, nn

from model.hub.attention import PLACE
from model.hub.feed_forward import FeedForwardParts
from model.hub.parts import Anatomy, NormPart, StackPart
from model.nn.config import Stack
from model.nn.recorder import FeedForwardTensors, NormTensors, current


def hook_model(anatomy: Anatomy) -> None:
    """Registers the hooks of a model, and gives each attention module its place."""
    for part in anatomy.attentions():
        setattr(part.module, PLACE, part.place)
    for stack in anatomy.stacks:
        _hook_stack(stack)
    for rotary in anatomy.rotary:
        rotary.register_forward_hook(_held_still)


def _held_still(module: nn.Module, read: object, gave: tuple[Tensor, Tensor]) -> object:
    """Rotary cosines and sines, or those of position 0 where an intervention leaves positions out."""
    return gave if current().intervention.positions else unturned(gave)


def unturned(gave: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Rotary cosines and sines of position 0 at every position."""
    cosine, sine = gave
    return cosine[..., :1, :].expand_as(cosine), sine[..., :1, :].expand_as(sine)


def _hook_stack(stack: StackPart) -> None:
    """The hooks of one stack, in the order in which its parts run."""
    name = stack.stack
    _hook_tables(stack)
    if stack.embedding_norm is not None:
        post = stack.norm_place == "post"
        _hook_norm(stack.embedding_norm, after=name if post else None)
    elif stack.norm_place == "post":
        _hook_state(stack.blocks[0].module, name)
    for block in stack.blocks:
        _hook_entry(block.module, block.attentions[0].place.name, name)
        for part in block.attentions:
            _hook_norm(part.norm, **_states(stack, name))
        if stack.parallel:
            _hook_sum(block.attentions[-1].output, name)
        if block.feed_forward is not None:
            states = {} if stack.parallel else _states(stack, name)
            _hook_norm(block.feed_forward.norm, **states)
            _hook_feed_forward(block.feed_forward.name, block.feed_forward.parts)
    if stack.final_norm is not None:
        _hook_norm(stack.final_norm, before=name if stack.norm_place == "pre" else None)
    elif stack.norm_place == "pre":
        _hook_last(stack.blocks[-1].module, name)


def _states(stack: StackPart, name: Stack) -> dict[str, Stack]:
    """Pre-norm: what a norm reads is a state of the stream. Post-norm: what it gives."""
    return {"before" if stack.norm_place == "pre" else "after": name}


def _hook_norm(part: NormPart, *, before: Stack | None = None, after: Stack | None = None) -> None:
    """Records a norm with the kernel's own statistics, and the state before or after it."""

    def hook(module: nn.Module, read: tuple[Tensor, ...], gave: Tensor) -> None:
        recorder, x = current(), _batched(read[0])
        if not recorder.keeps:
            return
        if before is not None:
            recorder.stream(before, x)
        gamma, beta = _gamma_and_beta(part)
        if part.kind == "layer":
            _, mean, inverse = torch.native_layer_norm(x, (x.shape[-1],), gamma, beta, part.epsilon)
        else:
            inverse = torch.rsqrt(x.square().mean(-1, keepdim=True) + part.epsilon)
            mean = torch.zeros_like(inverse)
        output = _batched(gave) if recorder.keeps_all else None
        recorder.norms.append(
            NormTensors(part.name, part.kind, x, mean, inverse, part.epsilon, gamma, beta, output)
        )
        if after is not None:
            recorder.stream(after, _batched(gave))

    part.module.register_forward_hook(hook)


def _hook_state(block: nn.Module, stack: Stack) -> None:
    """Records the input of a block as a state."""

    def hook(module: nn.Module, read: tuple[object, ...], named: dict[str, object]) -> None:
        states = [value for value in (*read, *named.values()) if isinstance(value, Tensor)]
        current().stream(stack, states[0])

    block.register_forward_pre_hook(hook, with_kwargs=True)


def _hook_entry(block: nn.Module, name: str, stack: Stack) -> None:
    """Hands on what a block reads, or what is put in its place. It runs before the hooks that record."""

    def hook(
        module: nn.Module, read: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        recorder = current()
        if read and isinstance(read[0], Tensor):
            return (recorder.entering(name, stack, read[0]), *read[1:]), named
        first = next(key for key, value in named.items() if isinstance(value, Tensor))
        return read, {**named, first: recorder.entering(name, stack, named[first])}

    block.register_forward_pre_hook(hook, with_kwargs=True, prepend=True)


def _hook_last(block: nn.Module, stack: Stack) -> None:
    """Records the output of the last block as a state."""

    def hook(module: nn.Module, read: object, gave: Tensor | tuple[Tensor, ...]) -> None:
        current().stream(stack, gave if isinstance(gave, Tensor) else gave[0])

    block.register_forward_hook(hook)


def _hook_sum(output: nn.Module, stack: Stack) -> None:
    """Records the state after attention, where both sub-layers read the same state."""

    def hook(module: nn.Module, read: object, gave: Tensor) -> None:
        recorder = current()
        if recorder.keeps:
            recorder.stream(stack, recorder.streams[stack][-1] + _batched(gave))

    output.register_forward_hook(hook)


def _hook_feed_forward(name: str, parts: FeedForwardParts) -> None:
    """Records the values before and after the activation; the latter go on, or what is put in their
    place."""

    def inner(module: nn.Module, read: object, gave: Tensor) -> None:
        recorder = current()
        if recorder.keeps_all:
            recorder.unfinished[name] = parts.activated(_batched(gave))

    def outer(module: nn.Module, read: tuple[Tensor, ...]) -> tuple[Tensor] | None:
        recorder = current()
        hidden = recorder.through("hidden", name, read[0])
        if recorder.keeps_all:
            before = recorder.through("before", name, recorder.unfinished.pop(name))
            recorder.feed_forward.append(FeedForwardTensors(name, before, _batched(hidden)))
        return (hidden,) if hidden is not read[0] else None

    parts.before.register_forward_hook(inner)
    parts.w_out.register_forward_pre_hook(outer)


def _hook_tables(stack: StackPart) -> None:
    """Records embeddings. Positions are zero where an intervention leaves them out.

    Where both stacks of an encoder–decoder share a table, both hooks run at each look-up.
    """

    def tokens(module: nn.Module, read: tuple[Tensor, ...], gave: Tensor) -> None:
        weight = module.weight
        if current().keeps and isinstance(weight, Tensor):
            _note(stack.stack, "tokens", weight[read[0]] * stack.token_factor)

    def segments(module: nn.Module, read: object, gave: Tensor) -> None:
        _note(stack.stack, "segments", gave)

    def positions(module: nn.Module, read: object, gave: Tensor) -> Tensor:
        used = gave if current().intervention.positions else torch.zeros_like(gave)
        _note(stack.stack, "positions", used)
        return used

    stack.tokens.register_forward_hook(tokens)
    if stack.positions is not None:
        stack.positions.register_forward_hook(positions)
    if stack.segments is not None:
        stack.segments.register_forward_hook(segments)


def _note(stack: Stack, name: str, summand: Tensor) -> None:
    recorder = current()
    if not recorder.keeps:
        return
    parts = recorder.summands.setdefault(stack, {})
    if (
        stack == "decoder" or name not in parts
    ):  # a shared table: the encoder first, then the decoder
        parts[name] = _batched(summand)


def _batched(x: Tensor) -> Tensor:
    """(B, T, C): OPT leaves the batch axis out of some of its tensors."""
    return x if x.ndim == 3 else x[None]


def _gamma_and_beta(part: NormPart) -> tuple[Tensor, Tensor | None]:
    """(C,) each: γ, and β or None."""
    gamma, beta = part.module.weight, getattr(part.module, "bias", None)
    if not isinstance(gamma, Tensor):
        raise ValueError(f"{part.name} has no weight")
    shifted = gamma if part.offset == 0 else gamma + part.offset
    return shifted, beta if isinstance(beta, Tensor) else None
