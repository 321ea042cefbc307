"""How long the map of head patches takes: each head of one run put into another, in a model of GPT-2's size.

Ours beside TransformerLens's `get_act_patch_attn_head_out_all_pos`, each in a process of its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench import gpt2_size
from bench.machine import load
from bench.quantiles import median
from bench.recording import OTHERS

TOKENS = 32
TIMES = 3
SECONDS = 1200  # until a measurement is given up


def measure(scratch: Path, short: bool) -> dict[str, object]:
    folder = gpt2_size.save(scratch)
    rows = []
    for library in ("ours", "TransformerLens"):
        before = load()
        found = _one(library, 1 if short else TIMES, folder)
        row: dict[str, object] = {"library": library, "tokens": TOKENS, "load": round(before, 2)}
        row |= {name: median(found[name]) for name in ("seconds", "processor_s")}
        row |= {"passes": gpt2_size.LAYERS * gpt2_size.HEADS}
        row |= {name: found[name] for name in ("shown", "estimate_s") if name in found}
        rows.append(row)
        print(row, flush=True)
    return {"rows": rows}


def _one(library: str, times: int, folder: Path) -> dict[str, Any]:
    python = str(OTHERS) if library == "TransformerLens" else sys.executable
    script = Path(__file__).with_name("patched_passes.py")
    done = subprocess.run(
        [python, "-P", str(script), library, str(TOKENS), str(times), str(folder)],
        check=True,
        capture_output=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"},
        text=True,
        timeout=SECONDS,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
