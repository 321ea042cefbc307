"""The code of docs/own-modules.md runs as it is printed, and its table is that of today's modules."""

import re
import subprocess
import sys
from pathlib import Path

from tests.model.capture.others_modules import MODULES

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs" / "own-modules.md").read_text(encoding="utf-8")


def test_the_printed_code_runs(tmp_path: Path) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL))
    command = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}"
    ran = subprocess.run(
        [sys.executable, "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("causal 4 0.3535")
    assert (tmp_path / "mine.safetensors").stat().st_size > 0


def test_the_table_names_every_module() -> None:
    assert all(f"| {title} |" in GUIDE for _, _, title in MODULES)
