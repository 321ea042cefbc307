"""The line below a picture holds the cell's own numbers."""

import math
import re
from itertools import product

import numpy as np
import pytest

from tests.viz.explorer.records import labels, record, staged
from viz.notation.readout import readout


def parts_of(query: int, key: int, **more) -> tuple[list[str], list[float]]:
    attention = record(6, **more)
    found = readout(attention, 1, query, key, queries=labels(6), keys=labels(6)).split(", ")
    matrices = (attention.scores(1), attention.scaled(1), attention.weights(1))
    return found, [float(matrix[query, key]) for matrix in matrices]


def number(text: str) -> float:
    return float(text.split()[-1].replace("−", "-").replace("∞", "inf"))


EQUATION = re.compile(r"score (\S+) ([×÷]) (√?\S+) = ([^\s,]+)")


def split(numbers: list[str]) -> list[str]:
    """The parts of a readout, with both numbers of its equation as parts of their own."""
    return EQUATION.sub(r"score \1, scaled \4", ", ".join(numbers)).split(", ")


def test_it_goes_from_the_score_to_the_weight() -> None:
    (cell, *numbers), expected = parts_of(4, 2)
    assert cell == "L2H1: ·cat → ·saw"
    assert [number(part) for part in split(numbers)] == pytest.approx(expected, abs=6e-5)


def test_it_names_the_factor_and_claims_an_equation_only_where_the_printed_numbers_are_one(
    subtests: pytest.Subtests,
) -> None:
    equations = 0
    for scale, width in product([None, 0.3, -0.3, 1.0, 0.29997, 1e-9], [8, 32, 80]):
        with subtests.test(scale=scale, width=width):
            attention = record(6, width=width, scale=scale)
            line = readout(attention, 1, 3, 2, queries=labels(6), keys=labels(6))
            line = line.replace("−", "-")
            named = re.findall(r"(?:score \S+ |scaled \()([×÷]) (√?[^\s)]+)", line)
            ((by, factor),) = named
            if "·10" in factor:  # a power of ten
                assert "=" not in line
                continue
            own = 1 / math.sqrt(float(factor[1:])) if by == "÷" else float(factor)
            assert own == pytest.approx(attention.scale, abs=1e-4)
            if found := EQUATION.search(line):
                equations += 1
                score, scaled = found[1], found[4]
                assert f"{float(score) * own:.{len(scaled.partition('.')[2])}f}" == scaled
    assert equations


def test_it_names_cap_bias_and_sink_where_there_are_any() -> None:
    attention = staged(record(6))
    (_, *numbers) = readout(attention, 1, 4, 2, queries=labels(6), keys=labels(6)).split(", ")
    stages = ("scores", "scaled", "capped", "biased", "weights")
    expected = [float(getattr(attention, stage)(1)[4, 2]) for stage in stages]
    expected.append(float(attention.sink_weights(1)[4]))
    numbers = split(numbers)
    assert [part.split()[0] for part in numbers[2:]] == ["capped", "with", "weight", "sink"]
    assert [number(part) for part in numbers] == pytest.approx(expected, abs=6e-5)
    assert len({*numbers}) == len(numbers)


def test_a_masked_cell_says_what_the_mask_made_of_it() -> None:
    assert number(split(parts_of(1, 4)[0])[3]) == -np.inf
    assert number(split(parts_of(1, 4, mask_value=-1e9)[0])[3]) == -1e9
    assert "masked" not in " ".join(parts_of(4, 2)[0])
