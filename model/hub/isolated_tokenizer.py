"""Runs the Rust part of a tokenizer in a process of its own, which can be ended; and the rules by which it
cuts a word.

A model's file decides how long its tokenizer computes; inside the server nothing could stop it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from model.hub import tokenizer_process
from model.run.word_cuts import (
    CONTINUES,
    LEFT_OUT,
    UNKNOWN,
    CutKind,
    CutStep,
    longest_first,
    merged,
)
from model.system.processes import Bounded
from model.system.settings import settings

TO_ANSWER = 2**30  # bytes of memory


@dataclass(frozen=True)
class Encoding:
    """The encoding of a text, under the names that the library reads."""

    ids: list[int]
    type_ids: list[int]
    attention_mask: list[int]
    special_tokens_mask: list[int]
    offsets: list[list[int]]
    n_sequences: int = 1


class IsolatedTokenizer:
    """Takes the place of the Rust part in a tokenizer of the library. The other process encodes and
    decodes; it starts when it is first needed. All else is left to the Rust part."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._apart = Bounded(
            tokenizer_process.__file__,
            TO_ANSWER,
            lambda: {"tokenizer": backend.to_str(), "split": backend.encode_special_tokens},
            TOKENIZERS_PARALLELISM="false",
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def encode_batch(
        self,
        texts: Sequence[str | tuple[str, str]],
        add_special_tokens: bool,
        is_pretokenized: bool,
    ) -> list[Encoding]:
        """As the library's, for whole texts and pairs.

        Args:
            add_special_tokens: whether the marks of a text's start and end are added.
            is_pretokenized: must be False.

        Raises ValueError where that takes too much.
        """
        if is_pretokenized:
            raise ValueError("Only whole texts are read here.")
        pairs = [(text, None) if isinstance(text, str) else text for text in texts]
        asked = ({"text": one, "pair": other, "add": add_special_tokens} for one, other in pairs)
        return [Encoding(**self._ask(each)) for each in asked]

    def decode(self, ids: Sequence[int], skip_special_tokens: bool) -> str:
        """As the library's. Raises ValueError where that takes too much."""
        return str(self._ask({"ids": list(ids), "skip": skip_special_tokens})["text"])

    def words(self, text: str) -> list[tuple[str, tuple[int, int]]]:
        """What of a text is cut on its own, in the letters of the vocabulary, and where it stands."""
        return [(word, (start, end)) for word, (start, end) in self._ask({"words": text})["words"]]

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        return self._apart.ask(asked, settings().pass_seconds)


Ranks = Mapping[tuple[str, str], int]


@dataclass(frozen=True, eq=False)
class Rules:
    """Merges by rank, or the longest piece first. whole: words of the vocabulary are not cut at all."""

    backend: IsolatedTokenizer
    kind: CutKind
    ranks: Ranks
    vocabulary: frozenset[str]
    whole: bool = False
    continues: str = CONTINUES
    unknown: str = UNKNOWN

    @classmethod
    def of(cls, backend: IsolatedTokenizer) -> "Rules | None":
        """The rules of a tokenizer; None where it cuts words in another way."""
        model: dict[str, Any] = json.loads(backend.to_str())["model"]
        vocabulary = model.get("vocab")
        if not isinstance(vocabulary, dict):
            return None
        known = frozenset(vocabulary)
        if model.get("type") == "BPE" and not model.get("dropout"):
            return cls(
                backend, "merges", _ranks(model["merges"]), known, bool(model.get("ignore_merges"))
            )
        if model.get("type") == "WordPiece":
            continues, unknown = model["continuing_subword_prefix"], model["unk_token"]
            return cls(backend, "longest", {}, known, continues=continues, unknown=unknown)
        return None

    def steps(self, word: str) -> tuple[CutStep, ...]:
        """How a word is cut, in the letters of the vocabulary."""
        if self.kind == "longest":
            return longest_first(
                word, self.vocabulary, continues=self.continues, unknown=self.unknown
            )
        if self.whole and word in self.vocabulary:
            return (CutStep((word,)),)
        known = [letter for letter in word if letter in self.vocabulary]
        steps = merged(known, lambda left, right: self.ranks.get((left, right)))
        if len(known) == len(word):
            return steps
        return CutStep(tuple(word)), steps[0]._replace(note=LEFT_OUT), *steps[1:]


def model_type(backend: IsolatedTokenizer) -> str | None:
    """How its description calls the way in which it cuts words."""
    found: str | None = json.loads(backend.to_str())["model"].get("type")
    return found


def _ranks(merges: list[str | list[str]]) -> Ranks:
    """The rank of each pair. Older files write a pair as two words in one text."""
    pairs = (pair.split(" ") if isinstance(pair, str) else pair for pair in merges)
    return {(left, right): rank for rank, (left, right) in enumerate(pairs)}
