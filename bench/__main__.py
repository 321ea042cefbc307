"""`make bench`: every measurement in one run, each printed as a table and kept as JSON in docs/bench.

`python -m bench [--short] [PART …]`. Times mean something on a quiet machine only: where others
keep it busy, no time in docs/bench is touched and the JSON stays in a temporary folder.
"""

import argparse
import json
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from torch.cuda import is_available

from bench import (
    bounds,
    classroom,
    clicks,
    cluster,
    cluster_soak,
    first_picture,
    installing,
    long_texts,
    many,
    notebook,
    own_tests,
    page_switch,
    patching,
    profiling,
    profiling_engines,
    readme,
    real_model,
    recording,
    research,
    score,
    sessions,
    site,
    soak,
    tables,
    training,
    weight,
)
from bench.machine import COUNTED, QUIET, load, machine

PARTS = {
    "recording": recording.measure,
    "cuda": partial(recording.measure, device="cuda"),
    "training": training.measure,
    "score": score.measure,
    "patching": patching.measure,
    "many": many.measure,
    "research": research.measure,
    "profiling": profiling.measure,
    "engines": profiling_engines.measure,
    "sessions": sessions.measure,
    "weight": weight.measure,
    "notebook": notebook.measure,
    "installing": installing.measure,
    "clicks": clicks.measure,
    "page_switch": page_switch.measure,
    "first_picture": first_picture.measure,
    "long_texts": long_texts.measure,
    "real_model": real_model.measure,
    "site": site.measure,
    "classroom": classroom.measure,
    "bounds": bounds.measure,
    "soak": soak.measure,
    "cluster": cluster.measure,
    "cluster_soak": cluster_soak.measure,
    "own_tests": own_tests.measure,
}
MINUTES = 30  # until a part is given up, whatever it waits for


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", choices=[[], *PARTS], help="all that run here if none is named"
    )
    parser.add_argument("--short", action="store_true", help="few repetitions, nothing published")
    asked = parser.parse_args()
    busy = load() > QUIET
    scratch = Path(tempfile.mkdtemp(prefix="attention-bench-"))
    facts = machine()
    published = False
    for name in asked.parts or (part for part in PARTS if part != "cuda" or is_available()):
        start = time.monotonic()
        print(f"\n{name}", flush=True)
        target = scratch if asked.short or (busy and name not in COUNTED) else readme.FOLDER
        with bounded(name):
            measured = PARTS[name](scratch, asked.short)
        measured = {"machine": facts} | measured
        measured["minutes"] = round((time.monotonic() - start) / 60, 1)
        target.mkdir(parents=True, exist_ok=True)
        (target / f"{name}.json").write_text(
            json.dumps(measured, indent=1) + "\n", encoding="utf-8"
        )
        print(tables.TABLES[name](measured), flush=True)
        print(f"{measured['minutes']} minutes. Written to {target}", flush=True)
        published |= target is readme.FOLDER
    if published:
        readme.write()
        readme.write_sizing()
    if busy:
        print(f"The machine is busy (load {facts['load_before']}): times are upper bounds.")


@contextmanager
def bounded(part: str) -> Iterator[None]:
    """Raises TimeoutError in the body where it takes longer than a part may."""

    def give_up(number: int, frame: object) -> None:
        raise TimeoutError(f"The part {part} takes more than {MINUTES} minutes.")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60 * MINUTES)
    try:
        yield
    finally:
        signal.alarm(0)


if __name__ == "__main__":
    main()
