"""The measured numbers where they are read: all in docs/bench/README.md, a few in the README, and the
guide's words on replicas.

`python -m bench.readme` writes them anew from docs/bench/*.json.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill

from bench import cluster
from bench.cells import Measured, cost, megabytes, ms, times
from bench.tables import GUIDE_WIDTH, TABLES, sizing
from bench.titles import NOTES, TITLES
from tools.tables_of_docs import rewrite

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "bench"
ALL, README = FOLDER / "README.md", ROOT / "README.md"
BEGIN, END = "<!-- benchmarks: written by `make bench` -->", "<!-- end of benchmarks -->"
SERVING, KUBERNETES = (ROOT / "docs" / f"{name}.md" for name in ("serving-a-class", "kubernetes"))
SIZINGS = ((SERVING, "classroom", sizing), (KUBERNETES, "cluster", cluster.sizing))


def measured_parts(folder: Path = FOLDER) -> dict[str, Measured]:
    """What was measured, by the names of the files."""
    return {
        name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in TABLES
        if (folder / f"{name}.json").is_file()
    }


def page(parts: Mapping[str, Measured]) -> str:
    """All tables."""
    lines = ["# Benchmarks", _machine(next(iter(parts.values()))["machine"])]
    for name, measured in parts.items():
        elsewhere = [_machine(measured["machine"])] if "gpu" in measured["machine"] else []
        lines += [f"## {TITLES[name]}", NOTES[name], *elsewhere, TABLES[name](measured)]
    return "\n\n".join(lines) + "\n"


def summary(parts: Mapping[str, Measured]) -> str:
    """What the README says of them."""
    passes = {
        (row["tokens"], row["library"], row["way"]): row for row in parts["recording"]["rows"]
    }
    ours, explicit, theirs, lens = (
        passes[1024, *way]
        for way in (
            ("ours", "attention"),
            ("ours", "explicit"),
            ("Hugging Face", "output_attentions"),
            ("TransformerLens", "run_with_cache"),
        )
    )
    pages = {(row["tokens"], row["page"]): row for row in parts["weight"]["rows"]}
    switches = {
        row["switch"]: row["median_ms"]
        for row in parts["clicks"]["rows"]
        if (row["tokens"], row["slower"]) == (32, 1)
    }
    lesson = parts["classroom"]
    every = next(row for row in lesson["rows"] if row["act"] == "all")
    points = (
        f"**A recorded pass** over 1,024 tokens of a model of GPT-2's size takes "
        f"{times(ours['time_ratio'])} the time and {times(ours['memory_ratio'])} the memory of a plain "
        f"one. Our explicit pass: {cost(explicit)}; Hugging Face's `output_attentions`: {cost(theirs)}; "
        f"TransformerLens' `run_with_cache`: {cost(lens)}.",
        f"**A click** on a picture of 32 tokens is answered after {ms(switches['head'])} (another head), "
        f"{ms(switches['layer'])} (another layer) or {ms(switches['mask'])} (another mask, which is "
        "another pass).",
        f"**All 144 heads** over 128 tokens, every one opened: {megabytes(pages[128, 'ours']['bytes'])}; "
        f"in BertViz' `model_view`: {megabytes(pages[128, 'BertViz model_view']['bytes'])}.",
        f"**A class** of {lesson['pupils']} on one server: half of all acts are answered within "
        f"{ms(every['median_ms'])}, 95 of 100 within {ms(every['p95_ms'])}.",
    )
    machine = _machine(parts["recording"]["machine"])
    listed = [fill(f"- {point}", GUIDE_WIDTH, subsequent_indent="  ") for point in points]
    words = fill(f"{machine} [All tables](docs/bench/README.md); in short:", GUIDE_WIDTH)
    return "\n\n".join(["\n## Benchmarks", words, "\n".join(listed)]) + "\n"


def write() -> None:
    """Writes the page of tables and the README's summary."""
    parts = measured_parts()
    ALL.write_text(page(parts), encoding="utf-8")
    rewrite(README, summary(parts), BEGIN, END)


def write_sizing() -> None:
    """Tells the guides what one replica was seen to serve, and what a cluster needs."""
    for guide, part, written in SIZINGS:
        measured = json.loads((FOLDER / f"{part}.json").read_text(encoding="utf-8"))
        rewrite(guide, written(measured), "<!-- sizing: begin -->", "<!-- sizing: end -->")


def _machine(facts: Measured) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    gpu = f"{facts['gpu']}, " if "gpu" in facts else ""
    return (
        f"`make bench` measures all of this side by side in one run. Here: {gpu}{facts['processor']}, "
        f"{facts['cores']} cores, {facts['memory_gb']} GB, {facts['system']}, Python "
        f"{facts['python']}, {versions}."
    )


if __name__ == "__main__":
    write()
    write_sizing()
