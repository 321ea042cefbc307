"""The rules by which a hub model's tokenizer cuts a word, read from its description."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from model.hub.isolated_tokenizer import IsolatedTokenizer
from model.run.word_cuts import CONTINUES, LEFT_OUT, UNKNOWN, Kind, Step, longest_first, merged

Ranks = Mapping[tuple[str, str], int]


@dataclass(frozen=True, eq=False)
class Rules:
    """Merges by rank, or the longest piece first. whole: words of the vocabulary are not cut at all."""

    backend: IsolatedTokenizer
    kind: Kind
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

    def steps(self, word: str) -> tuple[Step, ...]:
        """How a word is cut, in the letters of the vocabulary."""
        if self.kind == "longest":
            return longest_first(
                word, self.vocabulary, continues=self.continues, unknown=self.unknown
            )
        if self.whole and word in self.vocabulary:
            return (Step((word,)),)
        known = [letter for letter in word if letter in self.vocabulary]
        steps = merged(known, lambda left, right: self.ranks.get((left, right)))
        if len(known) == len(word):
            return steps
        return Step(tuple(word)), steps[0]._replace(note=LEFT_OUT), *steps[1:]


def model_type(backend: IsolatedTokenizer) -> str | None:
    """How its description calls the way in which it cuts words."""
    found: str | None = json.loads(backend.to_str())["model"].get("type")
    return found


def _ranks(merges: list[str | list[str]]) -> Ranks:
    """The rank of each pair. Older files write a pair as two words in one text."""
    pairs = (pair.split(" ") if isinstance(pair, str) else pair for pair in merges)
    return {(left, right): rank for rank, (left, right) in enumerate(pairs)}
