"""From many measured numbers to the two that are told."""

import statistics
from collections.abc import Sequence


def median(numbers: Sequence[float]) -> float:
    return statistics.median(numbers)


def p90(numbers: Sequence[float]) -> float:
    """The number that nine of ten do not pass."""
    return (
        statistics.quantiles(numbers, n=10, method="inclusive")[-1]
        if len(numbers) > 1
        else numbers[0]
    )


def p95(numbers: Sequence[float]) -> float:
    """The number that nineteen of twenty do not pass."""
    return (
        statistics.quantiles(numbers, n=20, method="inclusive")[-1]
        if len(numbers) > 1
        else numbers[0]
    )
