"""What profiling costs: tokens a second beside plain passes and beside other tools, memory after few and many
tokens, and what a thousand million tokens would take.

A random model of GPT-2's size, windows of 256 tokens, one thread a process. Each measurement has a process of
its own, because the peak of a process never falls.
"""

import json
import os
import pickle
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

from bench import gpt2_size
from bench.profiled_pass import LIBRARIES, WINDOW, peak_mb
from bench.quantiles import median
from bench.recording import OTHERS

WINDOWS, ROUNDS = (
    8,
    2,
)  # of each library: the libraries take turns, so that all meet the same machine
TOKENS = {"small": (10_000, 100_000, 1_000_000), gpt2_size.NAME: (1_000, 10_000)}
SECONDS = 400  # until a measurement is given up
Found = dict[str, Any]


def measure(scratch: Path, short: bool) -> dict[str, object]:
    folder = gpt2_size.save(scratch)
    small = gpt2_size.save(scratch, "small", layers=1, width=16, heads=2)
    rows = _speeds(folder, 2 if short else WINDOWS, 1 if short else ROUNDS)
    memory = [
        _here("remembered", place, str(tokens))
        for place in (small, folder)
        for tokens in TOKENS[place.name][: 1 if short else None]
    ]
    parts = {"start_s": rows[0]["start_s"], "busy": _all_cores(folder, 2 if short else WINDOWS)}
    return {"rows": rows, "memory": memory, "parts": parts | _here("given_out", folder)}


def _speeds(folder: Path, windows: int, rounds: int) -> list[Found]:
    found: dict[str, list[Found]] = {library: [] for library in LIBRARIES}
    for _ in range(rounds):
        for library, mine in found.items():
            mine.append(json.loads(_started(library, windows, folder).communicate()[0]))
            print(library, mine[-1], flush=True)
    return [_row(library, mine) for library, mine in found.items()]


def _row(library: str, found: list[Found]) -> Found:
    plain, profiled = (
        [seconds for one in found for seconds in one[name]] for name in ("plain_s", "profiled_s")
    )
    return {
        "library": library,
        "plain_tokens_a_second": WINDOW / median(plain),
        "profiled_tokens_a_second": WINDOW / median(profiled),
        "ratio": median([p / q for p, q in zip(plain, profiled, strict=True)]),
        "process_mb": max(one["process_mb"] for one in found),
        "start_s": median([one["start_s"] for one in found]),
    }


def _started(library: str, windows: int, folder: Path) -> "subprocess.Popen[str]":
    python = str(OTHERS) if library.startswith("TransformerLens") else sys.executable
    script = Path(__file__).with_name("profiled_pass.py")
    return subprocess.Popen(
        [python, "-P", str(script), library, str(windows), str(folder)],
        stdout=subprocess.PIPE,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"},
        text=True,
    )


def _all_cores(folder: Path, windows: int) -> Found:
    """As many processes at once as there are cores: what each of them does in a second."""
    cores = os.cpu_count() or 1
    started = [_started("ours", windows, folder) for _ in range(cores)]
    found = [json.loads(one.communicate()[0]) for one in started]
    seconds = [median(one["profiled_s"]) for one in found]
    return {"cores": cores, "tokens_a_second": sum(WINDOW / one for one in seconds)}


def _here(what: str, folder: Path, *more: str) -> Found:
    """What one of the functions below returns in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.profiling", what, str(folder), *more],
        check=True,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    found: Found = json.loads(done.stdout.splitlines()[-1])
    print(found, flush=True)
    return found


def remembered(folder: str, tokens: str) -> Found:
    """A whole profile over so many tokens, written to disk; the peak of its process."""
    from model.profile import profile
    from model.system.threads import one_thread

    place = Path(folder)
    corpus = place.with_name(f"{place.name}-{tokens}.txt")
    corpus.write_text(gpt2_size.text_of(int(tokens)))
    began = time.perf_counter()
    with one_thread():
        made = profile(folder, corpus, place.with_name(f"{place.name}-{tokens}-profile"))
    return {
        "model": place.name,
        "tokens": made.sums.tokens,
        "seconds": time.perf_counter() - began,
        "process_mb": peak_mb(),
    }


def given_out(folder: str) -> Found:
    """What the process that gives out the windows does for one slice: cuts it, reads what comes back, and
    adds it."""
    from model import load_model
    from model.profile.corpus import Corpus
    from model.profile.slices import SLICE, Slice, slice_profile
    from model.profile.store import About
    from model.profile.window import Profiled

    profiled = Profiled.of(load_model(folder))
    corpus = Path(folder).with_name("given-out.txt")
    corpus.write_text(gpt2_size.text_of(8 * SLICE * WINDOW))
    began = time.perf_counter()
    texts = tuple(islice(Corpus(corpus).windows(profiled.model, WINDOW), 4 * SLICE))
    cut = (time.perf_counter() - began) / 4
    about = About(folder, "", "", corpus.name, False, WINDOW)
    first, other = (slice_profile(Slice(at, texts[:2]), about, profiled) for at in (0, 2))
    packed, seconds = pickle.dumps(other), []
    for _ in range(9):
        began = time.perf_counter()
        first + pickle.loads(packed)
        seconds.append(time.perf_counter() - began)
    return {
        "slice_tokens": SLICE * WINDOW,
        "slice_bytes": len(packed),
        "cut_s": cut,
        "add_s": median(seconds),
    }


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    print(json.dumps({"remembered": remembered, "given_out": given_out}[name](*arguments)))
