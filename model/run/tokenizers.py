"""Text to tokens and back: GPT-2's byte pairs, word pieces, closed lists of words.

Every tokenizer takes any text. What its vocabulary lacks is spelled in bytes, marked unknown, or
refused with a sentence.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Protocol

import numpy as np
import tiktoken
import tokenizers
from tiktoken.load import load_tiktoken_bpe

from model.trace.records import Token

GPT2_VOCABULARY = Path(__file__).parents[1] / "assets" / "r50k_base.tiktoken"
GPT2_SHA256 = "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"
GPT2_SPLIT = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
BYTES = 256
TEXTS_KEPT = 8  # a run of a page asks several times for the tokens of the same few texts
_STRAY = range(0xDC80, 0xDD00)  # surrogates that stand for bytes of no character (PEP 383)
_WORD = re.compile(r"\w+'|\w+|<\w+>|[^\w\s]")


class Tokenizer(Protocol):
    """What a model needs of its tokenizer. `start` and `end` are ids, or None."""

    size: int
    start: int | None
    end: int | None

    def tokens(self, text: str) -> tuple[Token, ...]: ...

    def named(self, ids: Sequence[int]) -> tuple[Token, ...]: ...

    def decode(self, ids: Sequence[int]) -> str: ...

    def new_words(self, text: str) -> tuple[str, ...]: ...

    def beginning(self, text: str, tokens: int) -> str:
        """The part of a text that its first tokens cover; those that the tokenizer adds count."""
        ...


def clean(text: str) -> str:
    """The text with lone surrogates, which no encoding can write, replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@lru_cache(maxsize=4096)
def spelled(raw: bytes) -> str:
    """Bytes as text; those of no whole character in hexadecimal: b"\\xf0\\x9f" is "‹F09F›"."""
    written = "".join(
        f"‹{ord(character) - 0xDC00:02X}›" if ord(character) in _STRAY else character
        for character in raw.decode("utf-8", "surrogateescape")
    )
    return written.replace("›‹", "")


def spans(raws: Iterable[bytes]) -> list[tuple[int, int]]:
    """Where tokens stand in the text that their bytes make: from the first character to after the last, a
    character that is cut in two in both halves."""
    raws = tuple(raws)
    begun = np.cumsum(
        [byte & 0xC0 != 0x80 for byte in b"".join(raws)]
    )  # characters up to each byte
    ends = accumulate(map(len, raws))
    return [
        (int(begun[end - len(raw)]) - 1, int(begun[end - 1]))
        for raw, end in zip(raws, ends, strict=True)
    ]


@lru_cache(maxsize=1)
def gpt2() -> tiktoken.Encoding:
    """GPT-2's encoding from the shipped vocabulary. Raises ValueError if the file is damaged."""
    try:
        ranks = load_tiktoken_bpe(str(GPT2_VOCABULARY), expected_hash=GPT2_SHA256)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"GPT-2's vocabulary {GPT2_VOCABULARY.name} is missing or damaged."
        ) from error
    return tiktoken.Encoding(
        name="gpt2",
        pat_str=GPT2_SPLIT,
        mergeable_ranks=ranks,
        special_tokens={"<|endoftext|>": len(ranks)},
    )


@lru_cache(maxsize=TEXTS_KEPT)
def gpt2_ids(text: str) -> tuple[int, ...]:
    """GPT-2's ids of a text. Text that looks like a special token is text."""
    return tuple(gpt2().encode(clean(text), disallowed_special=()))


