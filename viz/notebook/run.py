"""What a widget shows: one run, or one beside another, as the messages that the explorer draws from."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from model.trace.arrays import Array
from model.trace.records import Attention, Token
from model.trace.trace import Trace
from viz.explorer.around import between, offered, parts_of
from viz.explorer.hero import heroes
from viz.explorer.message import Json, bytes_of, payload, stages_of
from viz.explorer.stages import Stage
from viz.notation.names import modules_of
from viz.notation.words import sentences_of

if TYPE_CHECKING:
    from model.analysis.stream.around_heads import AroundHeads
    from model.run.model import Model
    from model.snippets import Origin

say = sentences_of("notebook.run")

CHECKED_AT_ONCE = 2**23  # attention weights of a run that is checked before it is shown: 0.1 s
TOGETHER = 4_000_000  # bytes up to which all layers are sent at once, and saved with the notebook
_NEW = " → "  # between two words in one place: of the baseline, and of the run


@dataclass(frozen=True, eq=False)
class Run:
    """A trace; the baseline that it is compared with; the model, where it is known: then the stages around
    the heads are shown, and the code begins at the model's own weights; what is changed, in words."""

    trace: Trace
    baseline: Trace | None = None
    model: "Model | None" = None
    change: str = ""

    @cached_property
    def places(self) -> tuple[str, ...]:
        """Names of the layers that can be shown, in order of execution."""
        known = {one.name for one in (self.baseline or self.trace).attention}
        return tuple(one.name for one in self.trace.attention if one.name in known)

    @property
    def about(self) -> str:
        """What is shown, in a line."""
        if self.baseline is None:
            return f"{self.trace.model} · {self.trace.text}"
        both = self.baseline, self.trace
        same = self.baseline.text == self.trace.text and self.baseline.model == self.trace.model
        texts = [self.trace.text] if same else [f"{one.model} · {one.text}" for one in both]
        return say("baseline_changed_run", texts=" | ".join(texts))

    def queries(self, place: str) -> list[str]:
        """The texts of the tokens that look in a layer."""
        found = self.trace.queries_of(self.trace.find(place))
        other = self.baseline
        return _texts(found, None if other is None else other.queries_of(other.find(place)))

    def keys(self, place: str) -> list[str]:
        """The texts of the tokens that are looked at in a layer."""
        found = self.trace.keys_of(self.trace.find(place))
        other = self.baseline
        return _texts(found, None if other is None else other.keys_of(other.find(place)))

    def stages(self, place: str) -> tuple[Stage, ...]:
        """The stages of a layer, in order."""
        attention, baseline = self._runs(place)
        groups, *_ = offered(self._around(place), runs=1 if baseline is None else 2)
        return between(groups, stages_of(attention, baseline))

    def vectors(self, place: str, stage: str, head: int) -> Array:
        """(token, column): the vectors of a stage around the heads."""
        groups, *_ = offered(self._around(place), runs=1)
        return {str(name): part for name, part in parts_of(groups).items()}[stage].after(head)

    def message(self, place: str, *, head: int, stage: str, checked: bool = False) -> Json:
        """What the explorer draws a layer from (`viz.explorer.payload`). checked: whether the run is checked
        for this message, however long that takes."""
        attention, baseline = self._runs(place)
        is_checked = checked or self.trace.is_checked or self.weights <= CHECKED_AT_ONCE
        return payload(
            attention,
            queries=self.queries(place),
            keys=self.keys(place),
            head=head,
            check=self.trace.check() if is_checked else None,
            baseline=baseline,
            stage=stage,
            layers=self.places,
            modules=modules_of(self.trace),
            origin=self._origin(attention),
            around=self._around(place),
        ) | {"device": self.trace.device, "heroes": self._heroes[place]}

    def messages(self, *, checked: bool = False) -> list[Json]:
        """All layers with their values, where they may be sent at once; else none."""
        runs = [self._runs(place) for place in self.places]
        size = sum(bytes_of(one, complete=True) for both in runs for one in both if one is not None)
        if size > TOGETHER:
            return []
        return [
            self.message(place, head=0, stage="output", checked=checked) for place in self.places
        ]

    @cached_property
    def weights(self) -> int:
        """How many attention weights the run has."""
        return sum(math.prod(one.sizes) for one in self.trace.attention)

    @cached_property
    def _heroes(self) -> dict[str, Json]:
        """What stands beside each layer, in each detail."""
        beside = heroes(self.trace, self.baseline, self.change)
        return {
            place: {detail: asdict(one) for detail, one in details.items()}
            for place, details in beside.items()
        }

    def _runs(self, place: str) -> tuple[Attention, Attention | None]:
        other = self.baseline
        return self.trace.find(place), None if other is None else other.find(place)

    def _around(self, place: str) -> "list[AroundHeads]":
        if self.model is None or self.baseline is not None:
            return []
        from model.analysis.stream.around_heads import AroundHeads

        return [AroundHeads(self.model, self.trace, self.trace.find(place))]

    def _origin(self, attention: Attention) -> "Origin | None":
        if self.model is None:
            return None
        from model.code.origin import origin

        return origin(self.model, self.trace, attention)


def compared(changed: Trace, baseline: Trace) -> Run:
    """Two runs beside each other. Raises ValueError where they have no layer in common, or where a layer of
    both differs in its heads, its tokens or the width of its vectors."""
    run = Run(changed, baseline, change="" if changed.text == baseline.text else "Another text")
    if not run.places:
        raise ValueError("The two runs have no attention layer in common.")
    for place in run.places:
        one, other = (tuple(v.shape for v in t.find(place).vectors) for t in (baseline, changed))
        if one != other:
            raise ValueError(
                f"{place} cannot be compared: its queries, keys and values (head, token, number) have the "
                f"shapes {_shapes(one)} in the first run and {_shapes(other)} in the second."
            )
    return run


def _shapes(shapes: Sequence[tuple[int, ...]]) -> str:
    return ", ".join(str(shape) for shape in shapes)


def _texts(tokens: Sequence[Token], before: Sequence[Token] | None) -> list[str]:
    """The texts of tokens, beside those of the baseline where they differ."""
    if before is None:
        return [token.text for token in tokens]
    return [
        new.text if new.text == old.text else f"{old.text}{_NEW}{new.text}"
        for new, old in zip(tokens, before, strict=True)
    ]
