"""What recording a pass costs, on the processor or on CUDA: its time over a plain pass, and its peak memory.

Ours at both levels and explicit, beside Hugging Face's eager attention with `output_attentions` and
TransformerLens's `run_with_cache`, on random models of one size. Each measurement has a process of its own.
"""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from bench import gpt2_size
from bench.quantiles import median

LENGTHS = (32, 256, 1024)
REPEATS = {32: 15, 256: 7, 1024: 9}
PEAKS = {
    32: 1,
    256: 1,
    1024: 5,
}  # processes of a plain pass: at 1,024 tokens its peak swings by 5 %
QUICK = 10  # times as many repeats on CUDA, where a pass takes milliseconds
SECONDS = 600  # until a measurement is given up
WAYS = {
    "ours": ("plain", "attention", "full", "explicit"),
    "Hugging Face": ("plain", "output_attentions"),
    "TransformerLens": ("plain", "run_with_cache"),
}
OTHERS = Path(".venv-bench/bin/python")
Found = dict[str, Any]  # what a process of recorded_pass.py prints


def measure(scratch: Path, short: bool, device: str = "cpu") -> dict[str, object]:
    folder = gpt2_size.save(scratch)
    one = partial(_one, folder=folder, device=device)
    rows = []
    for tokens in LENGTHS[:2] if short else LENGTHS:
        for library, ways in WAYS.items():
            if library == "TransformerLens" and device != "cpu":
                continue
            plain = None
            for way in ways:
                found = one(library, way, tokens, _repeats(way, tokens, short, device))
                if plain is None:
                    more = [one(library, way, tokens, 0) for _ in range(PEAKS[tokens] - 1)]
                    plain = _typical(found, more)
                shown = plain if way == "plain" else found
                rows.append(_row(library, way, tokens, shown, plain))
                print(rows[-1], flush=True)
    return {"rows": rows}


def _repeats(way: str, tokens: int, short: bool, device: str) -> int:
    """How often a way is timed, in turn with a plain pass; that alone is measured for its memory only."""
    if way == "plain":
        return 0
    return 2 if short else REPEATS[tokens] * (1 if device == "cpu" else QUICK)


def _typical(first: Found, more: list[Found]) -> Found:
    """Of several processes of a plain pass, the one whose peak is the median."""
    peaks = sorted([first, *more], key=lambda found: found["process_mb"])
    return peaks[len(peaks) // 2]


def _one(library: str, way: str, tokens: int, repeats: int, folder: Path, device: str) -> Found:
    python = str(OTHERS) if library == "TransformerLens" else sys.executable
    script = Path(__file__).with_name("recorded_pass.py")
    done = subprocess.run(
        [python, "-P", str(script), library, way, str(tokens), str(repeats), str(folder), device],
        check=True,
        capture_output=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"},
        text=True,
        timeout=SECONDS,
    )
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


def _row(library: str, way: str, tokens: int, found: Found, plain: Found) -> dict[str, object]:
    """Ratios are of one process's own passes in turn; memory is beside the plain process's."""
    seconds = found["recorded_s"]
    row: dict[str, object] = {"library": library, "way": way, "tokens": tokens}
    if seconds:
        ratios = [r / p for r, p in zip(seconds, found["plain_s"], strict=True)]
        row |= {"seconds": median(seconds), "time_ratio": median(ratios)}
        row |= {"plain_seconds": median(found["plain_s"])}
    row |= {"process_mb": found["process_mb"], "above_model_mb": found["above_model_mb"]}
    return row | {"memory_ratio": found["process_mb"] / plain["process_mb"]}
