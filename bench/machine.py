"""The machine a measurement was made on, named by its kind, and whether it was quiet."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from model.system.machine import processor

QUIET = 1.5  # load of the last minute up to which measured times may be published
COUNTED = {"notebook"}  # parts that count bytes alone, which a busy machine does not change
PACKAGES = ("torch", "transformers", "streamlit", "plotly", "playwright")


def load() -> float:
    """How many processes wanted to run, on average of the last minute."""
    return os.getloadavg()[0]


def machine() -> dict[str, object]:
    """Processor, cores, memory and versions: what a reader needs to compare."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(int(_field("/proc/meminfo", "MemTotal").split()[0]) / 1e6),
        "system": f"{platform.system()} {platform.machine()}",
        **({"gpu": torch.cuda.get_device_name()} if torch.cuda.is_available() else {}),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
        "load_before": round(load(), 2),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _field(file: str, name: str) -> str:
    lines = Path(file).read_text().splitlines()
    found = (line.partition(":")[2].strip() for line in lines if line.startswith(name))
    return next(found, "")
