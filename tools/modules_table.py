"""Writes the table of docs/own-modules.md: `python -m tools.modules_table`."""

import warnings
from pathlib import Path

import torch

from model.capture import capture
from model.system.files import write_whole
from tests.model.capture.others_modules import MODULES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "own-modules.md"
START, END = "<!-- modules: made by `python -m tools.modules_table` -->", "<!-- modules: end -->"


def table() -> str:
    """One row for each module, with the largest difference of its outputs."""
    rows = ["| module | sub-layers | largest difference |", "|---|---|---|"]
    for make, _, title in MODULES:
        torch.manual_seed(0)
        module, inputs, keywords = make()
        trace = capture(module, *inputs, **keywords)
        rows.append(f"| {title} | {len(trace.attention)} | {trace.check():.1e} |")
    return "\n".join(rows)


def main() -> None:
    warnings.simplefilter("ignore")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    after = rest.partition(END)[2]
    write_whole(PAGE, f"{before}{START}\n{table()}\n{END}{after}".encode())


if __name__ == "__main__":
    main()
