"""The stages of attention that only some models have, between the scaled scores and the weights.

Each is one object: what it does to scores, in PyTorch and in numpy, its formula, its code and its words. A
call and a record have a field for what it needs (`field`), which is None without it; an intervention's says
whether it stays. Its lines of code in four styles are in `model/snippets/stages.toml`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.system.words import Words

say = Words("nn.stages")

if TYPE_CHECKING:
    from torch import Tensor

    from model.nn.config import TransformerConfig

Floats = NDArray[np.float32]
ScoreName = Literal["capped", "biased"]


class Terms(NamedTuple):
    """The right side of a formula: in LaTeX, as plain text, and with slots for the numbers of a cell."""

    latex: str
    plain: str
    numeric: str


class OptionalStage(ABC):
    """A stage that a layer may have."""

    field: ClassVar[str]  # also the word of the templates of code
    is_array: ClassVar[bool] = True  # what it needs is an array, else a number
    by_kernel: ClassVar[bool] = False  # whether PyTorch's kernel computes it
    word: ClassVar[str]  # in a list of stages
    readout: ClassVar[str]  # before its number in a line
    without: ClassVar[str]  # of an intervention
    refusal: ClassVar[str]  # what such a model does, in a sentence
    nothing: ClassVar[float] = 0.0  # what it would need to change nothing
    note: ClassVar[str] = ""  # on sums of scores, where it has a say

    def of(self, holder: object) -> Any:
        """What this stage needs, of a call or a record; None without it."""
        return getattr(holder, self.field)

    def is_in(self, holder: object) -> bool:
        return self.of(holder) is not None

    @abstractmethod
    def switch(self, values: Iterable[Any]) -> str:
        """The words beside its switch. values: of the layers that have it."""

    @abstractmethod
    def in_config(self, values: Sequence[Any]) -> Mapping[str, Any]:
        """Fields of a config, by what its layers need."""

    @abstractmethod
    def listed(
        self, config: "TransformerConfig", learned: Floats | None, sizes: tuple[int, int, int]
    ) -> Any:
        """What it needs by a listing of the model.

        Args:
            config: of the model.
            learned: the weight of its field.
            sizes: heads, queries and keys.
        """

    @abstractmethod
    def in_operations(self, config: "TransformerConfig", *, own: bool) -> str:
        """What the list of operations says of it, or "". own: in self-attention."""


class ScoreStage(OptionalStage):
    """A stage that changes each score by itself."""

    name: ClassVar[ScoreName]  # its scores, in records and pictures
    step: ClassVar[str]  # what leads to its picture
    absent: ClassVar[str]  # in brackets, where a run does not have it

    @abstractmethod
    def tensors(self, scores: "Tensor", value: Any) -> "Tensor":
        """Scores (…, T, S) after this stage."""

    @abstractmethod
    def numbers(self, scores: Floats, value: Any) -> Floats:
        """The same of one head, in numpy."""

    @abstractmethod
    def terms(self, before: str, value: Any) -> Terms:
        """before: the name of the scores that it reads."""

    @abstractmethod
    def look(self, value: Any) -> str:
        """What there is to see in its picture; None: this run does not have it."""

    @abstractmethod
    def does(self, value: Any) -> str:
        """What the model does with a score, in a list of verbs."""

    @abstractmethod
    def beat(self, value: Any) -> str:
        """What happens to a row of scores, in a sentence."""

    @abstractmethod
    def slots(self, value: Any) -> Mapping[str, object]:
        """What stands in the slots of its lines of code."""

    @abstractmethod
    def listing(
        self, config: "TransformerConfig", before: str
    ) -> Sequence[tuple[str, Sequence[object]]]:
        """Its lines in a listing, with the shape beside each; none of a model without it."""


class Cap(ScoreStage):
    """Small scores stay, large ones come near the cap at most (Gemma Team 2024, section 2)."""

    name, field, is_array = "capped", "cap", False
    word, readout, without = "cap", "capped", "no cap"
    step, absent, refusal = "tanh", "not capped", "caps its scores"
    note = say("cap_note")

    def tensors(self, scores: "Tensor", value: Any) -> "Tensor":
        return (scores / value).tanh() * value

    def numbers(self, scores: Floats, value: Any) -> Floats:
        return np.asarray(np.float32(value) * np.tanh(scores / np.float32(value)))

    def terms(self, before: str, value: Any) -> Terms:
        return Terms(
            rf"c\,\tanh\!\left(\frac{{\text{{{before}}}_{{ij}}}}{{c}}\right)",
            f"c tanh({before}_ij / c), c = {value:g}",
            rf"{value:g} \cdot \tanh(\frac{{@{before}@}}{{{value:g}}})",
        )

    def look(self, value: Any) -> str:
        if value is None:
            return say("cap_absent")
        return say("cap_look", cap=value)

    def does(self, value: Any) -> str:
        return f"caps it to ±{value:g}"

    def beat(self, value: Any) -> str:
        return say("cap_beat", cap=value)

    def slots(self, value: Any) -> Mapping[str, object]:
        return {"cap": repr(value)}

    def listing(
        self, config: "TransformerConfig", before: str
    ) -> Sequence[tuple[str, Sequence[object]]]:
        code = f"capped = {config.cap:g} * ({before} / {config.cap:g}).tanh()"
        return [(code, (config.heads, "n", "n"))] if config.cap else []

    def switch(self, values: Iterable[Any]) -> str:
        return say("cap_switch", caps=" and ".join(f"±{cap:g}" for cap in sorted({*values})))

    def in_config(self, values: Sequence[Any]) -> Mapping[str, Any]:
        return {"cap": max(values, default=0.0)}

    def listed(
        self, config: "TransformerConfig", learned: Floats | None, sizes: tuple[int, int, int]
    ) -> Any:
        return config.cap

    def in_operations(self, config: "TransformerConfig", *, own: bool) -> str:
        return ", capped" if config.cap else ""


class Bias(ScoreStage):
    """A number for the places of query and key (T5, ALiBi). It travels in the kernel's mask of floats."""

    name, field, by_kernel = "biased", "bias", True
    word, readout, without = "bias", "with bias", "no bias"
    step, absent, refusal = "+ bias", "no bias", say("bias_refusal")

    def tensors(self, scores: "Tensor", value: Any) -> "Tensor":
        return scores + value

    def numbers(self, scores: Floats, value: Any) -> Floats:
        return scores + value

    def terms(self, before: str, value: Any) -> Terms:
        plain = f"{before}_ij + b_ij"
        return Terms(rf"\text{{{before}}}_{{ij}} + b_{{ij}}", plain, f"@{before}@ + @(bias)@")

    def look(self, value: Any) -> str:
        return say("bias_look")

    def does(self, value: Any) -> str:
        return say("bias_does")

    def beat(self, value: Any) -> str:
        return say("bias_beat")

    def slots(self, value: Any) -> Mapping[str, object]:
        heads, queries = (1, 1) if value is None else value.shape[:2]
        head, query = "@head@" if heads > 1 else "0", "@query@" if queries > 1 else "0"
        return {"bias_cell": f"{head}, {query}, j"}

    def listing(
        self, config: "TransformerConfig", before: str
    ) -> Sequence[tuple[str, Sequence[object]]]:
        """ALiBi's: others are refused."""
        from model.nn.biases import alibi_slopes  # torch: pages are drawn first

        if not config.biases_positions:
            return []
        slopes = f"slopes = torch.tensor({alibi_slopes(config.heads)})[:, None, None]"
        return [
            (slopes, (config.heads, 1, 1)),
            ("apart = torch.arange(len(x)) - torch.arange(len(x))[:, None]", ("n", "n")),
            (f"biased = {before} - slopes * apart.abs()", (config.heads, "n", "n")),
        ]

    def switch(self, values: Iterable[Any]) -> str:
        return say("bias_switch")

    def in_config(self, values: Sequence[Any]) -> Mapping[str, Any]:
        return {}  # the kind of positions says so

    def listed(
        self, config: "TransformerConfig", learned: Floats | None, sizes: tuple[int, int, int]
    ) -> Any:
        """(head, query, key): ALiBi's −slope · distance, the only bias of a listing; 0 without one.

        Args:
            learned: is not read.
            sizes: heads, queries and keys.
        """
        from model.nn.biases import alibi_slopes

        if not config.biases_positions:
            return self.nothing
        heads, queries, keys = sizes
        apart = np.abs(np.arange(queries)[:, None] - np.arange(keys))
        return -np.array(alibi_slopes(heads), np.float32)[:, None, None] * apart

    def in_operations(self, config: "TransformerConfig", *, own: bool) -> str:
        return ", biases added" if config.biases_positions and own else ""


