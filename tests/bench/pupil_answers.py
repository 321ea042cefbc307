"""What a pupil must get, computed beforehand in this process, and what arrived, read from the message."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model import Intervention, load_model
from viz.axes import token_label
from viz.examples import FIRST
from viz.explorer.packing import words

_START = 4  # bytes of the length before the words


@dataclass(frozen=True)
class Wanted:
    """The tokens as they are written, and what the attention layer puts out, (head, token, width)."""

    tokens: tuple[str, ...]
    output: NDArray[np.float32]


Expected = Mapping[tuple[str, str, bool], Wanted]  # by sentence, layer and whether it is masked


def expected_answers(texts: Sequence[str]) -> Expected:
    """What every layer of the first model gives for each text, with its mask and without."""
    model, found = load_model(FIRST.model), {}
    for text in texts:
        for masked in (True, False):
            trace = model.trace(text, intervention=Intervention(mask="model" if masked else "none"))
            tokens = tuple(token_label(token.text) for token in trace.tokens)
            for attention in trace.attention:
                found[text, attention.name, masked] = Wanted(tokens, attention.output.copy())
    return found


@dataclass(frozen=True)
class Answer:
    """What the explorer shows: the tokens, the layer, its output, and where the reader stands in it."""

    tokens: tuple[str, ...]
    place: str
    output: NDArray[np.float32]
    selection: dict[str, object]
    revision: int

    @classmethod
    def read(cls, block: bytes) -> "Answer | None":
        """An answer from the message of the explorer; None for that of another component."""
        said: dict[str, Any] = words(block)
        layer = said.get("layer")
        if not isinstance(layer, dict) or "output" not in layer:
            return None
        first = _START + int.from_bytes(block[:_START], "little")
        where = layer["output"]
        output = np.frombuffer(block, "<f4", where["count"], first + where["start"])
        return cls(
            tokens=tuple(said["queries"]["full"]),
            place=layer["name"],
            output=output.reshape(layer["sent"], layer["queries"], layer["valueWidth"]),
            selection=dict(said["selection"]),
            revision=said["revision"],
        )
