"""A model as it is asked: passes over texts, each in its turn, with heads left out or numbers exchanged.

Axes: R rows of a batch, H heads, T tokens, V vocabulary, C d_model.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from model.analysis.cost.timing import Turn
from model.nn.intervention import UNCHANGED, Intervention
from model.nn.patches import Hooks, ablation_hooks
from model.nn.places import Head, head_label
from model.papers.claims import PaperQuantity
from model.papers.texts import NotAskedError, Passage
from model.run.passes import ForwardPass, forward
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
        *hooks: Hooks,
        intervention: Intervention = UNCHANGED,
    ) -> Tensor:
        """(R, T, V) logits, or (R, T, C) states of an encoder: a row for each passage.

        Args:
            passages: all of one length.
            hooks: change what passes their points.
        """
        return self.passed(passages, *hooks, intervention=intervention).ended

    def passed(self, passages: Sequence[Passage], *hooks: Hooks, **asked: Any) -> ForwardPass:
        """The same with what the pass left behind. asked: as `model.run.passes.forward`."""
        texts = [[one.tokens for one in passages], [one.target for one in passages]]
        ids = [torch.cat([self.model.ids(text) for text in rows]) for rows in texts if rows[0]]
        with self.turn():
            return forward(self.model, ids, *hooks, **asked)

    def in_rows(self, passage: Passage, hooks: Callable[[slice], Hooks], count: int) -> Tensor:
        """(R, T, …): the same passage in so many rows, in batches. hooks: of the rows of one batch."""
        ended = []
        for start in range(0, count, most := self.rows(passage)):
            batch = slice(start, min(start + most, count))
            rows = batch.stop - start
            ended.append(self.passed([passage], hooks(batch), rows=rows).ended)
        return torch.cat(ended)

    def without(self, passage: Passage, sets: Sequence[Collection[Head]]) -> Tensor:
        """(R, T, V): the same passage in every row, without one set of heads each."""
        return self.in_rows(passage, lambda rows: ablation_hooks(sets[rows]), len(sets))

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
        change = Intervention(ablated=ablated)
        _, recorder = self.passed(passages, intervention=change, level="attention", explicit=True)
        return {
            (one.place.name, head): rows
            for one in recorder.attention
            for head, rows in enumerate(one.steps["weights"].float().mean(0).cpu().numpy())
        }

    def losses(self, passages: Sequence[Passage], intervention: Intervention = UNCHANGED) -> Wide:
        """(R, T − 1): the loss of each token after the first, in nats, of passages of one length."""
        ids = torch.cat([self.model.ids(one.target or one.tokens) for one in passages])
        logits = self.ended(passages, intervention=intervention)[:, :-1]
        losses = F.cross_entropy(logits.transpose(1, 2).float(), ids[:, 1:], reduction="none")
        return np.asarray(losses.double().cpu().numpy())

    def started(self, tokens: tuple[Token, ...]) -> Passage:
        """A text; where a second stack writes another one, with the beginning of that."""
        writes = self.model.config.shape == "encoder-decoder"
        return Passage(tokens, self.model.decoder_prompt(tokens) if writes else ())

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
