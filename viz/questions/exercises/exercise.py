"""One exercise: numbers of a run, what to calculate from them, the working, and the answer. Pure.

A given number is the model's own, rounded to the digits that are printed. The working and the answer are
calculated from the printed numbers, so whoever calculates by hand gets the same digits. What would teach
nothing, such as a row of weights that are 0 and 1, is drawn again (`drawn`).
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
from viz.notation.words import sentences_of
from viz.questions.question import token_name
from viz.questions.rows import open_keys

say = sentences_of("questions.exercises_exercise")

KEYS = 4  # of a row, at most: more would be long to calculate by hand
LEAST_KEYS = 3  # of a row: with fewer there is little to calculate
LEAST_WEIGHT = 0.02  # of a key: less than that adds nothing to what is calculated
_ROWS = 400  # that are looked at for one with enough keys
_TRIES = 200  # drawings of an exercise that teaches something
_LARGEST = 10_000  # result that is no whole number
_BETWEEN = 0.05  # of a unit of the last digit: nearer to half a unit, the last digit is luck
_OFF = 0.01  # of the model's own number, by which an answer may differ if not by a unit of its last digit


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

    @property
    def teaches(self) -> bool:
        """Whether its numbers have two digits or more, whoever rounds on the way gets the same ones, and they
        are the model's own but for rounding. Whole numbers do."""
        return not self.digits or (
            all(
                10 ** (1 - self.digits) <= abs(value) < _LARGEST
                and decimal(abs(value), self.digits) != decimal(1, self.digits)
                and abs(abs(value) * 10**self.digits % 1 - 0.5) >= _BETWEEN
                for value in self.values
            )
            and all(
                abs(value - own) <= max(10**-self.digits, _OFF * abs(own))
                for value, own in zip(self.values, self.own, strict=False)
            )
        )


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
        return say("digits_model", numbers="; ".join(numbers)) if numbers else ""

    @property
    def teaches(self) -> bool:
        """Whether each answer does, and they are not all the same."""
        written = [decimal(value, each.digits) for each in self.answers for value in each.values]
        return all(each.teaches for each in self.answers) and len({*written}) >= min(
            2, len(written)
        )


ExerciseMaker = Callable[[ExerciseSource, Random], Exercise | None]


@dataclass(frozen=True)
class ExerciseKind:
    """A kind of exercise.

    make: None where what was drawn gives nothing to calculate; raises ValueError with a sentence where this
    run has no numbers for it.
    """

    name: str
    formula: str  # LaTeX
    make: ExerciseMaker
    needs: Callable[[ExerciseSource], bool] = lambda source: True

    def drawn(self, source: ExerciseSource, random: Random) -> Exercise:
        """One that teaches something. Raises ValueError, with a sentence, where none is found."""
        for _ in range(_TRIES):
            exercise = self.make(source, random)
            if exercise is not None and exercise.teaches:
                return exercise
        raise ValueError(
            f"This sentence has no numbers for “{self.name}” with which there is something to calculate. "
            "Leave this kind out, or take another sentence or model."
        )


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
    """A row with enough keys of some weight, of any head: the two with the largest weights, and others.

    Raises ValueError where none is found: the sentence is too short, sinks take a part of each row, or each
    row looks at one or two keys alone.
    """
    layers = [one for one in source.trace.attention if one.sinks is None]
    if not layers:
        raise ValueError(
            "Exercises need rows whose weights sum to 1, and in this model a sink takes a part of each row."
        )
    is_short = True
    for _ in range(_ROWS):
        attention = random.choice(layers)
        head, query = random.randrange(attention.heads), random.randrange(attention.query.shape[1])
        keys = open_keys(attention, query, head)
        if len(keys) < LEAST_KEYS:
            continue
        is_short = False
        row = of_query(attention, query).weights(head)[0]
        ranked = sorted(
            (key for key in keys if row[key] >= LEAST_WEIGHT), key=lambda key: -row[key]
        )
        if len(ranked) < LEAST_KEYS:
            continue
        chosen = {*ranked[:2], *random.sample(ranked[2:], min(KEYS, len(ranked)) - 2)}
        others = tuple(key for key in keys if key not in chosen)
        return NumberRow(source.trace, attention, head, query, tuple(sorted(chosen)), others)
    count = len(source.trace.tokens)
    raise ValueError(
        f"Exercises need a row with at least {LEAST_KEYS} keys, and a sentence of {count} "
        f"{'token' if count == 1 else 'tokens'} has hardly one. Type a longer sentence."
        if is_short
        else f"Exercises need a row in which {LEAST_KEYS} keys have a weight of {LEAST_WEIGHT} or more, and "
        "none was found. Take another sentence or model."
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
