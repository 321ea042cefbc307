"""Writes what the search lists: `python -m tools.catalogue`, after a new page, view, term, question, worked
example, example or claim of a paper."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from urllib.parse import urlencode

from model.papers.claims import claims
from model.system.files import write_whole
from model.worked import examples
from viz.explorer.assets import STATIC
from viz.state.link import address, to_link
from viz.state.navigation import PLACES
from viz.state.presets import EXAMPLES
from viz.views.experiments.experiments import FILE as FILE_OF_EXPERIMENTS
from viz.views.experiments.experiments import experiments
from viz.views.glossary.glossary import TERMS
from viz.views.library.papers import PAPER
from viz.views.library.questions import questions
from viz.views.worked.choice import TOPICS

FILE = STATIC / "catalogue.json"


@dataclass(frozen=True)
class Goal:
    """What the search finds, and the address that opens it.

    note: is shown beside the name. also: other words that it is found by. model: without it there is nothing
    to open.
    """

    kind: str
    name: str
    to: str
    note: str = ""
    also: str = ""
    model: str = ""


def goals() -> Iterator[Goal]:
    """All that does not depend on the open model."""
    asked = list(questions())
    for place, pages in PLACES.items():
        for page in pages:
            to = f"/{page.address}"
            yield Goal("Page", page.title, to, page.line, f"{place} {page.station} {page.heading}")
            for view in page.variants if page.file != FILE_OF_EXPERIMENTS else ():
                link = f"{to}?{urlencode({'show': view})}"
                about = " ".join(one.words for one in asked if link in one.links)
                yield Goal("View", view, link, page.title, about)
    for one in asked:
        yield Goal(
            "Question", one.words, one.links[0], one.answer, "; ".join((one.topic, *one.also))
        )
    for experiment in experiments():
        guesses = "; ".join(experiment.choices)
        yield Goal("Experiment", experiment.question, experiment.link, experiment.show, guesses)
    for claim in claims().values():
        link = address("/papers", {PAPER: claim.name})
        source = claim.figure_of_the_paper.source
        yield Goal("Paper", claim.title, link, claim.claim, "; ".join((source, claim.also)))
    for term in TERMS:
        link = address("/library", {"term": term.name})
        yield Goal("Term", term.name, link, term.meaning, "; ".join((*term.also, *term.typed)))
    for worked in examples():
        link = address("/worked_examples", {"example": worked.name})
        yield Goal("By hand", worked.title, link, TOPICS[worked.section])
    for example in EXAMPLES:
        link = address("/", to_link(example.view))
        sentence = example.view.text
        yield Goal("Example", example.title, link, sentence, example.look_for, example.view.model)


def written() -> str:
    """The file's text: a goal a line, without what is empty."""
    lines = (
        json.dumps(
            {name: value for name, value in asdict(goal).items() if value}, ensure_ascii=False
        )
        for goal in goals()
    )
    return "[\n" + ",\n".join(lines) + "\n]\n"


def main() -> None:
    write_whole(FILE, written().encode())


if __name__ == "__main__":
    main()