class GPT2Subset:
    """GPT-2's tokens, compacted to a kept list plus all 256 bytes, so that any text can be fed.

    A token outside the list is spelled in its bytes. Text that looks like a special token is text.
    Raises ValueError for kept ids that GPT-2 does not have.
    """

    start: int | None = None
    end: int | None = None

    def __init__(self, kept: Sequence[int]) -> None:
        every_byte = {gpt2().encode_single_token(bytes([byte])) for byte in range(BYTES)}
        for id_ in kept:
            if not 0 <= id_ < gpt2().n_vocab:
                raise ValueError(f"GPT-2 has no token {id_!r}.")
        self.kept = tuple(sorted(every_byte | set(kept)))
        self.size = len(self.kept)
        self._compact = {full: compact for compact, full in enumerate(self.kept)}

    def encode(self, text: str) -> list[int]:
        return [compact for full in gpt2_ids(text) for compact in self._spelled(full)]

    def tokens(self, text: str) -> tuple[Token, ...]:
        tokens = self.named(self.encode(text))
        places = spans([token.raw for token in tokens])
        return tuple(map(_placed, tokens, places))

    def named(self, ids: Sequence[int]) -> tuple[Token, ...]:
        """Each id with its text and its bytes."""
        raws = [self.raw(id_) for id_ in ids]
        return tuple(Token(int(id_), spelled(raw), raw) for id_, raw in zip(ids, raws, strict=True))

    def raw(self, id_: int) -> bytes:
        return gpt2().decode_single_token_bytes(self.kept[id_])

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(self.raw(id_) for id_ in ids).decode("utf-8", "replace")

    def new_words(self, text: str) -> tuple[str, ...]:
        """The pieces of a text that are spelled in bytes, in order, each once. Tokens that split a
        character are one piece."""
        found, raw, is_new = [], b"", False
        for full in gpt2_ids(text):
            raw += gpt2().decode_single_token_bytes(full)
            is_new |= full not in self._compact
            try:
                piece = raw.decode("utf-8").strip()
            except UnicodeDecodeError:  # the next token continues the character
                continue
            if is_new and piece:
                found.append(piece)
            raw, is_new = b"", False
        return tuple(dict.fromkeys(found))

    def beginning(self, text: str, tokens: int) -> str:
        raw = b"".join(self.raw(id_) for id_ in self.encode(text)[:tokens])
        return raw.decode("utf-8", "ignore")  # without a last character that is cut in two

    def _spelled(self, full: int) -> list[int]:
        if full in self._compact:
            return [self._compact[full]]
        raw = gpt2().decode_single_token_bytes(full)
        return [self._compact[gpt2().encode_single_token(bytes([byte]))] for byte in raw]

    def description(self) -> dict[str, object]:
        return {"kind": "gpt2-subset", "kept": list(self.kept)}


class GPT2WithEnds(GPT2Subset):
    """Some of GPT-2's tokens, and two more: one that begins the target of a decoder, one that ends it."""

    def __init__(self, kept: Sequence[int]) -> None:
        super().__init__(kept)
        self._ends = {self.size: "<start>", self.size + 1: "<end>"}
        self.start, self.end = self._ends
        self.size += len(self._ends)

    def raw(self, id_: int) -> bytes:
        return self._ends[id_].encode() if id_ in self._ends else super().raw(id_)

    def named(self, ids: Sequence[int]) -> tuple[Token, ...]:
        return tuple(
            Token(token.id, token.text, special=True) if token.id in self._ends else token
            for token in super().named(ids)
        )

    def decode(self, ids: Sequence[int]) -> str:
        return super().decode([id_ for id_ in ids if id_ not in self._ends])


class WordPieces:
    """BERT's word pieces, read from a `tokenizer.json`. Adds [CLS] and [SEP]; unknown: [UNK]."""

    start: int | None = None
    end: int | None = None

    def __init__(self, path: Path) -> None:
        self.__setstate__(path.read_text(encoding="utf-8"))

    def __getstate__(self) -> str:
        return str(self._tokenizer.to_str())

    def __setstate__(self, description: str) -> None:
        self._tokenizer = tokenizers.Tokenizer.from_str(description)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._encoding = lru_cache(TEXTS_KEPT)(self._tokenizer.encode)
        self.size = self._tokenizer.get_vocab_size()
        self.vocabulary = frozenset(self._tokenizer.get_vocab())
        self.separator: int = self._tokenizer.token_to_id("[SEP]") or 0

    def normal_words(self, text: str) -> list[tuple[str, tuple[int, int]]]:
        """The words of a text as they are cut into pieces: without case and accents; and their places."""
        normal = self._tokenizer.normalizer.normalize_str(clean(text))
        return self._tokenizer.pre_tokenizer.pre_tokenize_str(normal)

    def tokens(self, text: str) -> tuple[Token, ...]:
        encoding = self._encoding(clean(text))
        return tuple(
            Token(id_, piece, special=bool(special), span=None if special else span)
            for id_, piece, special, span in zip(
                encoding.ids,
                encoding.tokens,
                encoding.special_tokens_mask,
                encoding.offsets,
                strict=True,
            )
        )

    def named(self, ids: Sequence[int]) -> tuple[Token, ...]:
        return tuple(Token(int(id_), self._tokenizer.id_to_token(int(id_)) or "") for id_ in ids)

    def decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(list(ids))

    def new_words(self, text: str) -> tuple[str, ...]:
        """Words that became [UNK]."""
        text = clean(text)
        encoding, unknown = self._encoding(text), self._tokenizer.token_to_id("[UNK]")
        spans = zip(encoding.ids, encoding.offsets, strict=True)
        return tuple(dict.fromkeys(text[slice(*span)] for id_, span in spans if id_ == unknown))

    def beginning(self, text: str, tokens: int) -> str:
        encoding = self._encoding(clean(text))
        added = encoding.special_tokens_mask
        ends = [
            end for (_, end), is_added in zip(encoding.offsets, added, strict=True) if not is_added
        ]
        fitting = ends[: max(tokens - sum(added), 0)]
        return clean(text)[: fitting[-1]] if fitting else ""


