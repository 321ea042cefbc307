"""Memory that a pass freed is used again by the next one, in whichever thread it runs."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="this is about glibc")
REPOSITORY = Path(__file__).resolve().parents[3]
MADE = (600, 200)  # megabytes
# Each question in a process of its own, forked from one that has PyTorch.
QUESTIONS = """
import os, resource, sys, threading
import torch
from model.system import allocator

def passes(reuses):
    faults = []
    def tables():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(8):
            torch.zeros(5_000_000)  # 20 MB, freed at once
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    if reuses:
        allocator.reuse()
    for _ in range(8):
        thread = threading.Thread(target=tables)
        thread.start()
        thread.join()
    return [sum(faults[2:])]

def held():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) // 1024

def gaps(made):
    allocator.reuse()
    before = held()
    tables = [torch.zeros(250_000) for _ in range(made)]  # 1 MB each
    del tables[::2]
    tables = tables[::50]  # what is kept lies among the gaps
    freed = held()
    allocator.give_back_spare()
    return [freed - before, held() - before]

for asked, given in ((passes, 1), (passes, 0), *((gaps, int(made)) for made in sys.argv[1:])):
    if (child := os.fork()) == 0:
        print(*asked(given), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_large_tables_are_made_in_memory_that_was_freed_and_much_of_it_goes_back() -> None:
    """Pages that the last six of eight threads asked the system for; megabytes before and after."""
    command = [sys.executable, "-c", QUESTIONS, *map(str, MADE)]
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    (reused,), (as_it_is,), *gaps = (map(int, line.split()) for line in ran.stdout.splitlines())
    table = 5_000_000 * 4 // resource.getpagesize()  # pages; where one ends up is not ours to say
    assert reused < 10 * table < as_it_is
    for made, (freed, left) in zip(MADE, gaps, strict=True):
        assert freed > made / 2
        assert (left < made / 4) == (made == max(MADE))
