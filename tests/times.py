"""Where the time of a run goes: seconds of processor and of wall by group of tests, the slowest items, and
the largest memory of a worker. pytest prints it at the end; ATTENTION_TIMES names a folder for it as JSON.

The seconds of processor of an item are those of its process and of all that it started (a browser, a server
of its own), read before and after: a process that works on beside the next test counts there. The server
that all workers share is counted by itself.
"""

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests import one_server
from tests.worker_memory import megabytes

TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
SLOWEST = 20
TIMES = pytest.StashKey["Times"]()
READ = pytest.StashKey[float]()  # own_seconds() at the end of the item before


@dataclass
class Times:
    """Seconds of one process's share of a run; memory in megabytes. (processor, wall) each."""

    items: dict[str, tuple[float, float]] = field(default_factory=dict)
    memory: int = 0
    largest: str = ""  # the item after which a worker had that memory
    elsewhere: float = 0.0  # before the first item: imports, collection
    server: float = 0.0  # the one that all workers share

    def add(self, other: "Times") -> None:
        self.items |= other.items
        self.memory, self.largest = max((self.memory, self.largest), (other.memory, other.largest))
        self.elsewhere += other.elsewhere
        self.server += other.server


def seconds_of_tree(root: int, without: int | None = None) -> float:
    """Seconds of processor of a process and of all that it started, ended or not; 0 where the system does not
    tell. without: one that is counted by itself."""
    parents: dict[int, list[int]] = defaultdict(list)
    seconds: dict[int, float] = defaultdict(float)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        process = int(folder.name)
        parents[int(fields[1])].append(process)
        seconds[process] = sum(map(int, fields[11:15])) / TICKS
    tree = [root]
    for process in tree:
        tree += [child for child in parents[process] if child != without]
    return sum(seconds[process] for process in tree)


def own_seconds() -> float:
    """Of this process and of all that it started, but for the server that all workers share."""
    return seconds_of_tree(os.getpid(), without=one_server.process())


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TIMES] = Times()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[object]:
    start, stash = time.monotonic(), item.config.stash
    times = stash[TIMES]
    if not times.items:
        times.elsewhere = stash[READ] = own_seconds()
    before = stash[READ]
    result = yield
    stash[READ] = own_seconds()
    took = max(0.0, stash[READ] - before)  # what ends in another process's care is lost
    times.items[item.nodeid] = (took, time.monotonic() - start)
    times.memory, times.largest = max((times.memory, times.largest), (megabytes(), item.nodeid))
    return result


@pytest.hookimpl(tryfirst=True)  # before xdist sends the worker's output
def pytest_sessionfinish(session: pytest.Session) -> None:
    times = session.config.stash[TIMES]
    if not times.items:  # the workers tell what they took themselves
        times.elsewhere = sum(os.times()[:2])
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["times"] = json.dumps(asdict(times))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A worker has ended: what it measured joins the others'."""
    if told := getattr(node, "workeroutput", {}).get("times"):
        node.config.stash[TIMES].add(Times(**json.loads(told)))


def group_of(item: str) -> str:
    """The folder of a test below tests/, two names deep."""
    folders = item.partition("::")[0].split("/")[1:-1]
    return "/".join(folders[:2]) or "tests"


def by_group(times: Times) -> list[tuple[str, int, float, float]]:
    """A row a group, the longest first: items, seconds of processor and of wall. The last is the sum."""
    groups: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for item, both in times.items.items():
        groups[group_of(item)].append(both)
    rows = [(name, len(each), *map(sum, zip(*each, strict=True))) for name, each in groups.items()]
    rows.sort(key=lambda row: -row[2])
    rows.append(("the server that all share", 0, times.server, 0.0))
    rows.append(("starts and collection", 0, times.elsewhere, 0.0))
    return [*rows, ("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:]))]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    times = config.stash[TIMES]
    if len(times.items) < SLOWEST or hasattr(config, "workerinput"):
        return
    if server := one_server.process():
        times.server = seconds_of_tree(server)
    write = terminalreporter.write_line
    terminalreporter.section("where the time went")
    write(f"{'group':32}{'items':>7}{'processor s':>13}{'wall s':>10}")
    for name, items, processor, wall in by_group(times):
        write(f"{name:32}{items:7}{processor:13.1f}{wall:10.1f}")
    write("")
    slowest = sorted(times.items.items(), key=lambda each: -each[1][0])[:SLOWEST]
    for item, (processor, wall) in slowest:
        write(f"{processor:7.1f} s of processor {wall:7.1f} s  {item}")
    write(f"Largest memory of a worker: {times.memory} MB, after {times.largest}")
    if folder := os.environ.get("ATTENTION_TIMES"):
        (Path(folder) / f"{os.getpid()}.json").write_text(
            json.dumps(asdict(times)), encoding="utf-8"
        )
