"""A Hugging Face model behind the same face as our own transformer.

Hooks are registered once, when the model is loaded, and write into the recorder of the current
context: one model serves many sessions, and nothing of a pass is kept on it.
Axes: B batch, T tokens, S source tokens, C width of the model, M width of the feed-forward.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from model.config import Stack, TransformerConfig
from model.hub.anatomy import Anatomy, NormPart, StackPart
from model.hub.attention import PLACE
from model.hub.feed_forward import FeedForwardParts
from model.recorder import NormTensors, Place, current


@dataclass(frozen=True, eq=False)
class HubAttention:
    """One attention sub-layer of a hub model."""

    place: Place
    heads: int
    output_map: nn.Module

    @property
    def output(self) -> nn.Linear:
        """W_O with its bias."""
        return as_linear(self.output_map)

    def write_of(self, context: Tensor, head: int) -> Tensor:
        """What one head's context (T, D) adds to the stream through its slice of W_O: (T, C)."""
        width = context.shape[-1]
        return context @ self.output.weight[:, head * width : (head + 1) * width].T


class HubTables:
    """The tables of a hub model: tokens, learned positions, rotary angles."""

    def __init__(self, tokens: nn.Embedding, anatomy: Anatomy, config: TransformerConfig) -> None:
        source = anatomy.stacks[0]
        self.tokens = tokens
        self.added = _position_rows(source)  # (position, C), learned or not
        self.positions = None
        if self.added is not None and config.positions == "learned":
            self.positions = nn.Embedding.from_pretrained(self.added)
        self._rotary = anatomy.rotary

    def angles(self, length: int, device: torch.device) -> Tensor | None:
        """(T, pairs): zero when an intervention leaves positions out; None if not rotary, or where
        the layers turn by different tables."""
        if len(self._rotary) != 1:
            return None
        frequencies = getattr(self._rotary[0], "inv_freq", None)
        if not isinstance(frequencies, Tensor):
            return None
        where = torch.arange(length, device=device, dtype=torch.float32)
        angles = where[:, None] * frequencies.to(device, torch.float32)
        return angles if current().intervention.positions else torch.zeros_like(angles)


