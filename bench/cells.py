"""How the numbers of the tables are written."""

from collections.abc import Iterable
from typing import Any

Measured = dict[str, Any]


def table(head: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def ms(value: float) -> str:
    return f"{value:,.0f} ms"


def seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f} s" if value < 1 else f"{value:.2f} s"


def times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}×"


def cost(row: Measured) -> str:
    return f"{times(row['time_ratio'])} and {times(row['memory_ratio'])}"


def megabytes(value: float | None) -> str:
    return "" if value is None else f"{value / 1e6:,.2f} MB"
