"""`python -m tests.late_torch_server FILE` starts the app with a torch whose import waits for such a file."""

import runpy
import sys
import time
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any


class Late(MetaPathFinder):
    """Finds torch, and keeps whoever imports it waiting."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name) if name == "torch" else None
        if spec is None:
            return None
        loader: Any = spec.loader
        execute = loader.exec_module

        def execute_late(module: ModuleType) -> None:
            while not self._file.exists():
                time.sleep(0.01)
            execute(module)

        loader.exec_module = execute_late
        return spec


if __name__ == "__main__":
    sys.meta_path.insert(0, Late(Path(sys.argv.pop(1))))
    runpy.run_module("viz.server", run_name="__main__", alter_sys=True)
