"""The texts of a model's tokens by their ids, so that a row of logits can be read."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from model.trace.arrays import Mask, read_only
from model.trace.records import Token

LONGEST = 100_000  # bytes of one text: a sentence of words may be one long word
Arrays = dict[str, NDArray[np.uint8] | NDArray[np.int64] | NDArray[np.bool_]]


class Vocabulary:
    """`size` tokens. Their texts are asked for when they are read."""

    def __init__(
        self, size: int, named: Callable[[Sequence[int]], tuple[Token, ...]], nbytes: int = 0
    ) -> None:
        """nbytes: of the arrays that are kept for it; none of a tokenizer's own."""
        self.size, self.nbytes = size, nbytes
        self._named = named

    @classmethod
    def of(cls, text: NDArray[np.uint8], ends: NDArray[np.int64], special: Mask) -> "Vocabulary":
        """The tokens of the arrays that `arrays` gives. Raises ValueError for ends in another order, letters
        behind the last, and a text beyond `LONGEST`."""
        lengths = np.diff(ends, prepend=0)
        if (lengths < 0).any() or len(text) != max(1, ends[-1]):
            raise ValueError("the texts of the vocabulary overlap, or leave letters over")
        if lengths.max() > LONGEST:
            raise ValueError(f"a text of the vocabulary has more than {LONGEST:,} bytes")

        def named(ids: Sequence[int]) -> tuple[Token, ...]:
            return tuple(_token(int(id_)) for id_ in ids)

        def _token(id_: int) -> Token:
            if not 0 <= id_ < len(ends):
                return Token(id_, "")
            begin = int(ends[id_ - 1]) if id_ else 0
            raw = text[begin : int(ends[id_])].tobytes()
            return Token(id_, raw.decode("utf-8", "replace"), special=bool(special[id_]))

        return cls(len(ends), named, text.nbytes + ends.nbytes + special.nbytes)

    def named(self, ids: Sequence[int]) -> tuple[Token, ...]:
        """The tokens of these ids."""
        return self._named(ids)

    def arrays(self) -> Arrays:
        """`text`: the texts in UTF-8, one behind the other; `ends` (token,): where each ends in it;
        `special` (token,): whether it is one of the tokenizer's own marks."""
        tokens = self.named(range(self.size))
        texts = [token.text.encode("utf-8", "replace") for token in tokens]
        return {
            "text": read_only(np.frombuffer(b"".join(texts) or b" ", np.uint8)),
            "ends": read_only(np.cumsum([len(one) for one in texts], dtype=np.int64)),
            "special": read_only(np.array([token.special for token in tokens])),
        }
