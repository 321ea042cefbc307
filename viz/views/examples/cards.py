"""The examples that can be opened, their heads in small, and examples of a model that has none."""

import json
from functools import cache
from pathlib import Path

from model.analysis.heads.ranking import STATISTICS, scores
from model.analysis.heads.statistics import families
from model.loading.registry import models
from model.nn.config import Shape
from model.serving.engine import Request
from viz.figures.svg import rows_of
from viz.notation.words import sentences_of
from viz.state.look import loaded, traced
from viz.state.presets import EXAMPLES, SentenceExample, view_of

say = sentences_of("examples.cards")


def offered() -> list[SentenceExample]:
    """The examples of models that are known here."""
    return [example for example in EXAMPLES if models.found(example.view.model) is not None]


SENTENCES: dict[Shape, tuple[str, ...]] = {
    "decoder": (
        say("river_stone_garden"),
        say("she_opened_door"),
    ),
    "encoder": (say("bank_river_steep"),),
    "encoder-decoder": (say("black_cat_sleeps"),),
}


def found_examples(name: str) -> dict[SentenceExample, list[str]]:
    """For each kind of head the clearest one on the first sentence that has one, with its rows. The model is
    loaded already. Raises ValueError as `Model.trace` does."""
    clearest: dict[str, tuple[SentenceExample, list[str]]] = {}
    for text in SENTENCES[loaded(name).config.shape]:
        trace = traced(Request(name, text))
        for family in families(trace):
            known = scores(trace, family)
            for statistic in STATISTICS:
                called = known.called(statistic.name)
                if not called or statistic.name in clearest:
                    continue
                (place, head), share = called[0]
                weights = trace.find(place).weights(head)
                query = len(weights) - 1
                view = view_of(name, text, (place, head), (query, int(weights[query].argmax())))
                words = f"{statistic.meaning} On this sentence: {share:.2f}."
                example = SentenceExample(statistic.title, view, words)
                clearest[statistic.name] = example, rows_of(weights)
    return dict(clearest.values())


# The heads of the examples, made small beforehand, so that the page loads no model.
# `python -m tools.thumbnails` writes them; a test compares each with the weights of its model.

FILE = Path(__file__).with_name("thumbnails.json")


@cache
def thumbnails() -> dict[str, list[str]]:
    """The rows of each example's head, by the example's title, as `viz.figures.svg` takes them."""
    rows: dict[str, list[str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return rows
