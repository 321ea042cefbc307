"""Parts of a model that could not be proven when it was loaded: reading one says which and why.

A model is opened when its attention is proven. Every other part is proven by itself; what is recorded of a
part without proof is replaced by one of the empty records below, which no page can mistake for numbers.
"""

from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

from model.nn.config import ProvenPart, Reasons

WORDS: dict[ProvenPart, str] = {
    "stream": "the residual stream",
    "embedding": "the sum of the embeddings",
    "norms": "the norms",
    "feed_forward": "the neurons of the feed-forward layers",
    "output": "what single heads write",
    "logits": "the logits",
    "unembedding": "the logits of earlier states",
    "logit_parts": "what single parts add to a logit",
    "positions": "a pass without positions",
    "sizes": "the count of parameters and operations",
}
RECORDED = "This is a recorded run: it has no weights."
NO_WEIGHTS: dict[ProvenPart, str] = dict.fromkeys(  # what needs a model beside its recorded run
    ("output", "unembedding", "logit_parts", "positions"), RECORDED
)


_Record = TypeVar("_Record")
_Key = TypeVar("_Key")


class NotShownError(ValueError):
    """Something that this app cannot show of a model; the sentence says why."""


class UnprovenError(NotShownError):
    """A part of a model is not shown because it is not proven, or was not recorded. The sentence names what
    is. A reason that is a sentence of its own stands first."""

    def __init__(self, model: str, part: ProvenPart, reasons: Reasons) -> None:
        proven = [words for other, words in WORDS.items() if other not in reasons]
        listed = ", ".join(["attention", *proven[:-1]])
        listed += f" and {proven[-1]}" if proven else ""
        name = model.rstrip("/").rpartition("/")[2]  # of a folder, or of a model of the hub
        why = reasons[part]
        super().__init__(
            f"{why} So {WORDS[part]} cannot be shown here. Shown: {listed}."
            if why.endswith(".")
            else f"This part of {name} is not proven, so it is not shown: {WORDS[part]}, because {why}. "
            f"Proven and shown: {listed}."
        )
        self.part = part


class NoWeightsError(NotShownError):
    """A recorded run is asked for what only a model can do. The sentence says so."""

    def __init__(self, asked: str = "compute what is asked for here") -> None:
        super().__init__(f"{RECORDED} Open the model itself to {asked}.")


def require(model: str, part: ProvenPart, reasons: Reasons) -> None:
    """Raises UnprovenError for a part that is not proven."""
    if part in reasons:
        raise UnprovenError(model, part, reasons)


class Unproven(Mapping[Any, Any]):
    """Records, or states by name, of a part that is not proven: reading them raises UnprovenError."""

    def __init__(self, *refused: Any) -> None:
        """refused: what `require` is asked."""
        self.refused: tuple[str, ProvenPart, Reasons] = refused

    def _refuse(self, *asked: object) -> NoReturn:
        raise UnprovenError(*self.refused)

    __iter__ = __len__ = __getitem__ = __contains__ = _refuse


def proven(records: tuple[_Record, ...]) -> tuple[_Record, ...]:
    """Records, or none where they are of a part that is not proven."""
    return () if isinstance(records, Unproven) else records


def proven_states(states: Mapping[_Key, _Record]) -> Mapping[_Key, _Record]:
    """States by name, or none where they are of a part that is not proven."""
    return {} if isinstance(states, Unproven) else states
