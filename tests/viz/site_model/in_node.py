"""The browser's models in Node, beside PyTorch's."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from model import Intervention, Model, load_model
from model.run.tokenizers import GPT2_VOCABULARY
from tests.folders import new_folder
from viz.site.model.parts import parts

REPOSITORY = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent
CHANGES: dict[str, tuple[dict[str, object], Intervention]] = {
    "nothing": ({}, Intervention()),
    "no mask": ({"mask": "none"}, Intervention(mask="none")),
    "no scaling": ({"scale": 1}, Intervention(scale=1.0)),
    "no positions": ({"positions": False}, Intervention(positions=False)),
    "heads": (
        {"ablated": [[0, 1], [1, 0], [1, 3]]},
        Intervention(
            ablated=frozenset({("decoder.0.self", 1), ("decoder.1.self", 0), ("decoder.1.self", 3)})
        ),
    ),
    "all": (
        {"mask": "none", "scale": 1, "positions": False, "ablated": [[0, 2]]},
        Intervention(
            scale=1.0, mask="none", positions=False, ablated=frozenset({("decoder.0.self", 2)})
        ),
    ),
}


@dataclass(frozen=True)
class Job:
    """What is asked of a model: the arrays of runs, ids, messages and outcomes."""

    runs: Sequence[tuple[str, str]] = ()  # text, and a key of CHANGES
    encoded: Sequence[str] = ()  # by the tokenizer, of any length
    ids: Sequence[str] = ()  # by the model
    messages: Sequence[tuple[str, str, int]] = ()  # with the layer
    outcomes: Sequence[tuple[str, str]] = ()

    def written(self) -> dict[str, object]:
        def run(text: str, change: str) -> dict[str, object]:
            return {"text": text, "changes": CHANGES[change][0]}

        return {
            "runs": [run(*one) for one in self.runs],
            "encoded": list(self.encoded),
            "ids": list(self.ids),
            "messages": [run(text, change) | {"layer": n} for text, change, n in self.messages],
            "outcomes": [run(*one) for one in self.outcomes],
        }


@cache
def loaded(name: str) -> Model:
    return load_model(name, device="cpu")


@cache
def _folder() -> Path:
    """Where the bundled script lies, and the parts of each model once they are made."""
    folder = new_folder("site-model")
    command = [
        REPOSITORY / "node_modules/.bin/esbuild",
        HERE / "node.js",
        "--bundle",
        "--platform=node",
    ]
    command += ["--format=esm", f"--outfile={folder / 'node.mjs'}", "--log-level=warning"]
    subprocess.run(command, check=True, timeout=60)
    return folder


@cache
def _parts(name: str) -> Path:
    file = _folder() / f"{name}.json"
    file.write_text(json.dumps(parts(loaded(name))))
    return file


def in_node(name: str, job: Job) -> dict[str, Any]:
    """What the model answers. Arrays of runs are by path; those of messages are {"array": numbers}."""
    folder, file = _folder(), _parts(name)
    arrays, asked = folder / "arrays.bin", folder / "job.json"
    places = {"parts": str(file), "vocabulary": str(GPT2_VOCABULARY), "arrays": str(arrays)}
    asked.write_text(json.dumps(job.written() | places))
    node = ["node", str(folder / "node.mjs"), str(asked)]
    got = subprocess.run(node, capture_output=True, text=True, check=False, timeout=400)
    assert got.returncode == 0, got.stderr
    answer: dict[str, Any] = json.loads(got.stdout)
    numbers, start = np.fromfile(arrays, "<f4"), 0
    for n, run in enumerate(answer["runs"]):
        answer["runs"][n] = {}
        for path, count in run:
            answer["runs"][n][path] = numbers[start : start + count]
            start += count
    return answer
