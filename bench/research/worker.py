"""Runs scripts of one library, each in a namespace and a folder of its own.

Run by the interpreter that has the library. Reads a job a line, as JSON: script (a path), folder, numbers (a
Python expression in the script's names). Writes a line for each: seconds, those of the processor, and the
numbers that the expression gives, in one row.
"""

import contextlib
import io
import json
import os
import sys
import time
from pathlib import Path

import numpy as np


def done(script: str, folder: str, numbers: str) -> dict[str, object]:
    """What a script took, and its numbers."""
    os.chdir(folder)
    names: dict[str, object] = {"__name__": "__main__"}
    code = compile(Path(script).read_text(encoding="utf-8"), script, "exec")
    start, used = time.perf_counter(), time.process_time()
    exec(code, names)
    seconds, processor = time.perf_counter() - start, time.process_time() - used
    found = eval(numbers, {"np": np} | names)
    row = np.concatenate([np.asarray(part, np.float64).ravel() for part in found])
    return {"seconds": seconds, "processor_s": processor, "numbers": row.tolist()}


def main() -> None:
    for line in sys.stdin:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            result = done(**json.loads(line))
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
