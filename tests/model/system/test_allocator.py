"""Memory that a pass freed is used again by the next one, in whichever thread it runs."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
TWO_PASSES = """
import resource, sys, threading
import torch
from model.system import allocator

def tables():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(8):
        torch.zeros(5_000_000)  # 20 MB, freed at once
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

if sys.argv[1] == "reuse":
    allocator.reuse()
faults = []
for _ in range(8):
    thread = threading.Thread(target=tables)
    thread.start()
    thread.join()
print(sum(faults[2:]))
"""


def new_pages(how: str) -> int:
    """How many pages the last six of eight threads asked the system for."""
    ran = subprocess.run(
        [sys.executable, "-c", TWO_PASSES, how],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(ran.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="this is about glibc")
def test_large_tables_are_made_in_memory_that_was_freed() -> None:
    table = 5_000_000 * 4 // resource.getpagesize()  # pages; where one ends up is not ours to say
    assert new_pages("reuse") < 10 * table < new_pages("as it is")


GAPS = """
import sys
import torch
from model.system import allocator

def held():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) // 1024

allocator.reuse()
before = held()
tables = [torch.zeros(250_000) for _ in range(int(sys.argv[1]))]  # 1 MB each
del tables[::2]
tables = tables[::50]  # what is kept lies among the gaps
freed = held()
allocator.give_back_spare()
print(freed - before, held() - before)
"""


@pytest.mark.parametrize(("made", "goes_back"), [(600, True), (200, False)])
@pytest.mark.skipif(sys.platform != "linux", reason="this is about glibc")
def test_what_was_freed_goes_back_where_it_is_much(made: int, goes_back: bool) -> None:
    command = [sys.executable, "-c", GAPS, str(made)]
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    freed, left = map(int, ran.stdout.split())
    assert freed > made / 2
    assert (left < made / 4) == goes_back
