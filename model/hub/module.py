"""A Hugging Face model with the interface of our own transformer, and its weights under our names.

It keeps nothing of a pass: its hooks write into the recorder of the current context.
Axes: B batch, T tokens, S source tokens, C width of the model, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

from model.analysis.attribution.modules import is_map, matrix_and_bias, weight_and_bias
from model.hub.attention import HubCache, disentangled_terms
from model.hub.hooks import hook_model, standard_angles
from model.hub.inline_attention import adds_to_scores, is_inline, position_kind
from model.hub.lengths import HeldLengths, Reader
from model.hub.parts import (
    Anatomy,
    AttentionPart,
    BlockPart,
    NormPart,
    StackPart,
    extra_parameters,
    head_of,
    headless,
    run,
    writes_logits,
)
from model.hub.probe import FeedForwardParts, is_norm
from model.nn.config import ProvenPart, Reasons, TransformerConfig
from model.nn.key_value_cache import KEEPS_ALL, Eviction
from model.nn.layers import segments_of
from model.nn.places import Place
from model.nn.recorder import Recorder, current, recording
from model.system.memory import make_room
from model.trace.records import Attention

# The weights of a hub model under the names that our own transformer gives them, without copies, except where
# a matrix mixes them group by group.
# Libraries name and lay out their maps in many ways. Here a query map is a query map, whatever it was part
# of.

NamedTensors = Iterator[tuple[str, Tensor]]
_LETTERS = {"q": "query", "k": "key", "v": "value"}


def named_weights(body: Any, anatomy: Anatomy, config: TransformerConfig) -> dict[str, Tensor]:
    """Every weight that a pass uses, by name. Raises ValueError, with a sentence, for a layout that this app
    does not know."""
    # Raises ValueError for layers of another kind than those of our own transformer.
    if config.norms_output:
        raise ValueError("a norm stands on what each of its sub-layers writes")
    if any(stack.token_factor not in (1.0, anatomy.width**0.5) for stack in anatomy.stacks):
        raise ValueError("its token vectors are multiplied by a factor of its own")
    if not config.first_norm:
        raise ValueError("its first layer has no norm")
    if any(adds_to_scores(part.module) for part in anatomy.attentions()):
        raise ValueError("its layers add numbers to the scores")
    # Raises ValueError for angles that do not follow from the base in the config.
    for part in anatomy.rotary:
        width = config.rotary_dim
        expected = 1 / config.rotary_base ** (torch.arange(0, width, 2) / width)
        own = getattr(part, "inv_freq", None)
        if not isinstance(own, Tensor) or own.shape != expected.shape:
            raise ValueError(
                "its rotary angles are made in a way that this app cannot write as code"
            )
        if not torch.allclose(own.cpu().float(), expected, rtol=1e-5):
            raise ValueError("its rotary angles do not follow from one base")
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


def _embedding(stack: StackPart, *, alone: bool) -> NamedTensors:
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


def _block(block: BlockPart) -> NamedTensors:
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


def _norm(name: str, norm: NormPart | None) -> NamedTensors:
    if norm is None:
        raise ValueError(f"it has no {name.replace('_', ' ')}")
    weight, bias = weight_and_bias(norm.module)
    yield f"{name}.gamma", weight + norm.offset if norm.offset else weight
    if bias is not None:
        yield f"{name}.beta", bias


def _map(name: str, matrix: Tensor, bias: Tensor | None) -> NamedTensors:
    yield f"{name}.weight", matrix
    if bias is not None:
        yield f"{name}.bias", bias


def _attention(part: AttentionPart) -> NamedTensors:
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


def _fused(part: AttentionPart, name: str, fused: nn.Module) -> NamedTensors:
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


def _feed_forward(block: BlockPart, parts: FeedForwardParts) -> NamedTensors:
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


def _output(body: Any, config: TransformerConfig) -> NamedTensors:
    """The output matrix, where it is not the token table, and what is added to the logits."""
    weight, bias = weight_and_bias(body.get_output_embeddings())
    if not config.tied:
        yield "output.weight", weight
    shift = getattr(body, "final_logits_bias", None)
    added = shift[0] if bias is None and isinstance(shift, Tensor) else bias
    if added is not None:
        yield "output.bias", added


@dataclass(frozen=True, eq=False)
class HubAttention:
    """One attention sub-layer of a hub model."""

    place: Place
    heads: int
    output_map: nn.Module | None
    window: int | None

    @property
    def output(self) -> nn.Linear:
        """W_O with its bias. Raises ValueError where it is not known."""
        if self.output_map is None:
            raise ValueError(f"The output matrix of {self.place.name} is not known.")
        return as_linear(self.output_map)


class HubTables:
    """The tables of a hub model: tokens, learned positions, rotary angles."""

    def __init__(self, tokens: nn.Embedding, anatomy: Anatomy, config: TransformerConfig) -> None:
        self.tokens = tokens
        self._source = anatomy.stacks[0]
        self._learned = config.has_position_table
        self._rotary = anatomy.rotary if config.turns_positions else ()
        own = config.turns_positions and not anatomy.rotary and config.rotary_pairs != "other"
        self._own_turned = config.rotary_dim if own else 0

    @property
    def added(self) -> Tensor | None:
        """(position, C), learned or not. Read each time, because the model moves between devices."""
        table = getattr(self._source.positions, "weight", None)
        return table.detach()[self._source.first_position :] if isinstance(table, Tensor) else None

    @property
    def positions(self) -> nn.Embedding | None:
        """The learned ones among them."""
        added = self.added if self._learned else None
        return None if added is None else nn.Embedding.from_pretrained(added)

    def angles(self, length: int, device: torch.device) -> Tensor | None:
        """(T, pairs): zero where an intervention leaves positions out. None without rotary positions, or
        where layers use different tables."""
        if self._own_turned:
            angles = standard_angles(length, self._own_turned, device)
        elif len(self._rotary) == 1 and isinstance(
            frequencies := getattr(self._rotary[0], "inv_freq", None), Tensor
        ):
            where = torch.arange(length, device=device, dtype=torch.float32)
            angles = where[:, None] * frequencies.to(device, torch.float32)
        else:
            return None
        return angles if current().intervention.positions else torch.zeros_like(angles)


class HubTransformer(nn.Module):
    """A loaded model of Hugging Face's library. text: ids (1, S) and (1, T) that it is checked with."""

    def __init__(
        self,
        body: Any,
        anatomy: Anatomy,
        config: TransformerConfig,
        text: tuple[Tensor, Tensor | None],
        unused: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.config = config
        self.unused = tuple(unused)
        self.body = body
        self.unproven: Reasons = anatomy.unproven
        self.logit_factor = 1.0
        self.rereads = False
        self.rows_may_grow = not any(is_inline(part.module) for part in anatomy.attentions())
        self._anatomy = anatomy
        self._lengths = HeldLengths(body, anatomy, config.n_ctx, *text)
        self.embedding = HubTables(body.get_input_embeddings(), anatomy, config)
        self._attentions = [
            HubAttention(part.place, part.heads, part.output, part.window)
            for part in anatomy.attentions()
        ]
        hook_model(anatomy)
        if (head := body.get_output_embeddings()) is not None:
            head.register_forward_pre_hook(partial(_room_for_logits, config.d_vocab))

    @property
    def output(self) -> nn.Linear | None:
        """The output matrix; None where it is the token table, or where there is none."""
        return None if self.config.tied else self.body.get_output_embeddings()

    @property
    def output_matrix(self) -> None:
        """None: what follows the matrix (a bias, a scale, a cap) is the library's own."""
        return None

    def forward(
        self, ids: Tensor, target: Tensor | None = None, *, padding: Tensor | None = None
    ) -> Tensor:
        """Logits (B, T, V), or an encoder's states (B, S, C).

        Args:
            ids: (B, S). With a cache in the recorder, a decoder's new ones only.
            target: (B, T), which an encoder–decoder's decoder reads.
            padding: (B, S) bool, True = real token; None: no text of the batch is padded.
        """
        cache = current().cache
        if isinstance(cache, HubCache):
            return self._with_cache(cache, ids, target)
        self._lengths.hold(ids.shape[-1], 0 if target is None else target.shape[-1])
        more = {} if padding is None else {"attention_mask": padding.long()}
        if self.config.separator:
            more["token_type_ids"] = segments_of(ids, self.config.separator)
        return run(self.body, self.config.shape, ids, target, **more)[1]

    def new_cache(self, eviction: Eviction = KEEPS_ALL) -> HubCache:
        """An empty cache for a text that the decoder writes. Raises ValueError for a model that writes none,
        whose tokens read later ones, or whose layers keep something else than keys and values."""
        last = self._anatomy.stacks[-1].stack
        kinds = {part.place.kind for part in self._anatomy.attentions() if part.place.stack == last}
        if "self" in kinds:
            raise ValueError(
                "Tokens of this model read later ones, so nothing of them can be kept."
            )
        if not writes_logits(self.body):
            raise ValueError(f"This model writes no token: {headless(self.body)}.")
        places = {
            int(getattr(part.module, "layer_idx", part.place.layer or 0)): part.place
            for part in self._anatomy.attentions()
            if part.place.stack == "decoder" and part.place.kind == "causal"
        }
        return HubCache(self.body.config, self.config.shape, places, eviction)

    def _with_cache(self, cache: HubCache, ids: Tensor, target: Tensor | None) -> Tensor:
        """The logits of the new tokens; of all of them where the library begins its cache anew (Phi-3)."""

        def reader() -> Reader:
            begun = self.new_cache()

            def read(source: Tensor, new: Tensor) -> Tensor:
                with recording(Recorder(cache=begun)):
                    return self._read(begun, *((new, None) if target is None else (source, new)))

            return read

        length = cache.read + (ids if target is None else target).shape[-1]
        self._lengths.hold_cached(length, reader)
        return self._read(cache, ids, target)

    def _read(self, cache: HubCache, ids: Tensor, target: Tensor | None) -> Tensor:
        fed: dict[str, Any] = {"input_ids": ids}
        if target is not None and cache.memory is not None:
            fed = {"encoder_outputs": BaseModelOutput(last_hidden_state=cache.memory)}
        if target is not None:
            fed["decoder_input_ids"] = target
        else:
            fed = cache.prepared(self.body, ids)
        made = self.body(**fed | {"use_cache": True, "past_key_values": cache.library})
        cache.memory = getattr(made, "encoder_last_hidden_state", None)
        cache.advance((fed["input_ids"] if target is None else target).shape[-1])
        logits: Tensor = made.logits
        return logits

    def unembed(self, stream: Tensor) -> Tensor:
        """A state of the stream (…, C) read as a prediction (…, V): final norm, output matrix, and what the
        library does to logits (a bias, a factor, a cap).

        Raises ValueError for an encoder without head.
        """
        if self.config.shape == "encoder":
            raise ValueError("An encoder without a head predicts no next token.")
        final = self._anatomy.stacks[-1].final_norm
        normed = stream if final is None else final.module(stream)
        logits = head_of(self.body, self._anatomy.stacks)(normed.reshape(1, -1, normed.shape[-1]))
        return logits.reshape(*stream.shape[:-1], -1)

    def attentions(self) -> Sequence[HubAttention]:
        """Every attention sub-layer, in order of execution."""
        return self._attentions

    def bias_table(self, place: Place) -> nn.Embedding | None:
        """The numbers that T5 adds to scores, by bucket and head: a stack's first layer has them for all."""
        tables = {
            part.place: getattr(part.module, "relative_attention_bias", None)
            for part in self._anatomy.attentions()
            if part.place.stack == place.stack and part.place.kind == place.kind
        }
        shared = next((table for table in tables.values() if table is not None), None)
        return tables.get(place) or shared

    def bias_terms(self, record: Attention) -> dict[str, Tensor]:
        """The terms of a sub-layer's biases, (H, T, T) each; none where there is only one."""
        module = next(
            part.module for part in self._anatomy.attentions() if part.place == record.place
        )
        if position_kind(module) != "disentangled" or record.bias is None:
            return {}
        weight = next(module.parameters())  # whose device and precision the terms are made in
        query, key = (torch.tensor(x).to(weight) for x in (record.query, record.key))
        return disentangled_terms(self.body, module, query, key)

    def named_weights(self) -> dict[str, Tensor]:
        """Every weight that a pass uses, under the names of our own transformer."""
        needed: tuple[ProvenPart, ...] = (
            "stream",
            "embedding",
            "norms",
            "feed_forward",
            "output",
            "logits",
        )
        for part in needed:
            if part in self.unproven:
                raise ValueError(self.unproven[part])
        return named_weights(self.body, self._anatomy, self.config)

    def extra_parameters(self) -> dict[str, int]:
        """Parameters by part, beside those that follow from the sizes of the config."""
        return extra_parameters(self.body, self._anatomy, self.config)

    def w_out(self, name: str) -> nn.Linear:
        """The second map of the feed-forward of this name."""
        for stack in self._anatomy.stacks:
            for block in stack.blocks:
                part = block.feed_forward
                if part is not None and part.name == name:
                    if part.parts is None:
                        raise ValueError(
                            f"{name} has no single output matrix: its experts have one each."
                            if part.router is not None
                            else f"The output matrix of {name} is not known."
                        )
                    return as_linear(part.parts.w_out)
        raise ValueError(f"There is no feed-forward {name!r}.")

    def greedy(
        self,
        ids: Tensor,
        *,
        start: int | None,
        end: int | None,
        limit: int,
        first: int | None = None,
    ) -> list[int]:
        """Greedy decoding.

        An encoder–decoder uses its own generation settings (forced first and last tokens, forbidden tokens),
        with one beam and without sampling.

        Args:
            ids: (1, T).
            start: what the decoder of two stacks reads first; a decoder alone reads none.
            end: an id after which a decoder stops, beside those of its settings.
            limit: tokens at most; the model's context may end it before.
            first: what the decoder of two stacks writes first; None: as its settings say.

        Raises ValueError for a model that was loaded without an output matrix.
        """
        if not writes_logits(self.body):
            raise ValueError(f"This model writes no token: {headless(self.body)}.")
        if self.config.shape == "encoder-decoder":
            return self._translated(ids, start, first, limit)
        settings = getattr(self.body, "generation_config", None)
        ends = _ids(getattr(settings, "eos_token_id", None)) | _ids(end)
        chosen: list[int] = []
        with torch.inference_mode():
            while len(chosen) < limit and ids.shape[-1] + len(chosen) <= self.config.n_ctx:
                fed = torch.cat([ids[0], torch.tensor(chosen, dtype=ids.dtype, device=ids.device)])
                chosen.append(int(self(fed[None])[0, -1].argmax()))
                if chosen[-1] in ends:
                    break
        return chosen

    def _translated(
        self, ids: Tensor, start: int | None, first: int | None, limit: int
    ) -> list[int]:
        settings = deepcopy(self.body.generation_config)
        settings.decoder_start_token_id = start
        if first is not None:
            settings.forced_bos_token_id = first
        settings.update(
            num_beams=1, do_sample=False, use_cache=False, early_stopping=False,
            length_penalty=1.0, num_return_sequences=1, max_length=None,
            max_new_tokens=max(1, min(limit, self.config.n_ctx - 1)),
        )  # fmt: skip
        if settings.forced_eos_token_id is not None and settings.max_new_tokens < 2:
            settings.forced_eos_token_id = None
        with torch.inference_mode():
            made = self.body.generate(
                ids, attention_mask=torch.ones_like(ids), generation_config=settings
            )
        return [int(id_) for id_ in made[0, 1:]]


def _room_for_logits(vocabulary: int, head: nn.Module, read: tuple[Tensor, ...]) -> None:
    """Called before the library makes logits (B, T, V) of states (B, T, C)."""
    if current().keeps:
        make_room(read[0].shape[:-1].numel() * vocabulary)


def as_linear(map_: nn.Module) -> nn.Linear:
    """Any linear map as `nn.Linear`, which shares its weights."""
    if isinstance(map_, nn.Linear):
        return map_
    weight, bias = map_.weight, getattr(map_, "bias", None)
    if not isinstance(weight, nn.Parameter):
        raise ValueError(f"{type(map_).__name__} is not a linear map")
    with torch.device("meta"):
        linear = nn.Linear(weight.shape[0], weight.shape[1], bias=bias is not None)
    linear.weight = nn.Parameter(weight.T, requires_grad=False)
    if isinstance(bias, nn.Parameter):
        linear.bias = bias
    return linear


def _ids(given: object) -> set[int]:
    if isinstance(given, int):
        return {given}
    return {int(id_) for id_ in given} if isinstance(given, list | tuple) else set()
