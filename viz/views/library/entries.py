"""Questions, terms and examples as entries of one list: each with its words, links and a small picture."""

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import itemgetter
from typing import Literal

from model.loading.registry import may_be_linked, models
from model.nn.places import head_label
from viz.figures.svg import thumbnail
from viz.notation.words import sentences_of
from viz.state.link import opening_link
from viz.state.navigation import HOME, entry, html_link
from viz.state.presets import SentenceExample
from viz.views.examples.cards import found_examples, offered, thumbnails
from viz.views.glossary.glossary import TERMS, Term, term
from viz.views.glossary.miniatures import picture
from viz.views.library.questions import ReaderQuestion, questions
from viz.views.worked.by_hand import WORKED_PAGE, worked_example

say = sentences_of("library.entries")

LibraryKind = Literal["Questions", "Terms", "Examples"]
KINDS: tuple[LibraryKind, ...] = ("Questions", "Terms", "Examples")


@dataclass(frozen=True)
class LibraryEntry:
    """An entry of the Library.

    group: the heading that it stands under. picture, links: HTML. quoted: the sentence of an example. also:
    other words that it is found by.
    """

    kind: LibraryKind
    group: str
    name: str
    words: str
    picture: str
    links: tuple[str, ...] = ()
    quoted: str = ""
    also: tuple[str, ...] = ()

    def html(self) -> str:
        """As it stands in the list."""
        quoted = f"<q>{html.escape(self.quoted)}</q>" if self.quoted else ""
        also = (
            f" <small>{html.escape(', '.join(self.also))}</small>" if self.kind == "Terms" else ""
        )
        links = f'<p class="leads">{" ".join(self.links)}</p>' if self.links else ""
        return (
            f'<article class="entry"><div class="picture">{self.picture}</div>'
            f"<div><h3>{html.escape(self.name)}{also}</h3>{quoted}<p>{html.escape(self.words)}</p>"
            f"{links}</div></article>"
        )


def listed(model: str) -> Sequence[LibraryEntry]:
    """All of them in the order of the list: the examples of the open model, the topics with their questions
    and terms, and the other models' examples."""
    cards = [_example(one, thumbnails()[one.title]) for one in offered()]
    own = [one for one in cards if one.group == group_of(model)]
    return (*own, *_of_topics(), *(one for one in cards if one not in own))


def found_in(model: str) -> Sequence[LibraryEntry]:
    """The clearest head of each kind in a model that is loaded and has no examples of its own. Raises
    ValueError as `Model.trace` does."""
    if model in {one.view.model for one in offered()}:
        return ()
    return [_example(one, rows) for one, rows in found_examples(model).items()]


@cache
def _of_topics() -> tuple[LibraryEntry, ...]:
    asked = list(map(_question, questions()))
    meant = list(map(_term, TERMS))
    topics = list(dict.fromkeys(one.group for one in asked))
    return tuple(one for topic in topics for one in (*asked, *meant) if one.group == topic)


def matching(entries: Sequence[LibraryEntry], words: str) -> tuple[LibraryEntry, ...]:
    """The entries that hold all of these words: first those whose name does, then those by other names."""
    wanted = folded(words).split()
    ranked = []
    for one in entries:
        texts = (one.name, " ".join(one.also), f"{one.words} {one.quoted}")
        held = ""
        for rank, text in enumerate(texts):
            held += f" {folded(text)}"
            if all(word in held for word in wanted):
                ranked.append((rank, one))
                break
    return tuple(one for _, one in sorted(ranked, key=itemgetter(0)))


def folded(text: str) -> str:
    """A text as it is compared: without capitals, accents and the commas of numbers, with plain minuses."""
    plain = unicodedata.normalize("NFKD", text.casefold().replace("−", "-").replace("–", "-"))
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return re.sub(r"(?<=\d),(?=\d{3})", "", plain)


def term_entry(name: str) -> LibraryEntry:
    """The entry of a term. Raises KeyError as `viz.views.glossary.glossary.term` does."""
    return _term(term(name))


def example_entry(title: str) -> LibraryEntry:
    """The entry of an example. Raises KeyError if there is none."""
    for one in offered():
        if one.title == title:
            return _example(one, thumbnails()[title])
    raise KeyError(f"The Library has no example “{title}”.")


def _question(asked: ReaderQuestion) -> LibraryEntry:
    links = tuple(
        html_link(link.page.file, f"{link.label} →", link.parameters) for link in asked.opens()
    )
    return LibraryEntry(
        "Questions",
        asked.topic,
        asked.words,
        asked.answer,
        picture(term(asked.about)),
        links,
        also=asked.also,
    )


def _term(meant: Term) -> LibraryEntry:
    links = []
    if meant.page and meant.page != WORKED_PAGE:
        links.append(html_link(meant.page, f"{entry(meant.page).title} →", {}))
    if meant.example:
        words = f"By hand: {worked_example(meant.example).title} →"
        links.append(html_link(WORKED_PAGE, words, {"example": meant.example}))
    return LibraryEntry(
        "Terms",
        meant.topic,
        meant.name,
        meant.meaning,
        picture(meant),
        tuple(links),
        also=meant.also,
    )


def group_of(model: str) -> str:
    """The heading of a model's examples."""
    return f"Examples: {models.short_title(model)}"


def _example(example: SentenceExample, rows: Sequence[str]) -> LibraryEntry:
    view = example.view
    named = head_label((view.place, view.head))
    alt = html.escape(say("weights_row_per", named=named))
    words = example.look_for
    links = tuple(_leads(example))
    if not links:
        title = models[view.model].short_title
        words += say("not_computer_other", title=title)
    return LibraryEntry(
        "Examples",
        group_of(view.model),
        example.title,
        words,
        f'<i class="head" role="img" aria-label="{alt}" style="--head: url({thumbnail(rows)})"></i>',
        links,
        quoted=view.text,
    )


def _leads(example: SentenceExample) -> Iterator[str]:
    """The links of an example: to its head, and to the same without the heads that it speaks of."""
    if not may_be_linked(example.view.model):
        return
    yield html_link(HOME, "Open it →", opening_link(example.view))
    if example.without:
        heads = f"these {len(example.without)} heads" if len(example.without) > 1 else "this head"
        left_out = replace(example.left_out, show="")
        yield html_link(HOME, f"Without {heads} →", opening_link(left_out))
