"""Profiles to look at: a small real one, and one of as many made-up heads as wanted."""

import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from model.profile import Profile, profile
from model.profile.examples import CRITERIA, KEPT, ROW, Examples
from model.profile.sums import Sums, fields
from model.profile.tables import ProfileScope
from model.profile.token_classes import CLASSES

TEXT = (
    "Tom Hill saw a red ball. Anna gave the ball to Tom.\nThe old man sat on the mat, and Tom Hill saw it.\n"
    * 12
)
KINDS = ("self", "previous", "first", "same", "induction")
WINDOW, ROWS, HEADS_OF_A_LAYER = 256, 1000, 40


@cache
def small_profile(model: str = "stories") -> Profile:
    """Of a small model, over a few lines."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "lines.txt"
        corpus.write_text(TEXT, encoding="utf-8")
        return profile(model, corpus)


@cache
def many_heads(count: int, model: str = "house-gpt") -> Profile:
    """So many heads, each of one of KINDS by turns, with a little chance: nothing a model has done."""
    chance = np.random.default_rng(0)
    heads = tuple(
        (f"decoder.{at // HEADS_OF_A_LAYER}.self", at % HEADS_OF_A_LAYER) for at in range(count)
    )
    kinds = fields(WINDOW)
    numbers = {name: np.zeros((count, field.size), np.int64) for name, field in kinds.items()}

    def put(name: str, values: np.ndarray) -> None:
        scaled = np.rint(values * 2.0 ** kinds[name].bits).astype(np.int64)
        numbers[name] = scaled.reshape(count, kinds[name].size)

    put("rows", np.full(count, ROWS))
    for at, name in enumerate(KINDS):
        mine = np.arange(count) % len(KINDS) == at
        put(f"{name}_rows", np.full(count, ROWS))
        put(name, ROWS * np.where(mine, 0.8, 0.02) * chance.uniform(0.8, 1.0, count))
    kind = np.arange(count) % len(KINDS)
    of_kind = np.array([0.3, 0.6, 2.5, 1.1, 1.8])[kind] + chance.normal(0, 0.1, count)
    put("entropy", ROWS * of_kind)
    put("carried", ROWS * chance.uniform(0.1, 2, count))
    put("effect", ROWS * chance.normal(0, 0.1, count))
    put("effect_rows", np.full(count, ROWS))
    back = np.arange(WINDOW) + 1.0
    falls = back ** -(2 - of_kind[:, None] / 2)
    offsets = np.zeros((count, 2 * WINDOW - 1))
    offsets[:, WINDOW - 1 :] = ROWS * falls / falls.sum(1, keepdims=True)
    put("by_offset", offsets)
    rows = chance.uniform(0, 0.1, (count, len(CLASSES), len(CLASSES)))
    rows[np.arange(count), :, 2 + kind] += 1
    put("classes", ROWS / len(CLASSES) * rows / rows.sum(2, keepdims=True))
    put("class_rows", np.full((count, len(CLASSES)), ROWS / len(CLASSES)))
    put("map", np.tile(np.tri(16).ravel() / 32, (count, 1)) * chance.uniform(0.5, 1, (count, 1)))
    put("map_windows", np.ones(count))
    numbers["weights"][:, :1000] = 3
    numbers["entropies"][:, :60] = 5
    examples, texts = _examples(count)
    about = ProfileScope(
        model, "0" * 64, "0" * 64, "made up", False, WINDOW, done=((0, len(texts)),)
    )
    return Profile(about, Sums(heads, WINDOW, len(texts), ROWS, numbers, examples), texts)


def _examples(count: int) -> tuple[Examples, dict[int, str]]:
    texts = {at: f"{'The cat sat on the mat. ' * 3}Tom {at}" for at in range(KEPT)}
    rows = np.empty(count * len(CRITERIA) * KEPT, ROW)
    rows["head"] = np.repeat(np.arange(count), len(CRITERIA) * KEPT)
    rows["criterion"] = np.tile(np.repeat(np.arange(len(CRITERIA)), KEPT), count)
    rows["window"] = np.tile(np.arange(KEPT), count * len(CRITERIA))
    rows["score"] = rows["weight"] = 0.9 - 0.05 * rows["window"]
    rows["query"], rows["key"] = 9, 3
    return Examples.best(rows), texts