class Sinks(OptionalStage):
    """A logit of each head is one more column of the softmax and has no value (gpt-oss)."""

    field, word, readout, without = "sinks", "sink", "sink", "no sinks"
    nothing = -np.inf
    refusal = "has sinks"
    note = say("sinks_note")
    sums = say("sinks_sums")
    look = say("sinks_look")

    def joined(self, masked: "Tensor", sinks: "Tensor | None") -> "Tensor":
        """(…, H, T, S + 1): masked scores with each head's sink (H,) in the last column."""
        import torch

        if sinks is None:
            return masked
        column = sinks.to(masked)[:, None, None].expand(*masked.shape[:-1], 1)
        return torch.cat([masked, column], -1)

    def switch(self, values: Iterable[Any]) -> str:
        return say("sinks_switch")

    def in_config(self, values: Sequence[Any]) -> Mapping[str, Any]:
        return {"sinks": bool(values)}

    def listed(
        self, config: "TransformerConfig", learned: Floats | None, sizes: tuple[int, int, int]
    ) -> Any:
        return self.nothing if learned is None else learned

    def in_operations(self, config: "TransformerConfig", *, own: bool) -> str:
        return ", with its sink" if config.sinks else ""


CAP, BIAS, SINKS = Cap(), Bias(), Sinks()
SCORE_STAGES: tuple[ScoreStage, ...] = (CAP, BIAS)  # in their order
STAGES: tuple[OptionalStage, ...] = (*SCORE_STAGES, SINKS)


def in_config(holders: Sequence[object]) -> dict[str, Any]:
    """The fields of a config for layers that have these stages."""
    fields: dict[str, Any] = {}
    for stage in STAGES:
        fields |= stage.in_config([stage.of(one) for one in holders if stage.is_in(one)])
    return fields
