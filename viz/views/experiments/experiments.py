"""Experiments that ask for a guess: the laboratory's presets, claims that were tried by training, and other
views. Pure."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from model.loading.registry import models
from model.training.claims import CLAIMS, ending, shipped_runs, verdict
from viz.figures.svg import miniature
from viz.state.link import address, to_link
from viz.state.presets import PATCH_KIND, PATCHES, PRESETS
from viz.views.glossary.glossary import term
from viz.views.glossary.miniatures import picture

_FILE = Path(__file__).with_suffix(".toml")
TRAINED = "Train with it and without it"  # topic of the claims
VERDICTS = {
    "supported": "It holds in every run",
    "in part": "It holds in part",
    "contradicted": "It holds in no run",
}


@dataclass(frozen=True)
class Experiment:
    """A question, the guesses, and the address of the view that answers.

    title: what is changed, or looked at. setting: the model and what it reads, where the address names them.
    right: the guess that holds, by number. answer: what is to be seen there. picture: HTML.
    """

    topic: str
    title: str
    question: str
    choices: tuple[str, ...]
    right: int
    answer: str
    link: str
    picture: str
    setting: str = ""


@cache
def experiments() -> tuple[Experiment, ...]:
    """All of them, topic by topic."""
    return (*_listed(), *_claims())


def _listed() -> Iterator[Experiment]:
    presets = {preset.title: preset for preset in (*PRESETS, *PATCHES)}
    listed: list[dict[str, Any]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))["experiment"]
    for one in listed:
        if preset := presets.get(one.pop("preset", "")):
            put_in = {PATCH_KIND: preset.put_in} if preset.put_in else {}
            model = models[preset.view.model].short_title
            one |= {
                "title": preset.title,
                "question": preset.question,
                "answer": preset.look_for,
                "link": address("/", to_link(preset.view) | put_in),
                "setting": f"{model} reads “{preset.view.text}”.",
            }
        yield Experiment(
            **one | {"choices": tuple(one["choices"]), "picture": picture(term(one["picture"]))}
        )


def _claims() -> Iterator[Experiment]:
    """A claim is guessed to hold in all runs, in some or in none. Nothing where the runs cannot be read."""
    try:
        runs = shipped_runs()
    except (OSError, ValueError):
        return
    for claim in CLAIMS:
        ends = [ending(claim, name, runs).mean for name in claim.variants]
        drawn = miniature(np.nan_to_num(np.array(ends)), "stream")
        yield Experiment(
            TRAINED,
            claim.title,
            claim.words,
            tuple(VERDICTS.values()),
            list(VERDICTS).index(verdict(claim, runs)),
            f"What these runs do not show: {claim.limits}",
            f"/training?{urlencode({'show': 'Claims', 'claim': claim.title})}",
            f'<img src="{drawn}" alt="">',
        )
