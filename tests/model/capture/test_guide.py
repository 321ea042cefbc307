"""The table of docs/own-modules.md is that of today's modules. Its code is run by tests/test_notebooks.py."""

from pathlib import Path

from tests.model.capture.others_modules import MODULES

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs" / "own-modules.md").read_text(encoding="utf-8")


def test_the_table_names_every_module() -> None:
    assert all(f"| {title} |" in GUIDE for _, _, title in MODULES)
