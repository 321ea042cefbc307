"""Answers that were computed beforehand, each with the weights that gave it. `python -m model.papers MODEL …
-o model/papers/stored.json` writes them; a test computes them anew. Pure."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from model.papers.claims import PaperQuantity, PaperResult, claims, result_of

FILE = Path(__file__).with_name("stored.json")
_COUNTS = ("prompts", "seeds", "seconds")


def stored_results(model: str, weights: str) -> tuple[PaperResult, ...]:
    """What a model answered; nothing where these are not the weights that did. weights: their hash, as
    `model.run.weights_hash` gives it."""
    hash_, results = read_stored().get(model, ("", ()))
    return results if hash_ == weights else ()


def has_stored(model: str) -> bool:
    """Whether there are answers of a model of this name."""
    return model in read_stored()


def as_json(answers: Mapping[str, tuple[str, tuple[PaperResult, ...]]]) -> str:
    """The file's text, an answer a line. answers: by model, the hash of its weights and what it answered."""
    models = []
    for model, (weights, results) in answers.items():
        lines = ",\n  ".join(json.dumps(_kept(one), ensure_ascii=False) for one in results)
        models.append(f'"{model}": {{"weights": "{weights}", "results": [\n  {lines}\n]}}')
    return "{" + ",\n".join(models) + "}\n"


@cache
def read_stored() -> Mapping[str, tuple[str, tuple[PaperResult, ...]]]:
    """All of them, as `as_json` takes them."""
    known: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        model: (kept["weights"], tuple(_read(model, one) for one in kept["results"]))
        for model, kept in known.items()
    }


def _kept(result: PaperResult) -> dict[str, Any]:
    said = asdict(result) | {"seconds": round(result.seconds, 1)}
    wanted = ("name", "verdict", "reason", "figure", "control", *_COUNTS)
    return {name: said[name] for name in wanted if said[name] is not None}


def _read(model: str, said: Mapping[str, Any]) -> PaperResult:
    numbers = {name: PaperQuantity(**said[name]) for name in ("figure", "control") if name in said}
    counts = {name: said[name] for name in _COUNTS}
    claim = claims()[said["name"]]
    return result_of(claim, model, said["verdict"], said["reason"], **numbers, **counts)
