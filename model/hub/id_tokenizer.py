"""Texts that are written as ids, "12 7 30", for a model without a tokenizer and for ids that are given."""

from collections.abc import Sequence

from model.run.tokenizers import Tokenizer
from model.trace.records import Token


class IdTokenizer:
    """size: how many ids there are. names: the tokenizer that names them; without one a token's text is its
    id."""

    def __init__(
        self, size: int, start: int | None, end: int | None, names: Tokenizer | None = None
    ) -> None:
        self.size, self.start, self.end = size, start, end
        self._names = names

    def tokens(self, text: str) -> tuple[Token, ...]:
        """Raises ValueError for what is no row of ids that the model has."""
        words = text.split()
        if not all(word.isascii() and word.isdecimal() for word in words):
            raise ValueError(
                "This model was opened without a tokenizer: it reads ids, written as numbers with spaces "
                "between them."
            )
        ids = [int(word) for word in words]
        for id_ in ids:
            if id_ >= self.size:
                raise ValueError(f"This model has {self.size:,} tokens; none has the id {id_}.")
        return self.named(ids)

    def named(self, ids: Sequence[int]) -> tuple[Token, ...]:
        if self._names is not None:
            return self._names.named(ids)
        return tuple(Token(int(id_), str(int(id_))) for id_ in ids)

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(str(int(id_)) for id_ in ids)

    def new_words(self, text: str) -> tuple[str, ...]:
        return ()

    def beginning(self, text: str, tokens: int) -> str:
        return " ".join(text.split()[:tokens])
