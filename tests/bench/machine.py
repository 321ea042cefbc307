"""The machine a measurement was made on, named by its kind, and whether it was quiet."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

QUIET = 1.5  # load of the last minute up to which measured times may be published
PACKAGES = ("torch", "transformers", "streamlit", "plotly", "playwright")


def load() -> float:
    """How many processes wanted to run, on average of the last minute."""
    return os.getloadavg()[0]


def machine() -> dict[str, object]:
    """Processor, cores, memory and versions: what a reader needs to compare."""
    return {
        "processor": _field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(int(_field("/proc/meminfo", "MemTotal").split()[0]) / 1e6),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "load_before": round(load(), 2),
    }


def _field(file: str, name: str) -> str:
    lines = Path(file).read_text().splitlines()
    found = (line.partition(":")[2].strip() for line in lines if line.startswith(name))
    return next(found, "")