class WordTokenizer:
    """A closed list of words, split at spaces and punctuation, without case.

    Raises ValueError, naming the words, for text outside the list, and for a list that holds a word
    twice or lacks `start` or `end`.
    """

    def __init__(
        self, words: Sequence[str], *, start: str | None = None, end: str | None = None
    ) -> None:
        self.words = tuple(words)
        self.size = len(self.words)
        self._ids = {word: id_ for id_, word in enumerate(self.words)}
        if len(self._ids) < self.size:
            raise ValueError("A list of words must have each word only once.")
        for special in (start, end):
            if special is not None and special not in self._ids:
                raise ValueError(f"{special!r} is not in the list of words.")
        self.start = None if start is None else self._ids[start]
        self.end = None if end is None else self._ids[end]

    def encode(self, text: str) -> list[int]:
        if unknown := self.new_words(text):
            listed = ", ".join(f"“{word}”" for word in unknown)
            raise ValueError(f"This model does not know {listed}.")
        return [self._ids[word] for word in self._split(text)]

    def tokens(self, text: str) -> tuple[Token, ...]:
        places = (match.span() for match in _WORD.finditer(_lower(text)))
        return tuple(map(_placed, self.named(self.encode(text)), places))

    def named(self, ids: Sequence[int]) -> tuple[Token, ...]:
        special = {self.start, self.end}
        return tuple(Token(int(id_), self.words[id_], special=id_ in special) for id_ in ids)

    def decode(self, ids: Sequence[int]) -> str:
        spoken = " ".join(token.text for token in self.named(ids) if not token.special)
        return re.sub(r" ([.,])", r"\1", spoken.replace("' ", "'"))

    def new_words(self, text: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(word for word in self._split(text) if word not in self._ids))

    def description(self) -> dict[str, object]:
        start, end = (None if id_ is None else self.words[id_] for id_ in (self.start, self.end))
        return {"kind": "words", "words": list(self.words), "start": start, "end": end}

    def beginning(self, text: str, tokens: int) -> str:
        ends = [match.end() for match in _WORD.finditer(_lower(text))][:tokens]
        return clean(text)[: ends[-1]] if ends else ""

    @staticmethod
    def _split(text: str) -> list[str]:
        return _WORD.findall(_lower(text))


def _placed(token: Token, span: tuple[int, int]) -> Token:
    return replace(token, span=span)


def _lower(text: str) -> str:
    return clean(text).lower().replace("’", "'")


def tokenizer_from(description: dict[str, object]) -> GPT2Subset | WordTokenizer:
    """The tokenizer of a shipped model's `tokenizer.json`. Raises ValueError for an unknown one."""
    match description:
        case {"kind": "gpt2-subset", "kept": list(kept)} if _all(int, kept):
            return GPT2Subset(kept)
        case {
            "kind": "words",
            "words": list(words),
            "start": (str() | None) as start,
            "end": (str() | None) as end,
        } if _all(str, words):
            return WordTokenizer(words, start=start, end=end)
    raise ValueError(f"This describes no known tokenizer (kind {description.get('kind')!r}).")


def _all(kind: type, members: list[object]) -> bool:
    return all(isinstance(member, kind) for member in members)


@dataclass(frozen=True)
class Piece:
    """One token and how it is written out."""

    token: Token
    spelled: str  # its text; bytes that are no whole character as ‹F09F›
    part_of: str  # the characters that it shares with a neighbour

    @property
    def hexadecimal(self) -> str:
        """Its bytes as "F0 9F"; empty for a tokenizer that works on characters."""
        return self.token.raw.hex(" ").upper()


def pieces(tokens: Sequence[Token]) -> tuple[Piece, ...]:
    """The tokens of one text, in order, written out."""
    ends = list(accumulate(len(token.raw) for token in tokens))
    split = _split_characters(b"".join(token.raw for token in tokens), frozenset(ends))
    return tuple(
        Piece(
            token,
            spelled(token.raw) if token.raw else token.text,
            "".join(
                character
                for start, stop, character in split
                if start < end and end - len(token.raw) < stop and token.raw
            ),
        )
        for token, end in zip(tokens, ends, strict=True)
    )


def gpt2_tokens(text: str) -> tuple[Token, ...]:
    """A text in GPT-2's full vocabulary. Text that looks like a special token is text."""
    ids = gpt2_ids(text)
    raws = gpt2().decode_tokens_bytes(ids)
    read = zip(ids, raws, spans(raws), strict=True)
    return tuple(Token(id_, spelled(raw), raw, span=span) for id_, raw, span in read)


def _split_characters(raw: bytes, cuts: frozenset[int]) -> list[tuple[int, int, str]]:
    """(start, stop, character) of every character with a cut inside."""
    found, start = [], 0
    for character in raw.decode("utf-8", "surrogateescape"):
        stop = start + len(character.encode("utf-8", "surrogateescape"))
        if any(cut in cuts for cut in range(start + 1, stop)):
            found.append((start, stop, character))
        start = stop
    return found
