"""A loaded model: text in, a `Trace` out, and what else pages ask of it; parts of another sentence's run
too."""

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Literal, cast, overload

import numpy as np
import torch
from torch import Tensor

from model.nn.config import ProvenPart, Reasons, Stack, TransformerConfig
from model.nn.intervention import UNCHANGED, Intervention, PassChange
from model.nn.places import place_of, within
from model.nn.recorder import Recorder, recording
from model.run.by_token import read_by_token
from model.run.inputs import TokenIds, ids_given, is_several
from model.run.other_run import from_other_run
from model.run.protocols import (
    AttentionLayer,
    Runnable,
    check_cached,
    check_continues,
    check_id,
    check_intervention,
    check_length,
    in_names,
)
from model.run.tokenizers import Tokenizer, clean
from model.system.border import at_border
from model.system.memory import enough_memory, into_memory
from model.system.remote import asked
from model.system.settings import settings
from model.trace.arrays import Array
from model.trace.collect import (
    PassArrays,
    array_of,
    deferred_logits,
    numbers_of,
    recorded_logits,
    trace_of,
)
from model.trace.records import Attention, Token
from model.trace.trace import Trace, Vocabulary
from model.trace.transfer import Room
from model.trace.unproven import require

DEFER_FROM = 2**20  # logits; a pass with as many leaves them to be computed when asked for
RERUN_FROM = 512  # tokens; a pass over as many makes the vectors of attention again when asked for


