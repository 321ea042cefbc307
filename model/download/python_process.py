"""Work on a model's files in a process of its own, so that the server goes on answering."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from model.system.model_folders import SECONDS_BETWEEN_NEWS
from model.system.processes import start_python


def run_python(arguments: Sequence[str], log: Path, tell: Callable[[], object]) -> int:
    """Runs Python with these arguments until it ends, its output in a file. `tell` is called meanwhile, and
    may end it by raising. Returns its status."""
    with log.open("wb") as output:
        # On a full disk, modules would be kept half compiled, and pip would never start again.
        process = start_python(
            arguments, stdout=output, TMPDIR=str(log.parent), PYTHONDONTWRITEBYTECODE="1"
        )
        try:
            while process.poll() is None:
                tell()
                time.sleep(SECONDS_BETWEEN_NEWS)
            return process.returncode
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
