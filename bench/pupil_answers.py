"""What a pupil must get, computed beforehand in this process, and what arrived, read from the message."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model import Intervention, load_model
from viz.explorer.packing import words
from viz.notation.labels import token_label
from viz.state.presets import FIRST

_START = 4  # bytes of the length before the words
_KEPT = 6  # layers that the browser keeps (js/held.js)
_NOTHING = np.zeros(0, np.float32)


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
    """What the explorer shows: the tokens, the layer, its output, and where the reader stands in it.

    held: the outputs that came last, by the digest of their layer.
    """

    tokens: tuple[str, ...]
    place: str
    output: NDArray[np.float32]
    selection: dict[str, object]
    revision: int
    held: Mapping[str, NDArray[np.float32]]

    @property
    def lacks_output(self) -> bool:
        """Whether the server left out the layer's numbers as already sent, and they had not come."""
        return self.output.size == 0

    @classmethod
    def read(cls, block: bytes, before: "Answer | None") -> "Answer | None":
        """An answer from the message of the explorer, after the one before; None for that of another
        component. Of a layer that came before, a message holds no output again: then it is the one that
        came, or nothing if none did."""
        said: dict[str, Any] = words(block)
        layer = said.get("layer")
        if not isinstance(layer, dict) or "output" not in layer:
            return None
        runs = [run for run in (layer, said["baseline"]) if run]
        held = dict(before.held) if before else {}
        for run in runs:
            output = (
                held.pop(run["digest"], _NOTHING) if run["output"] is None else _output(block, run)
            )
            held[run["digest"]] = output
        return cls(
            tokens=tuple(said["queries"]["full"]),
            place=layer["name"],
            output=held[layer["digest"]],
            selection=dict(said["selection"]),
            revision=said["revision"],
            held=dict(list(held.items())[-_KEPT:]),
        )


def _output(block: bytes, layer: dict[str, Any]) -> NDArray[np.float32]:
    where = layer["output"]
    first = _START + int.from_bytes(block[:_START], "little")
    output = np.frombuffer(block, "<f4", where["count"], first + where["start"])
    return output.reshape(layer["sent"], layer["queries"], layer["valueWidth"])
