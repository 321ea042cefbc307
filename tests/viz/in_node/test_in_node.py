"""What the scripts of pages compute and write, held to Python's own numbers in Node, without a browser."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.viz.in_node.cases import FILES
from viz.explorer.packing import packed

LAWS = Path(__file__).parent


@pytest.mark.parametrize("name", FILES)
def test_the_laws_hold(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viz.explorer.message.LIGHT_AROUND", 10**8)
    cases = tmp_path / "cases"
    cases.write_bytes(packed(FILES[name]()))
    command = [
        "node",
        f"--import={LAWS / 'toml.mjs'}",
        "--test",
        "--test-reporter=spec",
        str(LAWS / f"{name}.test.mjs"),
    ]
    told = subprocess.run(
        command, env=os.environ | {"CASES": str(cases)}, capture_output=True, text=True, timeout=500
    )
    assert told.returncode == 0, told.stdout[-8000:] + told.stderr


def test_each_file_of_laws_is_run() -> None:
    assert {file.name.partition(".")[0] for file in LAWS.glob("*.test.mjs")} == set(FILES)