class HubTransformer(nn.Module):
    """A loaded model of Hugging Face's library, recorded and changed as our own are."""

    def __init__(self, body: Any, anatomy: Anatomy, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.body = body
        self._anatomy = anatomy
        self.embedding = HubTables(body.get_input_embeddings(), anatomy, config)
        self._attentions = [
            HubAttention(part.place, part.heads, part.output) for part in anatomy.attentions()
        ]
        for part in anatomy.attentions():
            setattr(part.module, PLACE, part.place)
        for stack in anatomy.stacks:
            _hook_stack(stack)
        for rotary in anatomy.rotary:
            rotary.register_forward_hook(_unturned)

    @property
    def output(self) -> nn.Linear | None:
        """The output matrix; None where it is the token table, or where there is none."""
        return None if self.config.tied else self.body.get_output_embeddings()

    def forward(self, ids: Tensor, target: Tensor | None = None) -> Tensor:
        """ids (B, S), target (B, T) to logits (B, T, V), or to an encoder's states (B, S, C)."""
        if self.config.shape == "encoder-decoder":
            logits: Tensor = self.body(
                input_ids=ids, decoder_input_ids=target, use_cache=False
            ).logits
            return logits
        if self.config.shape == "encoder":
            states: Tensor = self.body(input_ids=ids).last_hidden_state
            return states
        logits = self.body(input_ids=ids, use_cache=False).logits
        return logits

    def unembed(self, stream: Tensor) -> Tensor:
        """A state of the stream (…, C) read as a prediction (…, V): final norm, output matrix.

        Raises ValueError for an encoder without head.
        """
        if self.config.shape == "encoder":
            raise ValueError("An encoder without a head predicts no next token.")
        final = self._anatomy.stacks[-1].final_norm
        normed = stream if final is None else final.module(stream)
        logits: Tensor = self.body.get_output_embeddings()(normed)
        bias = getattr(self.body, "final_logits_bias", None)
        return logits if bias is None else logits + bias[0]

    def attentions(self) -> Sequence[HubAttention]:
        """Every attention sub-layer, in order of execution."""
        return self._attentions

    def outer_map(self, name: str) -> nn.Linear:
        """The second map of the feed-forward of this name."""
        for stack in self._anatomy.stacks:
            for block in stack.blocks:
                if block.feed_forward is not None and block.feed_forward.name == name:
                    return as_linear(block.feed_forward.parts.outer)
        raise ValueError(f"There is no feed-forward {name!r}.")

    def greedy(self, ids: Tensor, *, start: int | None, end: int | None, limit: int) -> list[int]:
        """The most probable next token, again and again; stops at an end token, at `limit` tokens
        or at the model's context.

        An encoder–decoder keeps to its own generation settings (forced first and last tokens,
        tokens that it must not say), with one beam and no chance.
        """
        if self.config.shape == "encoder-decoder":
            return self._translated(ids, limit)
        settings = getattr(self.body, "generation_config", None)
        ends = _ids(getattr(settings, "eos_token_id", None)) | _ids(end)
        chosen: list[int] = []
        with torch.inference_mode():
            while len(chosen) < limit and ids.shape[-1] + len(chosen) <= self.config.context:
                fed = torch.cat([ids[0], torch.tensor(chosen, dtype=ids.dtype, device=ids.device)])
                chosen.append(int(self(fed[None])[0, -1].argmax()))
                if chosen[-1] in ends:
                    break
        return chosen

    def _translated(self, ids: Tensor, limit: int) -> list[int]:
        settings = deepcopy(self.body.generation_config)
        settings.update(
            num_beams=1, do_sample=False, use_cache=False, early_stopping=False,
            length_penalty=1.0, num_return_sequences=1, max_length=None,
            max_new_tokens=max(1, min(limit, self.config.context - 1)),
        )  # fmt: skip
        if settings.forced_eos_token_id is not None and settings.max_new_tokens < 2:
            settings.forced_eos_token_id = None
        with torch.inference_mode():
            made = self.body.generate(
                ids, attention_mask=torch.ones_like(ids), generation_config=settings
            )
        return [int(id_) for id_ in made[0, 1:]]


def as_linear(map_: nn.Module) -> nn.Linear:
    """A linear map as one, whichever way its matrix lies; the weights are shared."""
    if isinstance(map_, nn.Linear):
        return map_
    weight, bias = map_.weight, getattr(map_, "bias", None)
    if not isinstance(weight, nn.Parameter):
        raise ValueError(f"{type(map_).__name__} is no linear map")
    with torch.device("meta"):
        linear = nn.Linear(weight.shape[0], weight.shape[1], bias=bias is not None)
    linear.weight = nn.Parameter(weight.T, requires_grad=False)
    if isinstance(bias, nn.Parameter):
        linear.bias = bias
    return linear


def batched(x: Tensor) -> Tensor:
    """(B, T, C): OPT leaves the batch axis out of some of its tensors."""
    return x if x.ndim == 3 else x[None]


def gamma_and_beta(part: NormPart) -> tuple[Tensor, Tensor | None]:
    """(C,) each: what a norm multiplies by and what it adds, if anything."""
    gamma, beta = part.module.weight, getattr(part.module, "bias", None)
    if not isinstance(gamma, Tensor):
        raise ValueError(f"{part.name} has no weight")
    shifted = gamma if part.offset == 0 else gamma + part.offset
    return shifted, beta if isinstance(beta, Tensor) else None


def _ids(given: object) -> set[int]:
    if isinstance(given, int):
        return {given}
    return {int(id_) for id_ in given} if isinstance(given, list | tuple) else set()


def _position_rows(stack: StackPart) -> Tensor | None:
    table = None if stack.positions is None else getattr(stack.positions, "weight", None)
    return None if not isinstance(table, Tensor) else table.detach()[stack.first_position :]


def _unturned(module: nn.Module, read: object, gave: tuple[Tensor, Tensor]) -> object:
    """Rotary cosines and sines as they are, or those of position 0 at every position."""
    if current().intervention.positions:
        return gave
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
    """Notes a norm with the kernel's own statistics, and the state before or after it."""

    def hook(module: nn.Module, read: tuple[Tensor, ...], gave: Tensor) -> None:
        recorder, x = current(), batched(read[0])
        if not recorder.keeps:
            return
        if before is not None:
            recorder.stream(before, x)
        gamma, beta = gamma_and_beta(part)
        if part.kind == "layer":
            _, mean, inverse = torch.native_layer_norm(x, (x.shape[-1],), gamma, beta, part.epsilon)
        else:
            inverse = torch.rsqrt(x.square().mean(-1, keepdim=True) + part.epsilon)
            mean = torch.zeros_like(inverse)
        output = batched(gave) if recorder.keeps_all else None
        recorder.norms.append(
            NormTensors(part.name, part.kind, x, mean, inverse, part.epsilon, gamma, beta, output)
        )
        if after is not None:
            recorder.stream(after, batched(gave))

    part.module.register_forward_hook(hook)


def _hook_state(block: nn.Module, stack: Stack) -> None:
    """Notes what a block reads."""

    def hook(module: nn.Module, read: tuple[object, ...], named: dict[str, object]) -> None:
        states = [value for value in (*read, *named.values()) if isinstance(value, Tensor)]
        current().stream(stack, states[0])

    block.register_forward_pre_hook(hook, with_kwargs=True)


def _hook_last(block: nn.Module, stack: Stack) -> None:
    """Notes what the last block gives."""

    def hook(module: nn.Module, read: object, gave: Tensor | tuple[Tensor, ...]) -> None:
        current().stream(stack, gave if isinstance(gave, Tensor) else gave[0])

    block.register_forward_hook(hook)


def _hook_sum(output: nn.Module, stack: Stack) -> None:
    """Notes the state before plus what attention wrote, where both sub-layers read one state."""

    def hook(module: nn.Module, read: object, gave: Tensor) -> None:
        recorder = current()
        if recorder.keeps:
            recorder.stream(stack, recorder.streams[stack][-1] + batched(gave))

    output.register_forward_hook(hook)


def _hook_feed_forward(name: str, parts: FeedForwardParts) -> None:
    """Notes the values before the activation, and what the second map reads."""

    def inner(module: nn.Module, read: object, gave: Tensor) -> None:
        recorder = current()
        if recorder.keeps_all:
            recorder.unfinished[name] = parts.activated(batched(gave))

    def outer(module: nn.Module, read: tuple[Tensor, ...]) -> None:
        recorder = current()
        if recorder.keeps_all:
            before = recorder.unfinished.pop(name)
            recorder.feed_forward.append((name, before, batched(read[0])))

    parts.before.register_forward_hook(inner)
    parts.outer.register_forward_pre_hook(outer)


def _hook_tables(stack: StackPart) -> None:
    """Notes what is looked up; positions are zero when an intervention leaves them out.

    Both stacks of an encoder–decoder may share a table, and then both are told of each look-up.
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
        parts[name] = batched(summand)
