"""The bytes of tokens, and the characters that are split between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from model.run.tokenizers import gpt2, gpt2_ids, spans, spelled
from model.trace.records import Token


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
