"""A model as it is asked: passes over texts, each in its turn, with heads left out or numbers exchanged.

Axes: R rows of a batch, H heads, T tokens, V vocabulary, C d_model.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from model.analysis.cost.timing import Turn
from model.nn.intervention import UNCHANGED, Intervention
from model.nn.patches import Through, unchanged
from model.nn.places import Head, head_label
from model.nn.recorder import Recorder, recording
from model.papers.claims import PaperQuantity
from model.papers.texts import NotAskedError, Passage
from model.trace.arrays import Array, Wide
from model.trace.records import Token
from model.trace.trace import Trace

if TYPE_CHECKING:
    from model.run.model import Model

T = TypeVar("T")
MOST_LOGITS = 2**25  # of a batch: 128 MB


@dataclass(frozen=True, eq=False)
class Sample:
    """One number for each item that was measured (a text, a list, a sentence); the quantity is their mean."""

    values: Wide  # (item,)
    unit: str

    @property
    def value(self) -> float:
        """The mean."""
        return float(self.values.mean())


@dataclass(frozen=True)
class Measured:
    """What was computed for a claim.

    note: more about it, in a sentence. A claim whose rule asks for standard errors hands in samples, both of
    the same items in the same order, and never an error of its own.
    """

    figure: PaperQuantity | Sample
    control: PaperQuantity | Sample
    note: str = ""
    prompts: int = 0
    seeds: int = 0

    @property
    def error(self) -> float | None:
        """The standard error of figure − control: of the mean of their differences, item by item. None where
        one of them is no sample."""
        if not (isinstance(self.figure, Sample) and isinstance(self.control, Sample)):
            return None
        apart = self.figure.values - self.control.values
        return float(np.std(apart, ddof=1) / len(apart) ** 0.5)


@dataclass(frozen=True, eq=False)
class Subject:
    """turn: makes a context for each batch of passes; whoever raises there stops the work."""

    model: "Model"
    turn: Turn
    _known: dict[object, Any] = field(default_factory=dict, repr=False)

    def once(self, make: Callable[["Subject"], T]) -> T:
        """What a function makes of this subject; it is called once, for all claims that ask for it."""
        if make not in self._known:
            self._known[make] = make(self)
        known: T = self._known[make]
        return known

    def trace(self, passage: Passage) -> Trace:
        """One recorded pass."""
        with self.turn():
            trace, _ = self.model.passed(passage.tokens, passage.target)
        return trace

    def ended(
        self,
        passages: Sequence[Passage],
        *,
        kept: Mapping[str, Tensor] | None = None,
        intervention: Intervention = UNCHANGED,
        through: Through = unchanged,
    ) -> Tensor:
        """(R, T, V) logits, or (R, T, C) states of an encoder: a row for each passage.

        Args:
            passages: all of one length.
            kept: by attention name, (R, H): 0 leaves a head out in a row; None: all heads stay.
            through: is handed what passes each site, and gives what goes on.
        """
        recorder = Recorder(
            intervention,
            source=self.model.config.source,
            kept_heads=kept or {},
            through=through,
        )
        with self.turn(), recording(recorder), torch.inference_mode():
            result: Tensor = self.model.module(*self._ids(passages))
        return result

    def without(self, passage: Passage, sets: Sequence[Collection[Head]]) -> Tensor:
        """(R, 1, V), after the last token: the same passage in every row, without one set of heads each."""
        rows = []
        for start in range(0, len(sets), most := self.rows(passage)):
            batch = sets[start : start + most]
            kept = self.kept(batch)
            rows.append(self.ended([passage] * len(batch), kept=kept)[:, -1:])
        return torch.cat(rows)

    def kept(self, sets: Sequence[Collection[Head]]) -> dict[str, Tensor]:
        """What `ended` takes: a row without each set of heads."""
        layers = self.model.module.attentions()
        kept = {
            one.place.name: torch.ones(len(sets), one.heads, device=self.model.device)
            for one in layers
        }
        for row, heads in enumerate(sets):
            for name, head in heads:
                kept[name][row, head] = 0.0
        return kept

    def rows(self, passage: Passage) -> int:
        """How many rows over a passage run at once."""
        length = len(passage.tokens) + len(passage.target)
        predicts = self.model.config.shape != "encoder"
        width = self.model.config.d_vocab if predicts else self.model.config.d_model
        return max(1, min(32, MOST_LOGITS // (length * width)))

    def mean_weights(
        self, passages: Sequence[Passage], ablated: frozenset[Head] = frozenset()
    ) -> dict[Head, Array]:
        """(query, key) by head: the mean over passages of one length."""
        recorder = Recorder(
            Intervention(ablated=ablated),
            "attention",
            explicit=True,
            source=self.model.config.source,
        )
        with self.turn(), recording(recorder), torch.inference_mode():
            self.model.module(*self._ids(passages))
        return {
            (one.place.name, head): rows
            for one in recorder.attention
            for head, rows in enumerate(one.steps["weights"].float().mean(0).cpu().numpy())
        }

    def losses(self, passages: Sequence[Passage], intervention: Intervention = UNCHANGED) -> Wide:
        """(R, T − 1): the loss of each token after the first, in nats, of passages of one length."""
        ids = self._ids(passages)[-1]
        logits = self.ended(passages, intervention=intervention)[:, :-1]
        losses = F.cross_entropy(logits.transpose(1, 2).float(), ids[:, 1:], reduction="none")
        return np.asarray(losses.double().cpu().numpy())

    def started(self, tokens: tuple[Token, ...]) -> Passage:
        """A text; where a second stack writes another one, with the beginning of that."""
        writes = self.model.config.shape == "encoder-decoder"
        return Passage(tokens, self.model.decoder_prompt(tokens) if writes else ())

    def _ids(self, passages: Sequence[Passage]) -> list[Tensor]:
        texts = [[one.tokens for one in passages], [one.target for one in passages]]
        return [torch.cat([self.model.ids(text) for text in rows]) for rows in texts if rows[0]]

    def heads(self) -> tuple[Head, ...]:
        """All heads, in order."""
        return tuple(
            (one.place.name, head)
            for one in self.model.module.attentions()
            for head in range(one.heads)
        )

    def drawn_heads(
        self, seed: int, count: int, besides: Collection[Head], among: Sequence[Head] | None = None
    ) -> frozenset[Head]:
        """Some heads by chance.

        Args:
            count: how many.
            besides: heads that are never drawn.
            among: to draw from; None: all heads of the model.

        Raises NotAskedError where there are too few.
        """
        others = [head for head in among or self.heads() if head not in besides]
        if len(others) < count:
            raise NotAskedError(f"{self.model.name} has too few other heads to compare with.")
        chosen = np.random.default_rng(seed).choice(len(others), count, replace=False)
        return frozenset(others[int(at)] for at in chosen)


def layer_of(head: Head) -> int:
    """The layer of a head of one stack."""
    return int(head[0].split(".")[1])


def named(heads: Collection[Head]) -> str:
    """Heads in a sentence: L1H2, L3H0 and L4H5."""
    *most, last = [head_label(head) for head in sorted(heads)]
    return f"{', '.join(most)} and {last}" if most else last
