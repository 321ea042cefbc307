"""Examples of a model that has none of its own: its heads on a few sentences, each called what it may be."""

from collections.abc import Iterator

from model.analysis.heads.families import families
from model.analysis.heads.ranking import STATISTICS, Statistic, scores
from model.nn.config import Shape
from model.nn.places import Head
from model.serving.engine import Request
from model.trace.trace import Trace
from viz.figures.svg import rows_of
from viz.state.examples import SentenceExample, view_of
from viz.state.held import loaded, traced

SENTENCES: dict[Shape, tuple[str, ...]] = {
    "decoder": (
        "river stone garden river stone garden river stone",
        "She opened the door and walked into the cold night",
    ),
    "encoder": ("The bank of the river was steep; the bank in town was closed",),
    "encoder-decoder": ("The black cat sleeps",),
}


def found_examples(name: str) -> dict[SentenceExample, list[str]]:
    """For each kind of head the clearest one on the first sentence that has one, with its rows. The model is
    loaded already. Raises ValueError as `Model.trace` does."""
    found: dict[str, tuple[SentenceExample, list[str]]] = {}
    for text in SENTENCES[loaded(name).config.shape]:
        trace = traced(Request(name, text))
        for statistic, head, share in _clearest(trace):
            found.setdefault(statistic.name, _example(name, text, trace, statistic, head, share))
    return dict(found.values())


def _clearest(trace: Trace) -> Iterator[tuple[Statistic, Head, float]]:
    """Of each family of heads the clearest one of each kind."""
    for family in families(trace):
        known = scores(trace, family)
        for statistic in STATISTICS:
            if called := known.called(statistic.name):
                yield statistic, *called[0]


def _example(
    name: str, text: str, trace: Trace, statistic: Statistic, head: Head, share: float
) -> tuple[SentenceExample, list[str]]:
    weights = trace.find(head[0]).weights(head[1])
    query = len(weights) - 1
    view = view_of(name, text, head, (query, int(weights[query].argmax())))
    words = f"{statistic.meaning} On this sentence: {share:.2f}."
    return SentenceExample(statistic.title, view, words), rows_of(weights)
