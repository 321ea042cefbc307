"""One exercise: numbers of a run, what to calculate from them, the working, and the answer. Pure.

A given number is the model's own, rounded to the digits that are printed. The working and the answer are
calculated from the printed numbers, so whoever calculates by hand gets the same.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random

from model.nn.config import TransformerConfig
from model.nn.places import head_label
from model.trace.blocks import of_query
from model.trace.records import Attention, Token
from model.trace.trace import Trace
from viz.notation.numbers import signed
from viz.questions.question import token_name
from viz.questions.rows import open_keys

KEYS = 4  # of a row, at most: more would be long to calculate by hand
LEAST_KEYS = 3  # of a row: with fewer there is little to calculate
_TRIES = 200  # rows that are looked at for one with enough keys


@dataclass(frozen=True, eq=False)
class ExerciseSource:
    """What exercises take their numbers from: an unchanged run, its model's sizes, the names of ids."""

    trace: Trace
    config: TransformerConfig
    named: Callable[[Sequence[int]], Sequence[Token]]


@dataclass(frozen=True)
class Given:
    """A row of numbers under one name, as printed."""

    name: str
    values: tuple[float, ...]
    digits: int

    @property
    def written(self) -> tuple[str, ...]:
        return tuple(decimal(value, self.digits) for value in self.values)


@dataclass(frozen=True)
class Answer:
    """What is asked for, as far as it can be said beforehand, and its numbers.

    own: the same numbers as the model has them, with all their digits; () where the model has none.
    """

    what: str
    values: tuple[float, ...]
    digits: int
    own: tuple[float, ...] = ()

    @property
    def written(self) -> str:
        return f"{self.what}: {_together(self.values, self.digits)}"


@dataclass(frozen=True)
class Exercise:
    """All texts are plain, not Markdown. labels: of the columns of the given numbers. formula: LaTeX; ""
    where that of the kind holds."""

    task: str
    labels: tuple[str, ...]
    given: tuple[Given, ...]
    steps: tuple[str, ...]
    answers: tuple[Answer, ...]
    formula: str = ""

    @property
    def own(self) -> str:
        """The model's own numbers beside the answers; "" where it has none."""
        numbers = [f"{each.what}: {_together(each.own, 6)}" for each in self.answers if each.own]
        return f"With all digits of the model: {'; '.join(numbers)}." if numbers else ""


ExerciseMaker = Callable[[ExerciseSource, Random], Exercise]


@dataclass(frozen=True)
class ExerciseKind:
    """A kind of exercise. make: raises ValueError with a sentence where this run has no numbers for it."""

    name: str
    formula: str  # LaTeX
    make: ExerciseMaker
    needs: Callable[[ExerciseSource], bool] = lambda source: True


@dataclass(frozen=True, eq=False)
class NumberRow:
    """A row of one head, and up to four of its keys in the order of the sentence."""

    trace: Trace
    attention: Attention
    head: int
    query: int
    keys: tuple[int, ...]
    others: tuple[int, ...]  # its other open keys

    @property
    def name(self) -> str:
        looking = token_name(self.trace.queries_of(self.attention)[self.query], self.query)
        return f"head {head_label((self.attention.name, self.head))}, row of {looking}"

    @property
    def labels(self) -> tuple[str, ...]:
        tokens = self.trace.keys_of(self.attention)
        return tuple(token_name(tokens[key], key) for key in self.keys)

    @property
    def scores(self) -> list[float]:
        """Of the keys, as the softmax reads them."""
        row = of_query(self.attention, self.query).masked(self.head)[0]
        return [float(row[key]) for key in self.keys]

    def weights(self, keys: Iterable[int]) -> list[float]:
        row = of_query(self.attention, self.query).weights(self.head)[0]
        return [float(row[key]) for key in keys]


def draw_row(source: ExerciseSource, random: Random) -> NumberRow:
    """A row with enough keys, of any head: the two with the largest weights, and others.

    Raises ValueError where none is found: the sentence is too short, or sinks take a part of each row.
    """
    layers = [one for one in source.trace.attention if one.sinks is None]
    if not layers:
        raise ValueError(
            "Exercises need rows whose weights sum to 1, and in this model a sink takes a part of each row."
        )
    for _ in range(_TRIES):
        attention = random.choice(layers)
        head, query = random.randrange(attention.heads), random.randrange(attention.query.shape[1])
        keys = open_keys(attention, query, head)
        if len(keys) < LEAST_KEYS:
            continue
        row = of_query(attention, query).weights(head)[0]
        ranked = sorted(keys, key=lambda key: -row[key])
        chosen = {*ranked[:2], *random.sample(ranked[2:], min(KEYS, len(keys)) - 2)}
        others = tuple(key for key in keys if key not in chosen)
        return NumberRow(source.trace, attention, head, query, tuple(sorted(chosen)), others)
    count = len(source.trace.tokens)
    raise ValueError(
        f"Exercises need a row with at least {LEAST_KEYS} keys, and a sentence of {count} "
        f"{'token' if count == 1 else 'tokens'} has hardly one. Type a longer sentence."
    )


def rounded(name: str, values: Iterable[float], digits: int | None = None) -> Given:
    """Numbers with so many decimals; without a number, as many as show two digits of the largest."""
    exact = [float(value) for value in values]
    digits = decimals_of(exact) if digits is None else digits
    return Given(name, tuple(round(value, digits) + 0.0 for value in exact), digits)


def decimals_of(values: Sequence[float]) -> int:
    """Two; more where the largest number would show hardly any digit."""
    largest = max(map(abs, values))
    return 2 if largest == 0 else min(max(2, 1 - math.floor(math.log10(largest))), 8)


def decimal(value: float, digits: int) -> str:
    """A number with so many decimals: no minus stands before a zero."""
    return signed(f"{round(value, digits) + 0.0:,.{digits}f}")


def bracketed(written: str) -> str:
    """A number behind a sign: in brackets if it is negative."""
    return f"({written})" if written.startswith("−") else written


def _together(values: Sequence[float], digits: int) -> str:
    listed = listing(values, digits)
    return listed if len(values) == 1 else f"({listed})"


def listing(values: Sequence[float], digits: int) -> str:
    return ", ".join(decimal(value, digits) for value in values)


def result(exact: float, digits: int) -> str:
    """A result with its sign: = where the digits give it wholly, ≈ where it was rounded."""
    same = math.isclose(exact, round(exact, digits), rel_tol=0, abs_tol=1e-12)
    return f"{'=' if same else '≈'} {decimal(exact, digits)}"


def products(left: Given, right: Given) -> str:
    """The sum of the products of two rows, written out."""
    pairs = zip(left.written, right.written, strict=True)
    return " + ".join(f"{bracketed(one)} · {bracketed(other)}" for one, other in pairs)


def answered(
    labels: Sequence[str],
    values: Sequence[float],
    digits: int,
    own: Sequence[float],
) -> tuple[Answer, ...]:
    """One answer a label."""
    return tuple(
        Answer(label, (value,), digits, (float(own[at]),))
        for at, (label, value) in enumerate(zip(labels, values, strict=True))
    )
