"""The claims: what a paper says, the figure that it prints, and the rule by which a model's own figure is
judged. They stand in claims.toml. Pure."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from math import isclose
from pathlib import Path
from typing import Any, Literal

from model.system.words import Words

say = Words("papers.claims")

_FILE = Path(__file__).with_suffix(".toml")
PaperVerdict = Literal["holds here", "does not hold here", "cannot be asked of this model"]
HOLDS: PaperVerdict = "holds here"
HOLDS_NOT: PaperVerdict = "does not hold here"
NOT_ASKED: PaperVerdict = "cannot be asked of this model"
VERDICTS: tuple[PaperVerdict, ...] = (HOLDS, HOLDS_NOT, NOT_ASKED)


def brief(value: float) -> str:
    """A number in three digits: 0.914, 12.3, 1,540; 0.0000123 is "1.2e−05"."""
    size = abs(value)
    decimals = 3 if size < 1 else 2 if size < 10 else 1 if size < 100 else 0
    written = f"{size:.1e}" if 0 < size < 0.0005 else f"{size:,.{decimals}f}"
    return f"{'−' if value < 0 else ''}{written.replace('-', '−')}"


def distance(figure: float, control: float) -> float:
    """figure − control; 0 where they differ by rounding only."""
    return 0.0 if isclose(figure, control, rel_tol=1e-9) else figure - control


_CONDITIONS = {  # of a rule, in words
    "at_least": "at least {}",
    "at_most": "at most {}",
    "times": say("least_times_control"),
    "share": say("most_times_control"),
    "above": say("least_above_control"),
    "below": say("least_below_control"),
    "errors": say("least_standard_errors"),
}


@dataclass(frozen=True)
class PaperFigure:
    """What a paper prints, in words, and where: authors, year, section or figure."""

    words: str
    source: str

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class PaperQuantity:
    """A number with its unit in words: 0.91 of the weight of a row."""

    value: float
    unit: str

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{brief(self.value)} {self.unit}".strip()


@dataclass(frozen=True)
class VerdictRule:
    """When a claim holds: each condition that is given must be met by the figure and its control.

    at_least, at_most: bounds of the figure. times: it is at least so many times the control, and above it.
    share: it is at most this share of the control. above, below: it lies at least so far over or under the
    control. errors: the figure lies at least so many standard errors of figure − control away from it.
    """

    at_least: float | None = None
    at_most: float | None = None
    times: float | None = None
    share: float | None = None
    above: float | None = None
    below: float | None = None
    errors: float | None = None

    def __post_init__(self) -> None:
        if all(value is None for value in vars(self).values()):
            raise ValueError("A rule without a condition judges nothing.")

    def holds(self, figure: float, control: float, error: float | None = None) -> bool:
        """Whether a figure beside its control meets every condition.

        Args:
            figure, control: in the unit of the claim.
            error: the standard error of their difference; None: it is not known.

        Raises ValueError where the rule asks for an error and none is known.
        """
        if self.errors is not None and error is None:
            raise ValueError("The rule asks for a standard error, and none is known.")
        apart, bound = distance(figure, control), self.errors or 0.0
        is_clear = error is None or abs(apart) >= bound * error
        return is_clear and not self.unmet(figure, control)

    def unmet(self, figure: float, control: float) -> list[str]:
        """The conditions that a figure beside its control does not meet, in words, but for the one that asks
        for a standard error."""
        apart = distance(figure, control)
        conditions = {
            "at_least": lambda bound: figure >= bound,
            "at_most": lambda bound: figure <= bound,
            "times": lambda bound: figure >= bound * control and apart > 0,
            "share": lambda bound: figure <= bound * control,
            "above": lambda bound: apart >= bound,
            "below": lambda bound: -apart >= bound,
        }
        given = {name: bound for name in conditions if (bound := getattr(self, name)) is not None}
        return [
            _CONDITIONS[name].format(f"{bound:,g}")
            for name, bound in given.items()
            if not conditions[name](bound)
        ]

    @property
    def words(self) -> str:
        """The rule as a sentence."""
        given = [
            words.format(f"{bound:,g}")
            for name, words in _CONDITIONS.items()
            if (bound := getattr(self, name)) is not None
        ]
        return say("holds_figure", given=" and ".join(given))


@dataclass(frozen=True)
class PaperClaim:
    """One result of a paper as it is asked of a model.

    name: of the function that computes it, with hyphens. measured: what is computed here, as figure and as
    control, in a sentence. link: the address of the view that shows it on a text. also: other words that
    the search finds it by.
    """

    name: str
    topic: str
    title: str
    claim: str
    figure_of_the_paper: PaperFigure
    measured: str
    rule: VerdictRule
    link: str
    also: str = ""


@dataclass(frozen=True)
class PaperResult:
    """A claim, asked of one model.

    figure, control: None where it cannot be asked. reason: why the verdict is what it is, in a sentence.
    prompts, seeds: how many texts were read, and how many draws by chance were made; 0: none. seconds: what
    it took.

    >>> from model.papers import results
    >>> (answer,) = results(model, ["first-token"])
    >>> answer.name, answer.source.partition(",")[0]
    ('first-token', 'Xiao et al. 2023')
    """

    name: str
    title: str
    claim: str
    figure_of_the_paper: PaperFigure
    measured: str
    rule: str
    link: str
    model: str
    verdict: PaperVerdict
    reason: str
    figure: PaperQuantity | None = None
    control: PaperQuantity | None = None
    prompts: int = 0
    seeds: int = 0
    seconds: float = field(default=0.0, compare=False)

    @property
    def source(self) -> str:
        """The paper: authors, year, section or figure."""
        return self.figure_of_the_paper.source


def result_of(
    claim: PaperClaim, model: str, verdict: PaperVerdict, reason: str, **more: Any
) -> PaperResult:
    """A claim with its answer.

    Args:
        model: its name.
        reason: in words, why this is the verdict.
        more: the fields of `PaperResult` that are known.
    """
    return PaperResult(
        claim.name,
        claim.title,
        claim.claim,
        claim.figure_of_the_paper,
        claim.measured,
        claim.rule.words,
        claim.link,
        model,
        verdict,
        reason,
        **more,
    )


@cache
def claims() -> Mapping[str, PaperClaim]:
    """All of them by name, in the order of the list."""
    listed: list[dict[str, Any]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))["claim"]
    entries = [
        PaperClaim(
            figure_of_the_paper=PaperFigure(entry.pop("paper"), entry.pop("source")),
            rule=VerdictRule(**entry.pop("rule")),
            **entry,
        )
        for entry in listed
    ]
    return {claim.name: claim for claim in entries}
