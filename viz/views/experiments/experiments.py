"""The cards of the experiments: a question each, a small picture, and the address that opens it. Pure."""

import html
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from viz.state.link import address
from viz.state.navigation import html_link
from viz.state.presets import PRESETS, SentenceExample
from viz.views.glossary.glossary import term
from viz.views.glossary.miniatures import picture

_FILE = Path(__file__).with_suffix(".toml")
FILE = "pages/experiments.py"  # the page
STYLE = f"<style>{Path(__file__).with_suffix('.css').read_text(encoding='utf-8')}</style>"


@dataclass(frozen=True)
class Experiment:
    """A question. show: its name in links. picture: a term of the glossary. choices: the guesses, where it
    asks for one. example: a sentence that shows it."""

    show: str
    question: str
    picture: str
    choices: tuple[str, ...] = ()
    example: SentenceExample | None = None

    @property
    def link(self) -> str:
        """The address that opens it on the visitor's own sentence."""
        return address("/experiments", {"show": self.show})


@cache
def experiments() -> tuple[Experiment, ...]:
    """All of them: first those that ask for a guess."""
    presets = {preset.title: preset for preset in PRESETS}
    listed: list[dict[str, Any]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))["experiment"]
    return tuple(
        Experiment(
            **one
            | {
                "choices": tuple(one.get("choices", ())),
                "example": presets.get(one.get("example", "")),
            }
        )
        for one in listed
    )


def named(show: str) -> Experiment | None:
    """The experiment of this name; None for all cards."""
    return next((one for one in experiments() if one.show == show), None)


def cards() -> str:
    """HTML of all cards; each is a link."""
    return f'{STYLE}<div class="experiments" role="list">{"".join(map(_card, experiments()))}</div>'


def _card(one: Experiment) -> str:
    drawn = picture(term(one.picture))
    link = html_link(FILE, one.question, {"show": one.show})
    kind = "" if one.choices else "<small>With controls</small>"  # the page itself says to guess
    return (
        f'<article role="listitem">{drawn}<div><small>{html.escape(one.show)}</small>'
        f"<h2>{link}</h2>{kind}</div></article>"
    )
