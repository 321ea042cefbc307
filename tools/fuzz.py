"""Hostile texts, one after the other, through everything that shows them: `make fuzz`.

Every input is made from the seed and its own number alone, so that a failure is made again by
`python -m tools.fuzz --first NUMBER --inputs 1`. An answer is a trace whose identities hold
and whose labels, pictures, message, link and files hold nothing but text; a refusal is a ValueError
that reads as a sentence. Anything else is a failure, and the run ends with 1.
"""

import argparse
import collections
import json
import random
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from model import Intervention, Model, load_model
from model.nn.intervention import MASKS
from tests.hostile import laws
from tests.hostile.hostile_models import hostile_folder
from tests.hostile.words import text_of
from viz.state.link import View, from_link, short_link, to_link

REPORT = Path(__file__).resolve().parents[1] / "docs" / "fuzz.json"
MODELS = ("house-gpt", "stories", "translate-en-fr", "induction", "llama", "bert", "bart")
OWN_TOKENS = ("llama", "bert", "bart")  # tiny random models whose tokens are attacks
PART = 250  # inputs between two reports of progress
LONGEST = 60  # tokens of most texts, so that a run of many ends
FILES_EVERY = 20  # inputs between two whose report and trace file are made
VALUES = (
    "",
    "0",
    "-1",
    "nan",
    "inf",
    "1e309",
    "٣",
    "9" * 5_000,
    "a:b",
    "1:2,3:4",
    ",",
    "\x00",
    None,
    3,
)


@dataclass
class Tally:
    """What has come of the inputs so far."""

    answers: int = 0
    refusals: int = 0
    failures: list[str] = field(default_factory=list)
    kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    reasons: collections.Counter[str] = field(default_factory=collections.Counter)
    seconds: float = 0

    @property
    def inputs(self) -> int:
        return self.answers + self.refusals + len(self.failures)

    def add(self, other: "Tally") -> None:
        self.answers += other.answers
        self.refusals += other.refusals
        self.failures += other.failures
        self.kinds += other.kinds
        self.reasons += other.reasons
        self.seconds += other.seconds


@cache
def opened(name: str) -> Model:
    return load_model(str(hostile_folder(name)) if name in OWN_TOKENS else name, device="cpu")


def through(number: int, seed: int, tally: Tally) -> None:
    """One input on its whole way."""
    dice = random.Random(f"{seed}/{number}")
    kind, text = text_of(dice)
    tally.kinds[kind] += 1
    name = dice.choice(MODELS)
    try:
        laws.label_is_text(text[:2_000])
        link_is_read(dice, text)
        try:
            answer(opened(name), text, dice, number)
        except ValueError as refusal:
            if not laws.is_sentence(refusal):
                raise RuntimeError(f"no sentence: {refusal}") from refusal
            tally.refusals += 1
            tally.reasons[" ".join(str(refusal).split()[:4])] += 1
        else:
            tally.answers += 1
    except Exception as error:  # whatever it is, it is what this run looks for
        last = traceback.extract_tb(error.__traceback__)[-1]
        tally.failures.append(
            f"{number} ({kind}, {name}): {type(error).__name__} {str(error)[:200]!r} at "
            f"{last.filename}:{last.lineno}"
        )


def answer(model: Model, text: str, dice: random.Random, number: int) -> None:
    """The numbers of a text, or the refusal of it, and all that is made of them."""
    kept = model.truncate(text)
    if len(model.tokens(kept)) > LONGEST and number % 50:
        kept = kept[:LONGEST]
    trace = model.trace(kept, target_of(model, dice), intervention_of(model, dice))
    laws.numbers_hold(model, trace)
    place = dice.choice(model.attention_names)
    head = dice.randrange(trace.find(place).heads)
    laws.pictures_are_text(trace, place, head, number)
    for token in dice.sample(trace.tokens, min(4, len(trace.tokens))):
        laws.label_is_text(token.text)
    picture = laws.picture_of(trace, place, head)
    laws.tables_are_text(picture)
    if number % FILES_EVERY == 0:
        laws.files_are_text(trace, place, picture)


