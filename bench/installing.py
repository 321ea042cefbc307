"""What an installation of the package takes, with no extra and with the app: seconds of pip, bytes with and
without PyTorch, and seconds of imports."""

import time
from importlib.metadata import version
from pathlib import Path
from statistics import median

from deploy.wheel import build_wheel
from tests.deploy.installed import Installed, install
from tools.try_wheel import imported, size

EXTRAS = ("", "app")
IMPORTS = 5
# PyTorch's own packages, and those that its build for CUDA brings.
TORCH = ("torch", "functorch", "nvidia", "triton", "cuda", "cusparselt")


def measure(scratch: Path, short: bool) -> dict[str, object]:
    """The first installation fills pip's cache; the second is timed."""
    wheel = scratch / build_wheel(str(scratch))
    rows = []
    for extra in EXTRAS[:1] if short else EXTRAS:
        for turn in ("cold", "warm"):
            place = scratch / f"{turn}-{extra}"
            place.mkdir()
            began = time.perf_counter()
            made = install(wheel, place, extra=extra, options=[f"torch=={version('torch')}"])
            seconds = time.perf_counter() - began
        rows.append({"extra": extra, "install": seconds} | _sizes(made) | _imports(made))
        print(rows[-1], flush=True)
    return {"wheel": wheel.stat().st_size, "rows": rows}


def _sizes(made: Installed) -> dict[str, object]:
    torch = sum(size(path) for path in made.packages.iterdir() if path.name.startswith(TORCH))
    packages = len([*made.packages.glob("*.dist-info")])
    return {"packages": packages, "bytes": size(made.packages), "torch": torch}


def _imports(made: Installed) -> dict[str, object]:
    """In the first turn, which is left out, Python compiles what it imports."""
    turns = [imported(made)[:3] for _ in range(IMPORTS + 1)][1:]
    named, torch, used = (median(times) for times in zip(*turns, strict=True))
    return {"named": named, "import_torch": torch, "load_model": used}
