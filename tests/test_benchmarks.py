"""What the documents quote of the measured numbers, and that a measurement names its machine."""

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import readme, research
from bench.cells import Measured
from bench.quantiles import median, p90
from tests.cases import cases

FILES = sorted(readme.FOLDER.glob("*.json"))
MACHINE = {
    "processor": "A processor",
    "cores": 2,
    "memory_gb": 8,
    "system": "Linux x86_64",
    "python": "3.11",
    "versions": {"torch": "2"},
}
RECORDED = {
    "machine": MACHINE,
    "rows": [{"tokens": 1024, "library": "ours", "way": "attention", "plain_seconds": 2.0,
        "seconds": 2.1, "time_ratio": 1.05, "process_mb": 1000.0, "memory_ratio": 1.1,
        "above_model_mb": 200.0}],
}  # fmt: skip


def test_the_page_of_tables_and_the_readme_quote_the_files() -> None:
    parts = readme.measured_parts()
    assert readme.ALL.read_text(encoding="utf-8") == readme.page(parts)
    assert readme.summary(parts) in readme.README.read_text(encoding="utf-8")


@pytest.mark.parametrize(("guide", "part", "written"), readme.SIZINGS)
def test_the_guides_count_with_the_files(
    guide: Path, part: str, written: Callable[[Measured], str]
) -> None:
    measured = json.loads((readme.FOLDER / f"{part}.json").read_text(encoding="utf-8"))
    assert written(measured) in guide.read_text(encoding="utf-8")


@cases("file", FILES)
def test_every_file_names_a_quiet_machine_by_its_kind(file) -> None:
    from bench.machine import COUNTED, QUIET

    machine = json.loads(file.read_text(encoding="utf-8"))["machine"]
    assert all(machine[field] for field in MACHINE)
    assert machine["load_before"] <= QUIET or file.stem in COUNTED


def test_other_tools_counts_the_lines_of_both_sides_of_the_research_guide() -> None:
    pairs = zip(research.guide_scripts(), research.counterparts(), strict=True)
    lines = [
        (research.lines_of(ours), research.lines_of(theirs.read_text(encoding="utf-8")))
        for (_, ours), theirs in pairs
    ]
    ours, theirs = (
        sum(counts) for counts in zip(*lines[:-1], strict=True)
    )  # the last is ours alone
    guide = " ".join((readme.ROOT / "docs" / "other-tools.md").read_text(encoding="utf-8").split())
    assert re.search(rf"\b{theirs} lines[^.]*\b{ours} ", guide)


def test_another_number_in_a_file_is_another_table(tmp_path: Path) -> None:
    (tmp_path / "recording.json").write_text(json.dumps(RECORDED))
    first = readme.page(readme.measured_parts(tmp_path))
    assert "| 1,024 | ours | attention | 2.00 s | 2.10 s | 1.05× |" in first
    changed = copy.deepcopy(RECORDED)
    changed["rows"][0]["time_ratio"] = 1.06  # type: ignore[index]
    (tmp_path / "recording.json").write_text(json.dumps(changed))
    assert readme.page(readme.measured_parts(tmp_path)) != first


def test_nine_of_ten_lie_at_or_below_the_ninetieth_percentile() -> None:
    numbers = list(range(1, 22))
    assert median(numbers) == 11
    assert sum(number <= p90(numbers) for number in numbers) / 21 >= 0.9
    assert p90([3.0]) == 3.0
