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
for _ in range(3):
    thread = threading.Thread(target=tables)
    thread.start()
    thread.join()
print(faults[-1])
"""


def new_pages(how: str) -> int:
    """How many pages the third of three threads asked the system for."""
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
    assert new_pages("reuse") < 2.5 * table < 3.5 * table < new_pages("as it is")
