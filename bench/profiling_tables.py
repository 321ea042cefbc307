"""What profiling costs, as Markdown; and what a thousand million tokens would take, reckoned from it."""

from collections.abc import Callable

from bench import profiling_engines
from bench.cells import Measured, seconds, table, times

MANY = 10**9  # tokens
MACHINES = (1, 10, 100, 1000)


def profiling(measured: Measured) -> str:
    rows = [
        (
            row["library"],
            f"{row['plain_tokens_a_second']:,.0f}",
            f"{row['profiled_tokens_a_second']:,.0f}",
            times(row["ratio"]),
            f"{row['process_mb']:,} MB",
        )
        for row in measured["rows"]
    ]
    speed = table(
        ("library", "plain, tokens a second", "profiled", "ratio", "process's peak"), rows
    )
    rows = [
        (
            row["model"],
            f"{row['tokens']:,}",
            f"{row['seconds']:.1f} s",
            f"{row['process_mb']:,} MB",
        )
        for row in measured["memory"]
    ]
    memory = table(("model", "tokens", "whole profile", "process's peak"), rows)
    return "\n\n".join([speed, memory, reckoned(measured["parts"])])


def reckoned(parts: Measured) -> str:
    """The time of many tokens on many machines: all work in parallel, but for what one process gives out and
    adds up."""
    cores, rate = parts["busy"]["cores"], parts["busy"]["tokens_a_second"]
    slices = MANY / parts["slice_tokens"]
    alone = slices * (parts["cut_s"] + parts["add_s"])
    rows = []
    for machines in MACHINES:
        work = MANY / (machines * rate)
        rows.append(
            (
                f"{machines:,}",
                f"{machines * cores:,}",
                _long(work),
                _long(alone),
                _long(parts["start_s"] + max(work, alone)),
            )
        )
    words = (
        f"Reckoned for {MANY:,} tokens from measured parts: a machine with a process on each of its {cores} "
        f"cores profiles {rate:,.0f} tokens a second; a process is ready after {parts['start_s']:.0f} s; one "
        f"slice of {parts['slice_tokens']:,} tokens is cut in {seconds(parts['cut_s'])}, added in "
        f"{seconds(parts['add_s'])} and sends {parts['slice_bytes'] / 1e6:.1f} MB. One process cuts and adds "
        f"while the others work; from {MANY / rate / alone:,.0f} such machines on, it is the limit. The "
        "network is not reckoned."
    )
    head = ("machines", "cores", "profiling", "giving out and adding", "in all")
    return f"{table(head, rows)}\n\n{words}"


def _long(time: float) -> str:
    """Seconds in the unit that suits them."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if time >= 2 * length:
            return f"{time / length:,.1f} {unit}"
    return f"{time:.0f} s"


PROFILING: dict[str, Callable[[Measured], str]] = {
    "profiling": profiling,
    "engines": profiling_engines.tabled,
}