class Model:
    """One transformer with its tokenizer, ready to be traced. Safe to share between threads. borrowed: its
    weights are somebody else's, and stay what and where they are.

    >>> model.name, str(model.device), str(model.precision), model.parameter_count
    ('house-gpt', 'cpu', 'torch.float32', 5322240)
    >>> model.attention_names, model.stacks(), model.layer("decoder.1.self").heads
    (('decoder.0.self', 'decoder.1.self', 'decoder.2.self', 'decoder.3.self'), ('decoder',), 8)
    >>> tokens = model.tokens("Tom Hill saw")
    >>> tuple(model.ids(tokens).shape), model.truncate("Tom Hill")
    ((1, 3), 'Tom Hill')
    >>> model.decoder_prompt(tokens) == tokens
    True
    >>> model.spelled(tokens), model.trace([token.id for token in tokens])
    ('Tom Hill saw', <Trace of house-gpt: 3 tokens, 4 attention layers>)
    >>> model.new_words("Tom"), model.config.n_ctx, model.embedding.shape
    ((), 256, (8192, 256))
    >>> model.unproven, model.unused, model.languages, model.require("logits"), model.require_run()
    (mappingproxy({}), (), {}, None, None)
    >>> [token.text for token in model.generate(trace.text, limit=1)]
    [' Hill']
    >>> model.unembed(trace.residual["decoder"][-1]).shape
    (13, 8192)
    >>> model.head_output(trace.attention[1], 7).shape, tuple(model.w_o("decoder.1.self", 7).shape)
    ((13, 256), (256, 32))
    >>> short, logits = model.passed(tokens)
    >>> short, logits.shape
    (<Trace of house-gpt: 3 tokens, 4 attention layers>, (3, 8192))
    >>> model.on(model.device).reading(model.tokenizer).trace("Tom Hill")
    <Trace of house-gpt: 2 tokens, 4 attention layers>
    >>> model.translating("en", "fr")
    Traceback (most recent call last):
        ...
    ValueError: house-gpt knows no language 'en'.
    """

    runs = True  # a recorded run does not
    changed = 0  # when the file of a recorded run was
    # The token of the language that was chosen for its translations.
    _forced_bos_id: int | None = None

    def __init__(
        self,
        name: str,
        module: Runnable,
        tokenizer: Tokenizer,
        device: torch.device | None = None,
        *,
        target_tokenizer: Tokenizer | None = None,
        borrowed: bool = False,
    ) -> None:
        self.name = self.address = name  # the address is what it is asked for by
        self.device = device or torch.device("cpu")
        self.module = module
        self._borrowed = borrowed
        if not borrowed:
            self.module = module.to(self.device).eval().requires_grad_(False)
            into_memory(self.module.parameters())
        self.tokenizer = tokenizer
        self.target_tokenizer = target_tokenizer or tokenizer  # of the decoder's own text
        self._on_device = Room()  # what its latest passes have left there

    def __repr__(self) -> str:
        config, layers = self.config, len(self.attention_names)
        return (
            f"<Model {self.name}: {config.shape}, {layers} attention layers of {config.heads} heads, "
            f"d_model {config.d_model}, {self.parameter_count:,} parameters>"
        )

    @property
    def config(self) -> TransformerConfig:
        """The sizes and kinds of its parts."""
        return self.module.config

    @property
    def precision(self) -> torch.dtype:
        """What its numbers are while it runs."""
        return self.module.embedding.tokens.weight.dtype

    @property
    def parameter_count(self) -> int:
        """Numbers in its weights, shared ones once."""
        return sum(weight.numel() for weight in self.module.parameters())

    @property
    def attention_names(self) -> tuple[str, ...]:
        """The attention sub-layers, in order of execution: `decoder.0.self`, …"""
        return tuple(attention.place.name for attention in self.module.attentions())

    @property
    def unproven(self) -> Reasons:
        """Parts of a model of Hugging Face's library that could not be proven at load, and why."""
        return self.module.unproven

    @property
    def unused(self) -> tuple[str, ...]:
        """Tensors of its files that Hugging Face's library leaves out: nothing shown depends on them."""
        return self.module.unused

    @at_border
    def require(self, part: ProvenPart) -> None:
        """Raises UnprovenError where a part of the model is not proven."""
        require(self.name, part, self.unproven)

    def require_run(self) -> None:
        """Raises NotShownError where it cannot run."""

    def layer(self, name: str | int) -> AttentionLayer:
        """The attention sub-layer of this name, or of this number where each layer has one. Raises ValueError
        for any other."""
        return self.module.attentions()[place_of(name, self.attention_names, self.name)]

    def stacks(self) -> tuple[Stack, ...]:
        """The stacks that this model has, in order of execution."""
        return tuple(dict.fromkeys(layer.place.stack for layer in self.module.attentions()))

    @property
    @asked
    def embedding(self) -> Array:
        """(vocabulary, d_model): the token table, one row a token."""
        return numbers_of(self.module.embedding.tokens.weight)

    def tokens(self, text: str | TokenIds) -> tuple[Token, ...]:
        """The tokens of a text as they are fed; of ids exactly these. Raises ValueError for blank text, for
        what is no text, and for ids that no token has."""
        if (ids := ids_given(text, self.config.d_vocab, self.name)) is not None:
            return self.tokenizer.named(ids)
        text = cast(str, text)
        if not text.strip():
            raise ValueError("There is no text yet. Type a sentence.")
        return self.tokenizer.tokens(text)

    @at_border
    def spelled(self, tokens: Sequence[Token]) -> str:
        """Tokens as a text."""
        return self.tokenizer.decode([token.id for token in tokens])

    @at_border
    def new_words(self, text: str) -> tuple[str, ...]:
        """The words of a text that are not in this model's vocabulary."""
        return self.tokenizer.new_words(text)

    @overload
    def trace(
        self,
        text: str | TokenIds,
        target: str | None = None,
        intervention: PassChange = UNCHANGED,
        *,
        continued: Sequence[int | Token] = (),
        cached: bool = False,
        record: Literal["attention", "full"] = "attention",
        explicit: bool = False,
    ) -> Trace: ...
    @overload
    def trace(
        self,
        text: list[str] | list[list[int]],
        target: None = None,
        intervention: PassChange = UNCHANGED,
        *,
        record: Literal["attention", "full"] = "attention",
        explicit: bool = False,
    ) -> list[Trace]: ...
    @at_border
    def trace(
        self,
        text: Any,
        target: str | None = None,
        intervention: PassChange = UNCHANGED,
        *,
        continued: Sequence[int | Token] = (),
        cached: bool = False,
        record: Literal["attention", "full"] = "attention",
        explicit: bool = False,
    ) -> Any:
        """One pass over a text, and everything it leaves behind.

        Args:
            text: a text, or token ids: exactly these are fed. A list of either gives a list of traces, one
                pass each (`trace_all` reads several in one).
            target: what an encoder–decoder's decoder reads; None: the unchanged model's own greedy output, or
                the text itself where the library takes that (BART as a classifier).
            continued: tokens or ids that the model has written so far, as `generate` gives them. They follow
                the text (or the target) as ids, because their letters might be tokenized differently.
            cached: the text is read in one pass and each written token in one of its own, with a key–value
                cache, as they were when they were written. The rows of all passes are one trace, which has a
                row for the last token too; `check` covers how they are joined.
            intervention: what is changed; a `Steering` alone serves too.
            record: "full" adds feed-forward activations and norm outputs.
            explicit: runs without the fused kernel, and records the scores and weights that the model itself
                computed.

        Raises ValueError, with a sentence for the page, for a text or an intervention that cannot be run.
        """
        if is_several(text):
            if target is not None or continued or cached:
                raise ValueError("A target, or what is written so far, is of one text.")
            asked: dict[str, Any] = {"record": record, "explicit": explicit}
            return [self.trace(one, None, intervention, **asked) for one in text]
        tokens, written = self.tokens(text), self._written(continued)
        if self.config.shape == "decoder":
            tokens += written
        check_length(len(tokens), self.config.n_ctx, self.name)
        target_tokens = self._target_tokens(tokens, target, written)
        lengths = len(tokens), len(target_tokens)
        change = check_intervention(intervention, self, lengths)
        if cached:
            begun = len(tokens) - len(written)
            if target_tokens:
                begun = len(self._target_tokens(tokens, target or "", ()))
            check_cached(self.name, self.config, change, explicit=explicit)
            texts = tokens, target_tokens
            ended, whole = read_by_token(self, texts, begun, intervention=change, level=record)
            return trace_of_pass(self, whole, ended, *texts, text=text)
        logits = len(target_tokens or tokens) * self.config.d_vocab
        with enough_memory(f"{len(tokens):,} tokens in {self.name}"):
            trace, _ = self._passed(
                tokens,
                target_tokens,
                change,
                record=record,
                explicit=explicit,
                deferred=logits >= DEFER_FROM,
                text=text,
            )
        return trace

    @at_border
    def passed(
        self,
        tokens: tuple[Token, ...],
        target_tokens: tuple[Token, ...] = (),
        intervention: PassChange = UNCHANGED,
        *,
        record: Literal["attention", "full"] = "attention",
        explicit: bool = False,
        deferred: bool = False,
        text: str = "",
    ) -> tuple[Trace, Array]:
        """One pass over given tokens: its trace, and what the pass ends with, (token, …): logits, or the
        final states of an encoder and of a pass whose logits are deferred.

        Args:
            target_tokens: what an encoder–decoder's decoder reads; () for one stack.
            record, explicit: as in `trace`.
            deferred: whether the logits are left to be computed when they are asked for.
            text: as the trace names it.
        """
        if not tokens:
            raise ValueError("There is no text yet: it has no tokens.")
        trace, ended = self._passed(
            tokens,
            target_tokens,
            in_names(intervention, self),
            record=record,
            explicit=explicit,
            deferred=deferred,
            text=text,
        )
        return trace, array_of(ended)

    def _passed(
        self,
        tokens: tuple[Token, ...],
        target_tokens: tuple[Token, ...],
        intervention: Intervention,
        *,
        record: Literal["attention", "full"],
        explicit: bool,
        deferred: bool,
        text: str | TokenIds,
    ) -> tuple[Trace, Tensor]:
        """The same, with what the pass ends with where the model is."""
        recorder = Recorder(intervention, record, explicit, self.config.source, deferred)
        recorder.hooks = from_other_run(self, recorder, tokens, target_tokens)
        recorder.patched = intervention.patch is not None
        recorder.reruns = self._can_run_again(recorder, max(len(tokens), len(target_tokens)))
        with recording(recorder), torch.inference_mode():
            ended = self.module(*map(self.ids, filter(None, (tokens, target_tokens))))
        return trace_of_pass(self, recorder, ended, tokens, target_tokens, text=text), ended

    def _can_run_again(self, recorder: Recorder, tokens: int) -> bool:
        """Whether sub-layers may be run once more instead of being kept: of a long text, where they compute
        the same bits again. Explicit passes keep their steps; on a GPU all stays there; and somebody else's
        weights are theirs to change."""
        drawn = recorder.explicit or recorder.intervention.dropout > 0 or bool(recorder.hooks)
        return tokens >= RERUN_FROM and not (drawn or self._borrowed or self.device.type != "cpu")

    @at_border
    def collected(
        self,
        recorder: Recorder,
        ended: Tensor,
        tokens: tuple[Token, ...],
        target_tokens: tuple[Token, ...] = (),
        *,
        text: str = "",
    ) -> tuple[Trace, Array]:
        """The trace of a pass that is over, and what it ended with, (token, …).

        Args:
            recorder: what the pass left behind.
            ended: (1, token, …), what the module gave.
            tokens, target_tokens: what was fed to it; () for one stack.
            text: as the trace names it.

        >>> from model.nn.recorder import Recorder, recording
        >>> recorder, tokens = Recorder(level="attention"), model.tokens("The cat sat")
        >>> with recording(recorder):
        ...     ended = model.module(model.ids(tokens))
        >>> model.collected(recorder, ended, tokens)[0].find("decoder.1.self").sizes
        (8, 3, 3)
        """
        if ended.ndim < 3 or ended.shape[1] != len(target_tokens or tokens):
            raise ValueError(f"A pass over these tokens does not end with {tuple(ended.shape)}.")
        trace = trace_of_pass(self, recorder, ended, tokens, target_tokens, text=text)
        return trace, array_of(ended)

    @at_border
    def on(self, device: torch.device) -> "Model":
        """The same model on a device: the weights are moved, not copied. Raises ValueError for weights that
        are somebody else's."""
        if self._borrowed:
            raise ValueError("This model's weights are somebody else's: move its owner's model.")
        target = self.target_tokenizer
        return Model(self.name, self.module, self.tokenizer, device, target_tokenizer=target)

    def reading(self, tokenizer: Tokenizer) -> "Model":
        """The same model with another tokenizer of the text."""
        made = copy(self)
        made.tokenizer = tokenizer
        return made

    @property
    def languages(self) -> Mapping[str, int]:
        """The languages of a multilingual translator, by their codes; none of any other model."""
        known: Mapping[str, int] = getattr(self.tokenizer, "languages", {})
        return known

    @at_border
    def translating(self, source: str, target: str) -> "Model":
        """The same model from one of its languages into another. Raises ValueError for codes that it does not
        know."""
        for code in (source, target):
            if code not in self.languages:
                raise ValueError(f"{self.name} knows no language {code!r}.")
        made, pair = copy(self), cast(Any, self.tokenizer).in_languages(source, target)
        made.tokenizer, made.target_tokenizer = pair
        first = self.languages[target]
        made._forced_bos_id = None if first == made.tokenizer.start else first
        return made

    @asked
    @at_border
    def generate(
        self, text: str, *, limit: int = 20, intervention: PassChange = UNCHANGED
    ) -> tuple[Token, ...]:
        """Greedy continuation of a text, or its translation by an encoder–decoder, without `start`.

        Args:
            limit: tokens at most; fewer where the model ends the text, or its context is full.
            intervention: holds at every token.

        Raises ValueError for an encoder, which predicts no next token.
        """
        check_continues(self.name, self.config, intervention)
        tokens = self.tokens(text)
        check_length(len(tokens), self.config.n_ctx, self.name)
        change = check_intervention(intervention, self, (len(tokens), self.config.n_ctx))
        with recording(Recorder(change, source=self.config.source)):
            return self._greedy(tokens, limit)

    @asked
    @at_border
    def unembed(self, stream: Array) -> Array:
        """States of the stream (…, d_model) as logits (…, vocabulary): the logit lens. Raises
        ValueError for an encoder without a head, and where that is not proven."""
        self.require("unembedding")
        with torch.inference_mode():
            if np.shape(stream)[-1:] != ((width := self.config.d_model),):
                raise ValueError(f"States have {width} numbers, not the shape {np.shape(stream)}.")
            states = torch.tensor(np.asarray(stream), dtype=self.precision, device=self.device)
            return numbers_of(self.module.unembed(states))

    @asked
    @at_border
    def head_output(self, attention: Attention, head: int) -> Array:
        """(query, d_model): what one head writes to the stream through its slice of W_O. Raises ValueError
        where W_O is not known."""
        head = within(head, attention.heads, f"{attention.name} has heads")
        context = torch.tensor(attention.output[head], device=self.device)  # (query, d_v)
        if head in attention.ablated:
            context = torch.zeros_like(context)
        with torch.inference_mode():
            return numbers_of(context @ self.w_o(attention.name, head).T.float())

    @at_border
    def w_o(self, name: str | int, head: int) -> torch.Tensor:
        """(d_model, d_v): the columns of a sub-layer's W_O that read one head. Raises ValueError where it is
        not proven."""
        self.require("output")
        layer = self.layer(name)
        head = within(head, layer.heads, f"{layer.place.name} has heads")
        return layer.output.weight.chunk(layer.heads, 1)[head]

    @at_border
    def truncate(self, text: str) -> str:
        """The beginning of a text, cut after the last token that this model can read."""
        context = self.config.n_ctx
        if len(self.tokens(text)) <= context:
            return text
        beginnings = (self.tokenizer.beginning(text, count) for count in range(context, 0, -1))
        # A word cut short can make more tokens than it had within the text: then one less is tried.
        fitting = (cut for cut in beginnings if len(self.tokenizer.tokens(cut)) <= context)
        return next(fitting, "")

    @at_border
    def ids(self, tokens: Sequence[Token]) -> torch.Tensor:
        """(1, token): what the module is fed."""
        return torch.tensor([[token.id for token in tokens]]).to(self.device, non_blocking=True)

    @asked
    @at_border
    def decoder_prompt(self, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        """What the decoder reads before it writes: the text, or the beginning of a target."""
        translates = self.config.shape == "encoder-decoder"
        return self._target_tokens(tokens, "", ()) if translates else tokens

    def kept(self, text: str) -> str:
        """Deprecated: the former name of `truncate`."""
        warnings.warn("Model.kept is now called truncate.", DeprecationWarning, stacklevel=2)
        return self.truncate(text)

    def begun(self, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        """Deprecated: the former name of `decoder_prompt`.

        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as told:
        ...     warnings.simplefilter("always")
        ...     model.kept("Tom"), model.begun(model.tokens("Tom")) == model.tokens("Tom")
        ('Tom', True)
        >>> [str(one.message) for one in told]
        ['Model.kept is now called truncate.', 'Model.begun is now called decoder_prompt.']
        """
        warnings.warn("Model.begun is now called decoder_prompt.", DeprecationWarning, stacklevel=2)
        return self.decoder_prompt(tokens)

    def _greedy(self, tokens: tuple[Token, ...], limit: int) -> tuple[Token, ...]:
        start, end = self.tokenizer.start, self.tokenizer.end
        ids = self.module.greedy(
            self.ids(tokens), start=start, end=end, limit=limit, first=self._forced_bos_id
        )
        return self.target_tokenizer.named(ids)

    def _written(self, given: Sequence[int | Token]) -> tuple[Token, ...]:
        """The tokens of ids that this model wrote. Raises ValueError for ids that it cannot write."""
        ids = [one.id if isinstance(one, Token) else one for one in given]
        if ids:
            check_continues(self.name, self.config)
        for id_ in ids:
            check_id(id_, self.config.d_vocab, self.name)
        return self.tokenizer.named(ids)

    def _target_tokens(
        self, tokens: tuple[Token, ...], target: str | None, written: tuple[Token, ...]
    ) -> tuple[Token, ...]:
        if self.config.shape != "encoder-decoder":
            if target is not None:
                raise ValueError(
                    f"{self.name} reads one text only; a target needs an encoder and a decoder."
                )
            return ()
        start, end = self.tokenizer.start, self.tokenizer.end
        if start is None:
            raise ValueError(f"{self.name} has no start token to begin the target with.")
        if target is not None or written:
            fed = self.target_tokenizer.tokens(target or "") + written
        elif self.module.rereads:
            fed = tokens
        else:
            fed = self._greedy(tokens, self.config.n_ctx - 1)
        ids = [token.id for token in fed if token.id != end]
        target_tokens = self.target_tokenizer.named([start, *ids])
        check_length(len(target_tokens), self.config.n_ctx, self.name)
        return target_tokens


def trace_of_pass(
    model: "Model",
    recorder: Recorder,
    ended: Tensor,
    tokens: tuple[Token, ...],
    target_tokens: tuple[Token, ...] = (),
    *,
    text: str | TokenIds,
) -> Trace:
    """The trace of a pass that is over: what lies on a GPU stays there until it is read.

    Args:
        recorder, ended, tokens, target_tokens: as in `Model.collected`.
        text: as the trace names it; ids are named as they are spelled.
    """
    with recording(recorder), torch.inference_mode():
        angles = model.module.embedding.angles(len(tokens), model.device)
    arrays, matrix, prediction = PassArrays(), model.module.output_matrix, None
    if model.config.shape != "encoder":
        prediction = (
            deferred_logits(ended, matrix)
            if recorder.deferred and matrix is not None
            else recorded_logits(ended, arrays)
        )
    # Some models have logits that stand for no token.
    size = 0 if prediction is None else min(prediction.vocabulary, model.tokenizer.size)
    trace = trace_of(
        recorder,
        model=model.name,
        text=clean(text) if isinstance(text, str) else model.spelled(tokens),
        tokens=tokens,
        target_tokens=target_tokens,
        angles=angles,
        prediction=prediction,
        device=ended.device,
        unproven=model.unproven,
        arrays=arrays,
        config=model.config,
        vocabulary=None if prediction is None else Vocabulary(size, model.tokenizer.named),
        precision=model.precision,
    )
    model._on_device.add(arrays.on_device, settings().trace_bytes)
    return trace