def target_of(model: Model, dice: random.Random) -> str | None:
    if model.config.shape != "encoder-decoder" or dice.random() < 0.1:
        return None  # in an encoder-decoder: what the model itself writes, word by word
    return dice.choice(["le chat", text_of(dice)[1][:200]])


def intervention_of(model: Model, dice: random.Random) -> Intervention:
    """Mostly none; else some of what can be changed, within and beyond what the text has."""
    if dice.random() < 0.6:
        return Intervention()
    place = dice.choice(model.attention_names)
    return Intervention(
        scale=dice.choice([None, 0.0, 1.0, -1.0, 20.0]),
        mask=dice.choice([*MASKS]),
        hidden=frozenset(dice.sample(range(40), dice.randint(0, 5))),
        fill=dice.choice([float("-inf"), 0.0, -1e9, -1e20, 5.0]),
        positions=dice.random() < 0.7,
        ablated=frozenset({(place, dice.randint(0, 9))} if dice.random() < 0.2 else ()),
        only=frozenset({place}) if dice.random() < 0.3 else None,
    )


def link_is_read(dice: random.Random, text: str) -> None:
    """A view comes back from its link, and no dictionary breaks the reader."""
    view = View(text=text[:20_000], head=dice.randrange(99), second_text=text[:50])
    reopened, problems = from_link(to_link(view))
    assert (to_link(reopened), problems) == (to_link(view), ()), "the link is not the view"
    short_link(view)
    names = [
        *to_link(view),
        "head",
        "mask",
        "scale",
        "hidden",
        "blocked",
        "ablated",
        "model",
        "fill",
    ]
    garbage: dict[str, Any] = {
        name: dice.choice([*VALUES, text[:3_000]]) for name in dice.sample(names, 4)
    }
    _, said = from_link(garbage)
    assert all(laws.is_sentence(ValueError(line)) for line in said), said


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--inputs", type=int, default=10_000)
    options.add_argument("--first", type=int, default=None, help="number of the first input")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--workers", type=int, default=2, help="processes")
    chosen = options.parse_args()
    tally = Tally() if chosen.first is not None else resumed(chosen.seed, chosen.inputs)
    first, end = chosen.first or tally.inputs, (chosen.first or 0) + chosen.inputs
    parts = [(at, min(at + PART, end), chosen.seed) for at in range(first, end, PART)]
    with ProcessPoolExecutor(chosen.workers, get_context("spawn")) as pool:
        for part in pool.map(part_of, parts):
            tally.add(part)
            print(_said(tally), flush=True)
            if chosen.first is None:
                _write(tally, chosen.seed)
    print(*tally.failures, sep="\n")
    sys.exit(bool(tally.failures))


def part_of(part: tuple[int, int, int]) -> Tally:
    """What comes of the inputs from one number to another, in this process."""
    first, end, seed = part
    tally, start = Tally(), time.monotonic()
    for number in range(first, end):
        through(number, seed, tally)
    tally.seconds = time.monotonic() - start
    return tally


def resumed(seed: int, inputs: int) -> Tally:
    """Where the last run with this seed stopped, if it has not come to its end; else a new one."""
    try:
        told = json.loads(REPORT.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Tally()
    if told["seed"] != seed or told["inputs"] >= inputs:
        return Tally()
    counters = {name: collections.Counter(told[name]) for name in ("kinds", "reasons")}
    plain = {name: told[name] for name in ("answers", "refusals", "failures", "seconds")}
    return Tally(**plain, **counters)


def _said(tally: Tally) -> str:
    return (
        f"{tally.inputs:,} inputs: {tally.answers:,} answers, {tally.refusals:,} refusals, "
        f"{len(tally.failures):,} failures, {tally.seconds:,.0f} s"
    )


def _write(tally: Tally, seed: int) -> None:
    told = {
        "inputs": tally.inputs,
        "seed": seed,
        "models": list(MODELS),
        "answers": tally.answers,
        "refusals": tally.refusals,
        "failures": tally.failures,
        "seconds": round(tally.seconds),
        "kinds": dict(sorted(tally.kinds.items())),
        "reasons": dict(tally.reasons.most_common()),
    }
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
