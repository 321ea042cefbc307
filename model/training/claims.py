"""Claims about transformers, as orders between small models, and what the runs of these say of them.

`python -m tools.training experiments` trains each model, a variant of one base, from several seeds.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from model.loading.shipped import ASSETS
from model.system.words import Words
from model.trace.arrays import Wide

say = Words("training.claims")

RUNS = "experiments.json"  # trained on one processor
BY_PROCESSOR = "experiments_by_processor.json"
SEEDS = (0, 1, 2, 3)
REPEATED = 2  # the seed that was trained with the instructions of other processors too

# What was measured at a step; None where a run had lost its numbers.
VariantScores = dict[str, float | None]
# variant -> seed, or processor -> what was measured. The record of step 0 has the number of parameters too.
Runs = dict[str, dict[str, list[VariantScores]]]
Verdict = Literal["supported", "in part", "contradicted"]
LOSS, ACCURACY = "held_out_loss", "repeat_accuracy"


@cache
def shipped_runs() -> Runs:
    """The runs that ship with the app."""
    return read(ASSETS / RUNS)


@cache
def runs_by_processor() -> Runs:
    """The shipped runs of the seed `REPEATED`, by the processor's instructions; "" are those of `RUNS`."""
    others = read(ASSETS / BY_PROCESSOR)
    return {
        variant: {"": seeds[str(REPEATED)], **others[variant]}
        for variant, seeds in shipped_runs().items()
    }


def read(file: Path) -> Runs:
    runs: Runs = json.loads(file.read_text(encoding="utf-8"))
    return runs


def curves(runs: Runs, variant: str, measure: str) -> tuple[list[int], Wide]:
    """The steps at which a variant was measured, and the values (run, step), NaN where there is none."""
    histories = list(runs[variant].values())
    measured = [
        [record.get(measure) for record in history if measure in record] for history in histories
    ]
    steps = [int(record["step"] or 0) for record in histories[0] if measure in record]
    return steps, np.array(measured, dtype=np.float64)


def parameters(runs: Runs, variant: str) -> int:
    """How many numbers a variant learns."""
    history = next(iter(runs[variant].values()))
    return int(history[0]["parameters"] or 0)


@dataclass(frozen=True)
class Claim:
    """A claim, the variants that try it, and who should end better than whom."""

    title: str
    words: str  # one sentence
    variants: Mapping[str, str]  # name in the picture -> variant
    better: tuple[tuple[str, str], ...]  # names in the picture: the first should end better
    limits: str  # what the runs do not show
    measure: str = LOSS
    beside: str = ""  # a second measure, drawn dashed


@dataclass(frozen=True)
class Ending:
    """Where the runs of one variant ended, a number a run; NaN: the run had lost its numbers."""

    name: str
    values: Wide

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def spread(self) -> tuple[float, float]:
        """The lowest and the highest."""
        return float(np.min(self.values)), float(np.max(self.values))


def ending(claim: Claim, name: str, runs: Runs, measure: str = "") -> Ending:
    """The last values of a variant, one of each run.

    Args:
        name: of the variant in the picture.
        measure: "": that of the claim.
    """
    _, values = curves(runs, claim.variants[name], measure or claim.measure)
    return Ending(name, values[:, -1])


def wins(claim: Claim, pair: tuple[str, str], runs: Runs) -> int:
    """In how many runs the first of a pair ended better. A run without numbers is worse than any."""
    first, second = (_badness(claim, ending(claim, name, runs).values) for name in pair)
    return int((first < second).sum())


def _badness(claim: Claim, values: Wide) -> Wide:
    return np.nan_to_num(-values if claim.measure == ACCURACY else values, nan=np.inf)


def verdict(claim: Claim, runs: Runs) -> Verdict:
    """supported: in every pair every seed has the order of the claim; contradicted: none has."""
    shares = [wins(claim, pair, runs) / len(SEEDS) for pair in claim.better]
    if all(share == 1 for share in shares):
        return "supported"
    return "in part" if any(shares) else "contradicted"


def _rising(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Each name should end better than the one before."""
    return tuple(zip(names[1:], names[:-1], strict=True))


_DEPTHS = {
    "1 layer": "1 layers",
    "2 layers": "2 layers",
    "4 layers": "base",
    "8 layers": "8 layers",
}
_WIDTHS = {"16": "width 16", "32": "width 32", "64": "base", "128": "width 128"}
_INNER = {
    "none": "inner width 0",
    "64 (× 1)": "inner width 64",
    "256 (× 4)": "base",
    "512 (× 8)": "inner width 512",
}
_SHORT = say("300_steps_kind_text")

CLAIMS = (
    Claim(
        "Norm",
        say("layer_norm_loss"),
        {
            "4 layers, with norm": "base",
            "4 layers, without": "no norm",
            "8 layers, with norm": "8 layers",
            "8 layers, without": "no norm, 8 layers",
        },
        (
            ("4 layers, with norm", "4 layers, without"),
            ("8 layers, with norm", "8 layers, without"),
        ),
        say("published_models_dozens", short=_SHORT),
    ),
    Claim(
        "Shortcut",
        say("without_shortcuts_stack"),
        {"with shortcuts": "base", "without": "no shortcut"},
        (("with shortcuts", "without"),),
        say("stacks_without_shortcuts", short=_SHORT),
    ),
    Claim(
        "Scaling",
        say("scores_divided_k"),
        {"divided by √64 = 8": "one head", "not divided": "one head, no scaling"},
        (("divided by √64 = 8", "not divided"),),
        say("head_width_64_layer", short=_SHORT),
    ),
    Claim(
        "Dropout",
        say("dropout_lessens_overfitting"),
        {"without dropout": "few rows, dropout 0.0", "dropout 0.2": "few rows, dropout 0.2"},
        (("dropout 0.2", "without dropout"),),
        say("32_rows_64_tokens"),
        beside="training_loss",
    ),
    Claim(
        "Pre or post",
        say("pre_norm_trains"),
        {
            "pre-norm, rate .002": "base",
            "post-norm, rate .002": "post-norm",
            "pre-norm, rate .01": "fast",
            "post-norm, rate .01": "post-norm, fast",
        },
        (
            ("pre-norm, rate .002", "post-norm, rate .002"),
            ("pre-norm, rate .01", "post-norm, rate .01"),
        ),
        say("four_layers_warm"),
    ),
    Claim(
        "Depth",
        say("more_layers_learn"),
        _DEPTHS,
        _rising(tuple(_DEPTHS)),
        say("more_layers_take", short=_SHORT),
    ),
    Claim(
        "Width",
        say("wider_model_learns"),
        _WIDTHS,
        _rising(tuple(_WIDTHS)),
        say("text_fresh_every", short=_SHORT),
    ),
    Claim(
        "Inner width",
        say("wider_feed_forward"),
        _INNER,
        _rising(tuple(_INNER)),
        say("four_times_best", short=_SHORT),
    ),
    Claim(
        "Recurrent",
        say("attention_copies_row"),
        {"attention, 2 layers": "attention", "GRU": "recurrent"},
        (("attention, 2 layers", "GRU"),),
        say("600_steps_rows_48"),
        measure=ACCURACY,
    ),
)
