"""How a tokenizer cuts one word, step by step: byte pairs merged by rank, or the longest piece first."""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import tokenizers

from model.run.tokenizers import GPT2Subset, Tokenizer, WordPieces, clean, gpt2

Piece = TypeVar("Piece", bytes, str)
CutKind = Literal["merges", "longest"]
CONTINUES, UNKNOWN = "##", "[UNK]"  # of word pieces
SPELLED, LEFT_OUT = "spelled in bytes", "without what is not in the vocabulary"
NO_RULE = "This tokenizer cuts words by no rule that is known here."
LONGEST = 48  # bytes of a word whose steps are shown
_WORD_PIECES_READ = 100  # letters; word pieces leave a longer word unknown


class CutStep(NamedTuple):
    """The pieces of a word after a step. at: the place of the piece that the step made. rank: of the merged
    pair. note: what a step does that merges nothing."""

    pieces: tuple[bytes | str, ...]
    at: int | None = None
    rank: int | None = None
    note: str = ""


@dataclass(frozen=True)
class WordCut:
    """The steps that cut a word, and the pieces that the tokenizer itself makes of it."""

    kind: CutKind
    steps: tuple[CutStep, ...]
    own: tuple[bytes | str, ...]

    @property
    def agrees(self) -> bool:
        """Whether the last step gives the tokenizer's own pieces."""
        return self.steps[-1].pieces == self.own


@runtime_checkable
class CutsWords(Protocol):
    """A tokenizer that cuts words by rules of its own."""

    def words_of(self, text: str) -> tuple[str, ...]: ...

    def word_cut(self, text: str, number: int) -> WordCut: ...


def words_of(tokenizer: Tokenizer, text: str) -> tuple[str, ...]:
    """The words of a text, each cut on its own; none where words are not cut by one of the two rules."""
    text = clean(text)
    if isinstance(tokenizer, GPT2Subset):
        return tuple(text[start:end] for _, (start, end) in _gpt2_words().pre_tokenize_str(text))
    if isinstance(tokenizer, WordPieces):
        return tuple(word for word, _ in tokenizer.normal_words(text))
    return tokenizer.words_of(text) if isinstance(tokenizer, CutsWords) else ()


def word_cut(tokenizer: Tokenizer, text: str, number: int) -> WordCut:
    """How the word of this number is cut. Raises ValueError for one that is too long, and where no rule is
    known."""
    words = words_of(tokenizer, text)
    if not words:
        raise ValueError(NO_RULE)
    word = words[number]
    size = len(word.encode())
    if size > LONGEST:
        raise ValueError(
            f"The steps are shown of words of at most {LONGEST} bytes; this one has {size:,}."
        )
    if isinstance(tokenizer, GPT2Subset):
        return _gpt2_cut(tokenizer, word)
    if isinstance(tokenizer, WordPieces):
        own = tuple(token.text for token in tokenizer.tokens(word) if not token.special)
        return WordCut("longest", longest_first(word, tokenizer.vocabulary), own)
    if isinstance(tokenizer, CutsWords):
        return tokenizer.word_cut(text, number)
    raise ValueError(NO_RULE)


def merged(
    pieces: Sequence[Piece], rank_of: Callable[[Piece, Piece], int | None]
) -> tuple[CutStep, ...]:
    """Merges the adjacent pair with the lowest rank, of equal ones the first, until no pair has a rank.

    Source: Sennrich et al. 2016; on bytes, Radford et al. 2019.
    """
    row = list(pieces)
    steps = [CutStep(tuple(row))]
    while True:
        ranks = ((rank_of(*pair), place) for place, pair in enumerate(pairwise(row)))
        found = min(((rank, place) for rank, place in ranks if rank is not None), default=None)
        if found is None:
            return tuple(steps)
        rank, at = found
        row[at : at + 2] = [row[at] + row[at + 1]]
        steps.append(CutStep(tuple(row), at, rank))


def longest_first(
    word: str, vocabulary: Container[str], *, continues: str = CONTINUES, unknown: str = UNKNOWN
) -> tuple[CutStep, ...]:
    """Takes the longest piece that the vocabulary has from the start of what is left, until nothing is. If
    there is none, or the word has more than 100 letters, the whole word is unknown.

    Args:
        continues: what a piece begins with that does not begin the word.
        unknown: the piece that stands for a word of which no cut is found.

    Source: Wu et al. 2016, as BERT uses it.
    """
    steps, found, start = [CutStep((word,))], list[str](), 0
    refused = (*steps, CutStep((unknown,), 0))
    if len(word) > _WORD_PIECES_READ:
        return refused
    while start < len(word):
        before = continues if start else ""
        fitting = (
            end for end in range(len(word), start, -1) if before + word[start:end] in vocabulary
        )
        end = next(fitting, None)
        if end is None:
            return refused
        found.append(before + word[start:end])
        rest = (continues + word[end:],) if end < len(word) else ()
        steps.append(CutStep((*found, *rest), len(found) - 1))
        start = end
    return tuple(steps)


def _gpt2_cut(tokenizer: GPT2Subset, word: str) -> WordCut:
    """GPT-2's merges. What a model with a part of its vocabulary lacks, it spells out in bytes."""
    steps = merged([bytes([byte]) for byte in word.encode()], _gpt2_rank)
    kept = frozenset(tokenizer.kept)
    letters = [
        [piece]
        if gpt2().encode_single_token(piece) in kept
        else [piece[at : at + 1] for at in range(len(piece))]
        for piece in steps[-1].pieces
    ]
    spelled = tuple(piece for one in letters for piece in one)
    if spelled != steps[-1].pieces:
        steps = (*steps, CutStep(spelled, note=SPELLED))
    return WordCut("merges", steps, tuple(map(tokenizer.raw, tokenizer.encode(word))))


def _gpt2_rank(left: bytes, right: bytes) -> int | None:
    try:
        return gpt2().encode_single_token(left + right)
    except KeyError:
        return None


@lru_cache(maxsize=1)
def whole_gpt2() -> GPT2Subset:
    """GPT-2's tokenizer with all of its tokens."""
    return GPT2Subset(range(gpt2().n_vocab - 1))  # without the end of a text


@lru_cache(maxsize=1)
def _gpt2_words() -> tokenizers.pre_tokenizers.ByteLevel:
    """Splits a text as GPT-2 does before it merges."""
    return tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
