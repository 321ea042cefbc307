"""The files of a folder that the library gets: only checked ones, and a config with the model's own settings.

Chat templates, adapters and code are left out, and all settings that say how to run the model.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from model.download.hub_folder import (
    CONFIG,
    TOKENIZER_CONFIG,
    WANTED,
    check_file,
    described,
    read_json,
    weight_files,
)

_KINDS = (".json", ".txt", ".model", ".spm", ".codes", ".tokenizer")
_WRITTEN = (CONFIG, TOKENIZER_CONFIG, "adapter_config.json", "chat_template.json")  # never linked
_OURS = (  # we decide which code runs, and the models shown have no labels
    "attn_implementation",
    "_attn_implementation",
    "_attn_implementation_internal",
    "experts_implementation",
    "_experts_implementation",
    "_experts_implementation_internal",
    "auto_map",
    "num_labels",
)


def for_library(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A config with the model's own settings only. Raises ValueError where it is nested too deeply."""
    try:
        return _own(settings)
    except RecursionError as error:
        raise ValueError("its config is nested too deeply") from error


def _own(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _own(value) if isinstance(value, Mapping) else value
        for name, value in settings.items()
        if name not in _OURS
    }


@contextmanager
def handed_over(folder: Path) -> Iterator[Path]:
    """A folder for the library, removed when the body ends. Raises ValueError for a needed file that is
    not an ordinary one, and where the folder cannot be made."""
    config, links = for_library(described(folder)), [*_read_whole(folder), *weight_files(folder)]
    with ExitStack() as stack:
        try:
            view = Path(stack.enter_context(TemporaryDirectory(prefix="model-")))
            _write(view / CONFIG, config)
            if (folder / TOKENIZER_CONFIG).exists():
                settings = for_library(read_json(folder / TOKENIZER_CONFIG))
                settings.pop("chat_template", None)
                _write(view / TOKENIZER_CONFIG, settings)
            for file in links:
                link = view / file.relative_to(folder)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(file.resolve())
        except OSError as error:
            raise ValueError("the folder for temporary files cannot be written") from error
        yield view


def _read_whole(folder: Path) -> Iterator[Path]:
    """The files beside the weights that the library may read. One that is not ordinary is left out, unless a
    model needs it."""
    for file in folder.iterdir():
        if file.suffix not in _KINDS or file.name in _WRITTEN:
            continue
        try:
            check_file(folder, file)
        except ValueError:
            if WANTED.fullmatch(file.name):
                raise
        else:
            yield file


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")
