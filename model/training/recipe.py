"""What a training run is made of: sizes, data, schedule, and the scores that it must reach."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.nn.config import TransformerConfig
from model.nn.intervention import UNCHANGED, Intervention
from model.nn.transformer import Transformer
from model.run.tokenizers import GPT2Subset, WordTokenizer

IGNORED = -100  # a target that is not scored

Schedule = Literal["constant", "cosine", "trapezoid"]
Random = np.random.Generator
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Token ids of one step. Targets are the inputs shifted by one; IGNORED: not scored."""

    inputs: Tensor  # (B, T)
    targets: Tensor  # (B, T)
    source: Tensor | None = None  # (B, S): what the encoder reads
    padding: Tensor | None = None  # (B, S) bool, True = real token

    @classmethod
    def of(cls, *rows: tuple[Ids, Ids]) -> "Batch":
        """Inputs and targets, one under the other."""
        inputs, targets = (
            torch.from_numpy(np.concatenate(each)) for each in zip(*rows, strict=True)
        )
        return cls(inputs, targets)

    def to(self, device: torch.device) -> "Batch":
        """The same on a device."""
        given = {name: ids for name, ids in vars(self).items() if ids is not None}
        return Batch(**{name: ids.to(device) for name, ids in given.items()})


@dataclass(frozen=True)
class Evaluation:
    """What a model scored on fresh data, and which of its heads does what."""

    scores: dict[str, float]
    heads: dict[str, str] = field(default_factory=dict)  # {"induction": "L1H2"}


class Task(Protocol):
    """Where batches come from, and the evaluation that shows what was learned from them."""

    @property
    def tokenizer(self) -> GPT2Subset | WordTokenizer: ...

    def batch(self, random: Random, step: int) -> Batch: ...

    def evaluation(self, module: Transformer, random: Random) -> Evaluation: ...


@dataclass(frozen=True)
class Gate:
    """A bound on one score: a model that misses it is not shipped."""

    score: str
    at_least: float = -math.inf
    at_most: float = math.inf

    @property
    def bound(self) -> str:
        """The bound as readers write it."""
        return f"≥ {self.at_least:g}" if self.at_least > -math.inf else f"≤ {self.at_most:g}"

    def failure(self, scores: dict[str, float]) -> str | None:
        """The sentence that says what is wrong, or None. A score that is missing or NaN fails."""
        value = scores.get(self.score, math.nan)
        if self.at_least <= value <= self.at_most:
            return None
        return f"{self.score} is {value:.4f}; it must be {self.bound}."


@dataclass(frozen=True)
class Recipe:
    """One training run, complete: the same recipe and seed give the same model."""

    name: str
    about: str  # one sentence for the model card
    data: str  # where the training data comes from, for the model card
    config: TransformerConfig
    task: Task
    gates: tuple[Gate, ...]
    steps: int
    rate: float
    schedule: Schedule = "constant"
    fall: float = 0.2  # share of the steps over which a trapezoid falls
    warm_up: int = 100
    decay: float = 0.01
    clip: float = 1.0
    seed: int = 0
    start: Callable[[Transformer], None] | None = None  # what is done to fresh weights, in place
    build: Callable[[TransformerConfig], Transformer] = Transformer  # other parts than the config's
    intervention: Intervention = UNCHANGED  # under which every step is taken and evaluated
    checkpoints: tuple[int, ...] = ()
    measure_every: int = 100  # steps between two evaluations along the way

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps is {self.steps}; it must be at least 1.")
        if any(not 0 <= step <= self.steps for step in self.checkpoints):
            raise ValueError(f"checkpoints {self.checkpoints} lie outside 0 to {self.steps} steps.")

    def failures(self, scores: dict[str, float]) -> list[str]:
        """Every gate that these scores miss, as sentences."""
        return [failure for gate in self.gates if (failure := gate.failure(scores))]


def learning_rate(recipe: Recipe, step: int) -> float:
    """The rate of a step, counted from 0: a linear warm-up, then the schedule.

    constant: stays. cosine: falls to zero along a half cosine. trapezoid: stays, then falls to zero
    in a straight line over the last `fall` of the steps.
    """
    if step < recipe.warm_up:
        return recipe.rate * (step + 1) / recipe.warm_up
    if recipe.schedule == "constant":
        return recipe.rate
    if recipe.schedule == "cosine":
        done = (step - recipe.warm_up) / max(1, recipe.steps - recipe.warm_up)
        return recipe.rate * 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))
    left = (recipe.steps - step) / (recipe.fall * recipe.steps)
    return recipe.rate * min(1.0, max(0.0, left))
