"""A loaded model: text in, a `Trace` out, and the few other things that pages ask of it."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch

from model.collect import trace_of
from model.config import Stack, TransformerConfig
from model.intervention import Intervention
from model.recorder import Recorder, recording
from model.tokenizers import Tokenizer
from model.trace import Array, Attention, Token, Trace, read_only
from model.transformer import Transformer, greedy

UNCHANGED = Intervention()


class TextTooLongError(ValueError):
    """The text has more tokens than the model can read. `.length` and `.context` say how many."""

    def __init__(self, length: int, context: int, name: str) -> None:
        super().__init__(
            f"The text is {length:,} tokens long; {name} reads at most {context:,}. Shorten it."
        )
        self.length = length
        self.context = context


class Model:
    """One transformer with its tokenizer, ready to be traced. Safe to share between threads."""

    def __init__(
        self,
        name: str,
        module: Transformer,
        tokenizer: Tokenizer,
        device: torch.device | None = None,
    ) -> None:
        self.name = name
        self.device = device or torch.device("cpu")
        self.module = module.to(self.device).eval().requires_grad_(False)
        self.tokenizer = tokenizer

    @property
    def config(self) -> TransformerConfig:
        return self.module.config

    @property
    def attention_names(self) -> tuple[str, ...]:
        """The attention sub-layers, in order of execution: `decoder.0.self`, …"""
        return tuple(attention.place.name for attention in self.module.attentions())

    @property
    def embedding(self) -> Array:
        """(vocabulary, d_model): the token table, one row a token."""
        return read_only(self.module.embedding.tokens.weight.detach().cpu().numpy())

    def tokens(self, text: str) -> tuple[Token, ...]:
        """The tokens of a text as they would be fed. Raises ValueError for blank text."""
        if not text.strip():
            raise ValueError("There is no text yet. Type a sentence.")
        return self.tokenizer.tokens(text)

    def new_words(self, text: str) -> tuple[str, ...]:
        """The words of a text that are not in this model's vocabulary."""
        return self.tokenizer.new_words(text)

    def trace(
        self,
        text: str,
        target: str | None = None,
        intervention: Intervention = UNCHANGED,
        *,
        continued: Sequence[int] = (),
        record: Literal["attention", "full"] = "attention",
        explicit: bool = False,
    ) -> Trace:
        """One pass over a text, and everything it leaves behind.

        `target` is what an encoder–decoder's decoder reads; None: the unchanged model's own greedy
        output. `continued` are ids that the model has written so far: they follow the text (or the
        target) as they are, since their letters, read again, might be cut otherwise.
        `record="full"` adds feed-forward activations and norm outputs. `explicit=True` runs
        without the fused kernel and hands out the scores and weights that the model itself
        computed. Raises ValueError, with a sentence for the page, for text or changes that cannot
        be run.
        """
        tokens, written = self.tokens(text), self._written(continued)
        if self.config.shape == "decoder":
            tokens += written
        self._check_length(tokens)
        target_tokens = self._target_tokens(tokens, target, written)
        self._check_intervention(intervention, len(tokens))
        recorder = Recorder(intervention, record, explicit, self.config.source)
        with recording(recorder), torch.inference_mode():
            result = self._run(tokens, target_tokens)
            angles = self.module.embedding.angles(len(tokens), self.device)
        return trace_of(
            recorder,
            model=self.name,
            text=text,
            tokens=tokens,
            target_tokens=target_tokens,
            angles=angles,
            logits=None if self.config.shape == "encoder" else result,
        )

    def generate(
        self, text: str, *, limit: int = 20, intervention: Intervention = UNCHANGED
    ) -> tuple[Token, ...]:
        """Greedy continuation of a text, or its translation by an encoder–decoder, without `start`.

        Raises ValueError for an encoder, which predicts no next token.
        """
        if self.config.shape == "encoder":
            raise ValueError(f"{self.name} is an encoder: it reads text, it does not continue it.")
        tokens = self.tokens(text)
        self._check_length(tokens)
        self._check_intervention(intervention, len(tokens))
        with recording(Recorder(intervention, source=self.config.source)):
            return self._greedy(tokens, limit)

    def unembed(self, stream: Array) -> Array:
        """States of the stream (…, d_model) read as logits (…, vocabulary): the logit lens.

        Raises ValueError for an encoder without a head.
        """
        with torch.inference_mode():
            states = torch.tensor(np.asarray(stream), dtype=torch.float32, device=self.device)
            return read_only(self.module.unembed(states).cpu().numpy())

    def head_output(self, attention: Attention, head: int) -> Array:
        """(query, d_model): what one head writes to the stream through its slice of W_O."""
        layer = next(
            layer for layer in self.module.attentions() if layer.place.name == attention.name
        )
        context = torch.tensor(attention.output[head], device=self.device)
        if head in attention.ablated:
            context = torch.zeros_like(context)
        with torch.inference_mode():
            return read_only(layer.write_of(context, head).cpu().numpy())

    def kept(self, text: str) -> str:
        """The longest beginning of a text that this model can read, cut at a token."""
        tokens = self.tokens(text)
        over = len(tokens) - self.config.context
        if over <= 0:
            return text
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            fits = not text[:middle].strip() or (
                len(self.tokenizer.tokens(text[:middle])) <= self.config.context
            )
            low, high = (middle, high) if fits else (low, middle - 1)
        return text[:low]

    def _run(self, tokens: tuple[Token, ...], target: tuple[Token, ...]) -> torch.Tensor:
        ids = self._ids(tokens)
        return self.module(ids, self._ids(target)) if target else self.module(ids)

    def _ids(self, tokens: tuple[Token, ...]) -> torch.Tensor:
        return torch.tensor([[token.id for token in tokens]], device=self.device)

    def _greedy(self, tokens: tuple[Token, ...], limit: int) -> tuple[Token, ...]:
        start, end = self.tokenizer.start, self.tokenizer.end
        ids = greedy(self.module, self._ids(tokens), start=start, end=end, limit=limit)
        return self.tokenizer.named(ids)

    def _written(self, ids: Sequence[int]) -> tuple[Token, ...]:
        """Tokens of ids that this model wrote; raises ValueError for what it cannot have written."""
        if ids and self.config.shape == "encoder":
            raise ValueError(f"{self.name} is an encoder: it reads text, it does not continue it.")
        for id_ in ids:
            if not 0 <= id_ < self.config.vocabulary:
                raise ValueError(f"{self.name} has {self.config.vocabulary:,} tokens, no id {id_}.")
        return self.tokenizer.named(ids)

    def _target_tokens(
        self, tokens: tuple[Token, ...], target: str | None, written: tuple[Token, ...]
    ) -> tuple[Token, ...]:
        if self.config.shape != "encoder-decoder":
            if target is not None:
                raise ValueError(
                    f"{self.name} reads one text only; a target needs a decoder beside it."
                )
            return ()
        start, end = self.tokenizer.start, self.tokenizer.end
        if start is None:
            raise ValueError(f"{self.name} has no start token to begin the target with.")
        if target is not None or written:
            fed = self.tokenizer.tokens(target or "") + written
        else:
            fed = self._greedy(tokens, self.config.context - 1)
        ids = [token.id for token in fed if token.id != end]
        target_tokens = self.tokenizer.named([start, *ids])
        self._check_length(target_tokens)
        return target_tokens

    def _check_length(self, tokens: tuple[Token, ...]) -> None:
        if len(tokens) > self.config.context:
            raise TextTooLongError(len(tokens), self.config.context, self.name)

    def _check_intervention(self, change: Intervention, length: int) -> None:
        """Raises ValueError where a change names something that this pass does not have."""
        names = {attention.place.name: attention for attention in self.module.attentions()}
        for name in (change.only or frozenset()) | {name for name, _ in change.ablated}:
            if name not in names:
                raise ValueError(f"{self.name} has no attention sub-layer {name!r}.")
        for name, head in change.ablated:
            if not 0 <= head < names[name].heads:
                raise ValueError(f"{name} has heads 0 to {names[name].heads - 1}, not {head}.")
        beyond = [position for position in change.hidden if position >= length]
        if beyond:
            raise ValueError(
                f"Position {beyond[0]} cannot be hidden: the text has {length} tokens."
            )
        if change.blocked and self.config.shape == "encoder-decoder" and change.only is None:
            raise ValueError("Name the sub-layers (`only`) in which single edges are cut.")

    def stacks(self) -> tuple[Stack, ...]:
        """The stacks that this model has, in order of execution."""
        return tuple(dict.fromkeys(layer.place.stack for layer in self.module.attentions()))
