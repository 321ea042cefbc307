"""The browser's models in Node, beside PyTorch's."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model import Intervention, Model, Trace, load_model
from tests.folders import new_folder
from viz.explorer.packing import packed
from viz.site.model.parts import MODELS, parts, vocabulary
from viz.site.pages import changes

SMALL = {"stories", "induction"}
# Each model of the browser; a larger one computes for long.
each_model = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SMALL else pytest.mark.slow) for name in MODELS]
)
_HEADS = {("decoder.0.self", 1), ("decoder.1.self", 0), ("decoder.1.self", 3)}
_OF_BOTH_STACKS = {("encoder.1.self", 2), ("decoder.0.cross", 3), ("encoder.0.self", 1)}


def changes_of(name: str) -> dict[str, Intervention]:
    """What a reader changes in a model, one thing at a time and all at once."""
    translates = loaded(name).config.shape == "encoder-decoder"
    return {
        "nothing": Intervention(),
        "no mask": Intervention(mask="none"),
        "no scaling": Intervention(scale=1.0),
        "no positions": Intervention(positions=False),
        "heads": Intervention(
            ablated=frozenset(_HEADS | (_OF_BOTH_STACKS if translates else set()))
        ),
        "all": Intervention(
            scale=1.0, mask="none", positions=False, ablated=frozenset({("decoder.0.self", 2)})
        ),
    }


TOML = Path(__file__).parents[1] / "in_node" / "toml.mjs"


@dataclass(frozen=True)
class Job:
    """What is asked of a model: the arrays of runs, ids, and what a page draws from."""

    runs: Sequence[tuple[str, str]] = ()  # text, and a key of `changes_of`
    encoded: Sequence[str] = ()  # by the tokenizer, of any length
    ids: Sequence[str] = ()  # by the model
    recordings: Sequence[tuple[str, str]] = ()

    def written(self, name: str) -> dict[str, object]:
        def run(text: str, change: str) -> dict[str, object]:
            return {"text": text, "changes": changes(changes_of(name)[change])}

        return {
            "runs": [run(*one) for one in self.runs],
            "encoded": list(self.encoded),
            "ids": list(self.ids),
            "recordings": [run(*one) for one in self.recordings],
        }


@cache
def loaded(name: str) -> Model:
    return load_model(name, device="cpu")


@cache
def _folder() -> Path:
    """Where the parts of each model lie once they are made."""
    folder = new_folder("site-model")
    (folder / "vocabulary.bin").write_bytes(packed(vocabulary()))
    return folder


@cache
def _parts(name: str) -> Path:
    file = _folder() / f"{name}.bin"
    file.write_bytes(packed(parts(loaded(name))))
    return file


def in_node(name: str, job: Job) -> dict[str, Any]:
    """What the model answers, its arrays as numpy's; those of runs are by path."""
    folder, file = _folder(), _parts(name)
    arrays, asked = folder / "arrays.bin", folder / "job.json"
    places = {"parts": str(file), "vocabulary": str(folder / "vocabulary.bin")}
    asked.write_text(json.dumps(job.written(name) | places | {"arrays": str(arrays)}))
    node = ["node", f"--import={TOML}", str(Path(__file__).with_name("node.js")), str(asked)]
    got = subprocess.run(node, capture_output=True, text=True, check=False, timeout=400)
    assert got.returncode == 0, got.stderr[-2000:]
    content = arrays.read_bytes()

    def read(part: dict[str, Any]) -> Any:
        if part.keys() != {"array"}:
            return part
        start, count, kind = part["array"]
        return np.frombuffer(content, kind, count, start)

    answer: dict[str, Any] = json.loads(got.stdout, object_hook=read)
    return answer


@cache
def traced(name: str, text: str, change: str = "nothing") -> Trace:
    """PyTorch's run of a text."""
    return loaded(name).trace(text, intervention=changes_of(name)[change])
