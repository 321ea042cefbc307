"""Hooks that record a pass of a Hugging Face model in the current recorder, and how it rotates its queries.

They are registered once, at load, because one model serves many sessions. Without a recorder they do nothing.
Axes: B batch, T tokens, C width of the model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from model.hub.attention import PLACE
from model.hub.inline_attention import is_inline
from model.hub.parts import (
    Anatomy,
    AttentionPart,
    BlockPart,
    FeedForwardPart,
    NormPart,
    StackPart,
    beta_of,
    gamma_of,
)
from model.hub.probe import CLOSE, FeedForwardParts, Probe, hooked, is_rotary, near
from model.nn.attention import rotate
from model.nn.config import Stack
from model.nn.intervention import Intervention
from model.nn.norms import NORMS
from model.nn.positions import RotaryPairs
from model.nn.recorder import (
    ExpertTensors,
    FeedForwardTensors,
    NormTensors,
    Recorder,
    current,
    recording,
)

Hook = Callable[..., Any]
Turns = Tensor | tuple[Tensor, Tensor]  # complex numbers (Llama 4), or cosines and sines


def hook_model(anatomy: Anatomy) -> None:
    """Registers the hooks of a model, and gives each attention module its place."""
    for part in anatomy.attentions():
        setattr(part.module, PLACE, (*getattr(part.module, PLACE, ()), part.place))
    for stack in anatomy.stacks:
        _hook_stack(stack)
    for rotary in anatomy.rotary:
        rotary.register_forward_hook(_held_still)


def _held_still(module: nn.Module, read: object, gave: Turns) -> Turns:
    """The rotation of queries and keys; that of position 0 where an intervention removes positions."""
    return gave if current().intervention.positions else unturned(gave)


def unturned(gave: Turns) -> Turns:
    """Rotary cosines and sines, or complex numbers, of position 0 at every position."""
    if isinstance(gave, Tensor):
        return gave[..., :1, :].expand_as(gave)
    cosine, sine = gave
    return cosine[..., :1, :].expand_as(cosine), sine[..., :1, :].expand_as(sine)


def _hook_stack(stack: StackPart) -> None:
    """The hooks of one stack, in the order in which its parts run."""
    name = stack.stack
    _hook_tables(stack)
    post = stack.norm_place == "post"
    if stack.norm_place is None:  # its stream is not known
        _hook_norm(stack.embedding_norm)
        for block in stack.blocks:
            if block.feed_forward is not None:
                _hook_feed_forward(block.feed_forward, block)
        _hook_norm(stack.final_norm)
        return
    first, final = _around(stack)
    _hook_norm(stack.embedding_norm, first, after=name if post and stack.starts_normed else None)
    if post and not stack.starts_normed:
        _hook_state(stack.blocks[0], stack.blocks[0].module, name)
    for block in stack.blocks:
        _hook_block(block, stack)
    _hook_norm(stack.final_norm, final, before=None if post else name)
    if stack.final_norm is None and not post:
        _hook_last(stack.blocks[-1], name)


def _around(stack: StackPart) -> tuple[BlockPart | None, BlockPart | None]:
    """What runs before the first layer and after the last, where both are one norm (NanoChat)."""
    before, after = stack.embedding_norm, stack.final_norm
    if before is None or after is None or before.module is not after.module:
        return None, None
    return BlockPart(after.module, (), None, 0, 2), BlockPart(after.module, (), None, 1, 2)


def _hook_block(block: BlockPart, stack: StackPart) -> None:
    """The hooks of one layer. Each sub-layer has one state: what it reads or, post-norm, what its norm
    gives."""
    name = stack.stack
    _hook_entry(block, block.attentions[0].place.name, name)
    first, *others = block.attentions
    for attention in block.attentions if block.turns == 1 else ():
        _hook_rerun(attention)
    entries: list[tuple[nn.Module, AttentionPart | FeedForwardPart]] = [
        (block.module, first),
        *((part.module, part) for part in others),
        *_entry(block, stack),
    ]
    for module, part in entries:
        if part.norm is None:
            _hook_state(block, module, name)
        elif stack.norm_place == "post":
            _hook_norm(part.norm, block, after=name)
        else:
            _hook_norm(part.norm, block, before=name)
        _hook_norm(part.after, block)
    for attention in block.attentions:
        if attention.output is None and attention.writes is not None:
            _hook_whole(attention.place.name, attention.writes, block)
    feed_forward, writes = block.feed_forward, block.attentions[-1].writes
    if stack.parallel and writes is not None:
        _hook_sum(block, writes, name)
        norm = None if feed_forward is None else feed_forward.norm
        if norm is not None and (first.norm is None or norm.module is not first.norm.module):
            _hook_norm(norm, block)
    if feed_forward is not None:
        _hook_feed_forward(feed_forward, block)


def _entry(block: BlockPart, stack: StackPart) -> list[tuple[nn.Module, FeedForwardPart]]:
    """The feed-forward of a layer, where it reads a state of its own, and the part that reads that."""
    part = block.feed_forward
    return [] if part is None or stack.parallel else [(part.entry, part)]


@dataclass(frozen=True, eq=False)
class NormedAgain:
    """What a norm gives, made when it is asked for."""

    norm: nn.Module
    x: Tensor

    def __call__(self) -> Tensor:
        made: Tensor = self.norm(self.x)
        return made


def _hook_rerun(part: AttentionPart) -> None:
    """Lets go of the vectors of a sub-layer that reads the stream, or a norm of it, where the recorder can
    have it run again. What its norm gave is made again too."""

    def hook(
        module: nn.Module, read: tuple[object, ...], named: Mapping[str, object], gave: object
    ) -> None:
        recorder = current()
        if not recorder.reruns or not recorder.attention:
            return
        normed, again = recorder.normed or (None, None)
        given = [again if one is normed else one for one in (*read, *named.values())]
        known = [again, *recorder.streams.get(part.place.stack, ())[-1:]]
        reads = any(one is each for one in given for each in known if each is not None)
        if not reads or named.get("past_key_values") is not None:
            return

        first, names = len(read), tuple(named)  # what was read is not held

        def run() -> object:
            made = [one() if isinstance(one, NormedAgain) else one for one in given]
            return module(*made[:first], **dict(zip(names, made[first:], strict=True)))

        recorder.drop_for_rerun(
            run, module, *(one.norm for one in given if isinstance(one, NormedAgain))
        )

    part.module.register_forward_hook(hook, with_kwargs=True)


def _on_turn(block: BlockPart, hook: Hook) -> Hook:
    """A hook that acts in one run of a layer whose module runs several times in a pass."""
    if block.turns == 1:
        return hook

    def guarded(*given: Any) -> Any:
        return hook(*given) if current().call_index(guarded, block.turns) == block.turn else None

    return guarded


def _hook_norm(
    part: NormPart | None,
    block: BlockPart | None = None,
    *,
    before: Stack | None = None,
    after: Stack | None = None,
) -> None:
    """Records a norm with the kernel's own statistics, and the state before or after it. block: whose norm it
    is."""
    if part is None:
        return

    def hook(module: nn.Module, read: tuple[Tensor, ...], gave: Tensor) -> None:
        recorder, x = current(), _batched(read[0])
        if not recorder.keeps:
            return
        if recorder.reruns:
            recorder.normed = gave, NormedAgain(module, read[0])
        if before is not None:
            recorder.stream(before, x)
        if part.kind is not None:
            output = _batched(gave) if recorder.keeps_all else None
            recorder.norms.append(_norm_tensors(part, x, output))
        if after is not None:
            recorder.stream(after, _batched(gave))

    part.module.register_forward_hook(hook if block is None else _on_turn(block, hook))


def _norm_tensors(part: NormPart, x: Tensor, output: Tensor | None) -> NormTensors:
    """A norm of x (B, T, C) with its statistics."""
    gamma, beta = gamma_of(part, x), beta_of(part)
    kind = part.kind or "layer"
    # Of half precision the library takes its statistics in single; x itself is a state, kept once.
    mean, inverse = NORMS[kind].measured_by_kernel(x.float(), part.epsilon)
    return NormTensors(part.name, kind, x, mean, inverse, part.epsilon, gamma, beta, output)


def _hook_state(block: BlockPart, module: nn.Module, stack: Stack) -> None:
    """Records what a part reads as a state."""

    def hook(module: nn.Module, read: tuple[object, ...], named: dict[str, object]) -> None:
        states = [value for value in (*read, *named.values()) if isinstance(value, Tensor)]
        current().stream(stack, _batched(states[0]))

    module.register_forward_pre_hook(_on_turn(block, hook), with_kwargs=True)


def _hook_entry(block: BlockPart, name: str, stack: Stack) -> None:
    """Passes on what a block reads, or its patch. It runs before the hooks that record."""

    def hook(
        module: nn.Module, read: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        recorder = current()
        if read and isinstance(read[0], Tensor):
            return (recorder.entering(name, stack, read[0]), *read[1:]), named
        first = next(key for key, value in named.items() if isinstance(value, Tensor))
        return read, {**named, first: recorder.entering(name, stack, named[first])}

    guarded = _on_turn(block, hook)
    block.module.register_forward_pre_hook(guarded, with_kwargs=True, prepend=True)


def _hook_last(block: BlockPart, stack: Stack) -> None:
    """Records the output of the last block as a state."""

    def hook(module: nn.Module, read: object, gave: Tensor | tuple[Tensor, ...]) -> None:
        current().stream(stack, _batched(gave if isinstance(gave, Tensor) else gave[0]))

    block.module.register_forward_hook(_on_turn(block, hook))


def _hook_sum(block: BlockPart, output: nn.Module, stack: Stack) -> None:
    """Records the state after attention, where both sub-layers read the same state."""

    def hook(module: nn.Module, read: object, gave: Tensor) -> None:
        recorder = current()
        if recorder.keeps:
            recorder.stream(stack, recorder.streams[stack][-1] + _batched(gave))

    output.register_forward_hook(_on_turn(block, hook))


def _hook_feed_forward(part: FeedForwardPart, block: BlockPart) -> None:
    """Records neurons where they are known, else the output of the whole, and the experts of each token."""
    if part.parts is not None:
        _hook_neurons(part.name, part.parts, block)
    if part.whole is not None:
        _hook_whole(part.name, part.whole, block)
    if part.router is not None:
        _hook_router(part.name, part.router, block)


def _hook_whole(name: str, whole: nn.Module, block: BlockPart) -> None:
    def hook(module: nn.Module, read: object, gave: Tensor | tuple[Tensor, ...]) -> None:
        recorder = current()
        if recorder.keeps_all:
            recorder.written[name] = _batched(gave if isinstance(gave, Tensor) else gave[0])

    whole.register_forward_hook(_on_turn(block, hook))


def _hook_router(name: str, router: nn.Module, block: BlockPart) -> None:
    def hook(module: nn.Module, read: object, gave: tuple[Tensor, Tensor, Tensor]) -> None:
        recorder = current()
        if recorder.keeps_all:
            recorder.experts.append(ExpertTensors(name, *gave))

    router.register_forward_hook(_on_turn(block, hook))


def _hook_neurons(name: str, parts: FeedForwardParts, block: BlockPart) -> None:
    """Records the values before and after the activation, and passes on the latter, or their patch."""

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

    parts.before.register_forward_hook(_on_turn(block, inner))
    parts.w_out.register_forward_pre_hook(_on_turn(block, outer))


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

    if stack.tokens is not None:
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


# How a hub model rotates its queries: which dimensions form a pair, found by a pass without rotation.
# A rotation keeps the length of each pair, so the pairs are those whose lengths are equal in both passes.
# Axes: B batch, H heads, T tokens, D width of a head, R dimensions that turn.

BASE = 10_000.0  # of the angles, where a config names no other


def rotary_pairs(
    rotary: Sequence[nn.Module], found: Probe, again: Callable[[], Probe]
) -> tuple[RotaryPairs, int]:
    """Which dimensions form a pair, and how many of a head are rotated. `again` repeats the pass. Without
    rotation these are halves of 0."""
    turns = next((call.gave for call in found.calls if is_rotary(call.module)), None)
    width = 0 if turns is None else turns.shape[-1] * (2 if turns.is_complex() else 1)
    if not rotary and any(is_inline(event.module) for event in found.attended):
        return _own_rotation(found, again)
    if not rotary or not width:
        return "halves", 0
    # Every position gets the cosines and sines of position 0.
    with hooked((part, lambda module, read, gave: unturned(gave)) for part in rotary):
        still = again()
    for turned, plain in zip(found.attended, still.attended, strict=True):
        if not torch.equal(turned.query, plain.query):  # the first layer that turns its queries
            return _pairs_of_head(plain.query, turned.query, width), width
    return "other", width


def _own_rotation(found: Probe, again: Callable[[], Probe]) -> tuple[RotaryPairs, int]:
    """The same of modules that rotate queries and keys themselves (GPT-J)."""
    with recording(Recorder(Intervention(positions=False))):
        still = again()
    for turned, plain in zip(found.attended, still.attended, strict=True):
        apart = (turned.query != plain.query).flatten(0, -2).any(0).nonzero()
        if not len(apart):
            continue
        width = int(apart.max()) // 2 * 2 + 2
        pairs = _pairs_of_head(plain.query, turned.query, width)
        angles = standard_angles(turned.query.shape[-2], width, turned.query.device)
        query = plain.query[..., :width]
        if pairs == "neighbours":
            query = torch.cat([query[..., ::2], query[..., 1::2]], -1)
        expected = rotate(query, angles)
        if pairs == "neighbours":
            expected = expected.unflatten(-1, (2, -1)).transpose(-1, -2).flatten(-2)
        return (pairs if near(turned.query[..., :width], expected) else "other"), width
    return "halves", 0


def standard_angles(length: int, width: int, device: torch.device) -> Tensor:
    """(T, R/2): position / base^(2i/R) (Su et al. 2021, 3.2)."""
    where = torch.arange(length, device=device, dtype=torch.float32)
    return where[:, None] / BASE ** (torch.arange(0, width, 2, device=device) / width)


def _pairs_of_head(plain: Tensor, turned: Tensor, width: int) -> RotaryPairs:
    """The kind of pairs among the first dimensions of (B, H, T, D). Where the others do not stay as they
    are, the turned ones stand elsewhere: behind them in DeepSeek."""
    stays = torch.equal(turned[..., width:], plain[..., width:])
    return _pairs(plain[..., :width], turned[..., :width]) if stays else "other"


def _pairs(plain: Tensor, turned: Tensor) -> RotaryPairs:
    """The kind of pairs in (B, H, T, R) that keep their lengths."""
    lengths: dict[RotaryPairs, Callable[[Tensor], Tensor]] = {
        "halves": lambda x: x.unflatten(-1, (2, -1)).norm(dim=-2),
        "neighbours": lambda x: x.unflatten(-1, (-1, 2)).norm(dim=-1),
    }
    apart = {
        name: float((length(turned) - length(plain)).abs().max())
        for name, length in lengths.items()
    }
    nearest = min(apart, key=apart.__getitem__)
    return nearest if apart[nearest] <= CLOSE * float(plain.abs().max()) else "other"
