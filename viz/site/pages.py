"""The pages of a site as HTML. Every text of a course, a model or a sentence is escaped."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import accumulate, count, groupby
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from model.loading.registry import models
from model.nn.intervention import Intervention
from model.worked import examples
from model.worked.example import Example, Step
from viz.explorer.packing import Json
from viz.figures.cells import labels
from viz.notation.numbers import numbers
from viz.notation.theme import MASKED, QUANTITIES
from viz.notation.words import sentences_of
from viz.site.course import Course, CoursePart, PageName
from viz.site.model.parts import has_gpt2s_tokens
from viz.site.recording import Recording, SiteModel, SiteSwitch, slug
from viz.views.glossary.glossary import TERMS, Term
from viz.views.glossary.miniatures import picture
from viz.views.worked.by_hand import PRINTED, printed_table
from viz.views.worked.choice import TOPICS

say = sentences_of("site.pages")

_ROOM = Path(__file__).parent
FILES: Mapping[PageName, str] = {
    "explore": "index.html",
    "walk": "walk.html",
    "worked": "worked.html",
    "glossary": "glossary.html",
    "lesson": "lesson.html",
}
SHOWING: tuple[PageName, ...] = ("explore", "walk")  # the pages that show a sentence
TITLES: Mapping[PageName, str] = {
    "explore": "Explore",
    "walk": "Walk",
    "worked": "Worked examples",
    "glossary": "Glossary",
    "lesson": "Lesson",
}


@dataclass(frozen=True)
class RecordedSite:
    """What pages are made of. models: those that run in the browser. whole: whether all stand in one file."""

    course: Course
    recordings: tuple[Recording, ...]
    models: tuple[SiteModel, ...]
    whole: bool

    @cached_property
    def called(self) -> Mapping[str, str]:
        """What the pages call each recorded model: a folder by the last part of its path alone, which nobody
        else should read, and no two alike."""
        called: dict[str, str] = {}
        for name in dict.fromkeys(one.view.model for one in self.recordings):
            entry = models.found(name)
            short = name if entry is None or entry.folder is None else Path(name).name
            taken = {*called.values(), *(one.name for one in self.models if one.name != name)}
            others = (f"{short} ({number})" for number in count(2))
            called[name] = (
                short if short not in taken else next(x for x in others if x not in taken)
            )
        return called

    def weights(self, model: str) -> str:
        """The name of the block of data that has what all runs of a recorded model share."""
        names: list[str] = []
        for called in self.called.values():
            names.append(slug(called, names))
        return f"weights-{names[[*self.called].index(model)]}"

    def title(self, model: str) -> str:
        """A model, in a sentence."""
        called = self.called.get(model, model)
        return models.short_title(model) if called == model else called

    @property
    def files(self) -> dict[PageName, str]:
        """The file of each page; the first one is what opens."""
        shown = self.course.pages
        return {name: "index.html" if name == shown[0] else FILES[name] for name in shown}

    def address(self, page: PageName, **said: str) -> str:
        """Where a page is, with what it is to open; as it stands in an attribute."""
        said = {name: value for name, value in said.items() if value}
        if self.whole:
            said = {"page": page} | said
        search = f"#{urlencode(said)}" if said else ""
        return escape(search if self.whole else self.files[page] + search)

    def facts(self) -> Json:
        """What the pages' script knows before it reads any data."""
        return {
            "sentences": [_facts(self, one) for one in self.recordings],
            "models": {one.name: _facts_of_model(self, one) for one in self.models},
            "jobs": {self.called[one.view.model]: one.jobs for one in self.recordings}
            | {one.name: one.jobs for one in self.models},
        }


def navigation(site: RecordedSite) -> str:
    """Links to all pages."""
    return "".join(
        f'<a href="{site.address(name)}" data-to="{name}">{TITLES[name]}</a>'
        for name in site.course.pages
    )


def page_of(name: PageName, site: RecordedSite) -> str:
    """One page, from its heading to its end."""
    makers: dict[PageName, Callable[[RecordedSite], str]] = {
        "explore": _explore,
        "walk": _walk,
        "worked": _worked,
        "glossary": _glossary,
        "lesson": _lesson,
    }
    return f'<main data-page="{name}" hidden>{makers[name](site)}</main>'


def filled(template: str, **parts: str) -> str:
    """A template of this folder with its parts, which are HTML; nothing in a part is taken for another one's
    place."""
    text = (_ROOM / template).read_text(encoding="utf-8")
    return re.sub(r"<!--(\w+)-->", lambda place: parts[place[1]], text)


def json_of(facts: object) -> str:
    """JSON that cannot end the script it stands in."""
    text = json.dumps(facts, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _facts(site: RecordedSite, one: Recording) -> Json:
    view = one.view
    return {
        "name": one.name,
        "text": view.text,
        "model": site.called[view.model],
        "title": site.title(view.model),
        "about": _model_line(site, view.model),
        "place": view.place,
        "head": view.head,
        "query": view.query,
        "key": view.key,
        "data": one.data(),
        "weights": site.weights(view.model),
        "switches": [
            _facts_of_switch(switch) | {"data": one.data(switch.name)} for switch in one.switches
        ],
    }


def _facts_of_model(site: RecordedSite, one: SiteModel) -> Json:
    layers = [
        layer | {"heads": family["heads"]} for family in one.families for layer in family["layers"]
    ]
    return {
        "title": site.title(one.name),
        "about": _model_line(site, one.name),
        "layers": layers,
        "data": f"model-{slug(one.name)}",
        "vocabulary": ["vocabulary"] if has_gpt2s_tokens(one.name) else [],
        "switches": [_facts_of_switch(switch) for switch in one.switches],
    }


def _facts_of_switch(switch: SiteSwitch) -> Json:
    return {
        "name": switch.name,
        "label": switch.label,
        "on": switch.on,
        "intervention": changes(switch.intervention),
    }


def changes(intervention: Intervention) -> Json:
    """What an intervention of a switch changes, as `messageOf` takes it."""
    said: Json = {}
    if intervention.mask != "model":
        said["mask"] = intervention.mask
    if intervention.scale is not None:
        said["scale"] = intervention.scale
    if not intervention.positions:
        said["positions"] = False
    if intervention.ablated:
        said["ablated"] = [list(head) for head in sorted(intervention.ablated)]
    return said


def _model_line(site: RecordedSite, name: str) -> str:
    """A model in a line."""
    found = models.found(name)
    if found is None or not found.good_for:
        return f"{site.title(name)}."
    return f"{found.short_title} is good for {found.good_for}"


def _choice(site: RecordedSite, page: PageName) -> str:
    """The sentence, which is the reader's to change; below it, in a line, the examples by model, the model
    that reads it, and what the site is."""
    groups = "".join(
        f'<optgroup label="{escape(site.title(model))}">'
        + "".join(
            f'<option value="{one.name}">{escape(f"{one.example.title}: {one.view.text}")}</option>'
            for one in listed
        )
        + "</optgroup>"
        for model, listed in groupby(site.recordings, lambda one: one.view.model)
    )
    return (
        f'<form class="own">{_own_sentence(site, page)}<p class="choice">'
        f'<select class="sentences" aria-label="Example"><option value="" hidden>Examples</option>{groups}'
        f"</select>{_readers(site)}<span>{escape(site.course.introduction)}</span></p></form>"
        '<p class="notice" role="alert" hidden></p>'
    )


def _own_sentence(site: RecordedSite, page: PageName) -> str:
    """The sentence as a title; only where a model runs here another one can be typed."""
    fixed = "" if site.models else " readonly"
    return (
        f'<label class="unseen" for="text-{page}">Sentence</label><textarea id="text-{page}" rows="1" '
        f'autocomplete="off" spellcheck="false" enterkeyhint="go"{fixed}></textarea>'
    )


def _readers(site: RecordedSite) -> str:
    """The models that can read what is typed; those that were only recorded are named."""
    here = [one.name for one in site.models]
    options = "".join(
        f'<option value="{escape(site.called.get(name, name))}"{"" if name in here else " disabled"}>'
        f"{escape(site.title(name))}</option>"
        for name in dict.fromkeys([*here, *site.called])
    )
    return f'<select class="models" aria-label="Model">{options}</select>'


def _explore(site: RecordedSite) -> str:
    return filled("explore.html", title=escape(site.course.title), choice=_choice(site, "explore"))


def _walk(site: RecordedSite) -> str:
    return filled("walk.html", choice=_choice(site, "walk"))


def _worked(site: RecordedSite) -> str:
    made = [
        '<h1>Worked examples</h1><p class="introduction">Every calculation, step by step. In the app the '
        f"numbers can be changed.</p>{PRINTED}"
    ]
    for topic, title in TOPICS.items():
        made.append(f"<h2>{escape(title)}</h2>")
        made += [_example(one) for one in examples() if one.section == topic]
    return "".join(made)


def _example(example: Example) -> str:
    steps = "".join(map(_step, example.steps))
    return (
        f'<details class="worked" id="worked-{example.name}"><summary>{escape(example.title)}</summary>'
        f"<p>{escape(example.idea)}</p><ol>{steps}</ol></details>"
    )


def _step(step: Step) -> str:
    """A step: its formula, its result, the same with numbers, and what the notes print."""
    printed = printed_table(step).removeprefix(PRINTED)
    remark = "" if step.comment is None else f"<p>{escape(step.comment)}</p>"
    with_numbers = "" if step.numbers is None else _latex(step.numbers)
    notes = ""
    if step.notes is not None:
        same = say("notes_give_same") if step.agrees else step.notes.erratum or ""
        quoted = f"{step.notes.source}: “{step.notes.quotation}”"
        notes = f"<p>{escape(same)}</p>{printed}<p class='quiet'>{escape(quoted)}</p>"
    result = _latex(step.formula) + _table(step) + with_numbers
    return f"<li><h3>{escape(step.title)}</h3>{result}{remark}{notes}</li>"


def _latex(formula: str) -> str:
    return f'<div class="latex">{escape(formula)}</div>'


def _table(step: Step) -> str:
    """The result as a table, whose cells are as strong as their numbers are large."""
    values = np.atleast_2d(step.result)
    written, largest = numbers(values), float(np.abs(values).max(initial=0.0)) or 1.0
    blocked = np.zeros(values.shape, bool) if step.blocked is None else np.atleast_2d(step.blocked)
    rows = labels(step.rows, len(values), alone=step.result.ndim < 2)
    columns = labels(step.columns, values.shape[1], alone=step.result.ndim == 0)
    hue = MASKED if step.quantity == "other" else QUANTITIES[step.quantity].hue

    def cell(at: tuple[int, int]) -> str:
        kind = ' class="blocked"' if blocked[at] else ' class="less"' if values[at] < 0 else ""
        share = abs(values[at]) / largest
        return f'<td{kind} style="--share:{share:.2f}">{escape(written[at[0]][at[1]])}</td>'

    def header(label: str, scope: str) -> str:
        return f'<th scope="{scope}">{escape(label)}</th>' if label else "<td></td>"

    body = "".join(
        f"<tr>{header(label, 'row')}"
        + "".join(cell((row, column)) for column in range(values.shape[1]))
        + "</tr>"
        for row, label in enumerate(rows)
    )
    head = "".join(header(label, "col") for label in columns)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(step.title)}">'
        f'<table class="result" style="--hue:{hue}"><tr><td></td>{head}</tr>{body}</table></div>'
    )


def _glossary(site: RecordedSite) -> str:
    terms = "".join(_term(one, site) for one in TERMS)
    return (
        "<h1>Glossary</h1><p class='choice'><label for='words'>Search</label>"
        "<input id='words' type='search' placeholder='A term, or a word from its explanation'></p>"
        f"<p class='none quiet' hidden>No term contains these words.</p>{terms}"
    )


def _term(term: Term, site: RecordedSite) -> str:
    also = f" ({escape(', '.join(term.also))})" if term.also else ""
    leads = ""
    if term.example and "worked" in site.course.pages:
        title = {one.name: one.title for one in examples()}[term.example]
        leads = (
            f'<a href="{site.address("worked", at=term.example)}">By hand: {escape(title)} →</a>'
        )
    return (
        f'<div class="term" id="glossary-{slug(term.name)}"><div class="picture">{picture(term)}</div>'
        f"<p><b>{escape(term.name)}</b>{also}<br>{escape(term.meaning)}</p>"
        f'<p class="leads">{leads}</p></div>'
    )


def _lesson(site: RecordedSite) -> str:
    course = site.course
    ends = list(accumulate(part.minutes for part in course.lesson))
    minutes = sum(part.minutes for part in course.lesson)
    rows = "".join(
        f'<li><p class="minutes">{end - part.minutes}–{end} min</p><div>{_part(part, site)}</div></li>'
        for part, end in zip(course.lesson, ends, strict=True)
    )
    return (
        f'<h1>A lesson of {minutes} minutes</h1><p class="introduction">Each part has something to look at, '
        f'a question, and what is a good answer.</p><ol class="lesson">{rows}</ol>'
    )


def _part(part: CoursePart, site: RecordedSite) -> str:
    """A part of the lesson; its title is a link where the site has what it opens."""
    address, title = _opens(part, site), escape(part.title)
    named = f'<a href="{address}">{title} →</a>' if address else title
    look = f"<p><b>Look:</b> {escape(part.look)}</p>" if part.look else ""
    ask = f"<p><b>Ask:</b> {escape(part.ask)}</p>" if part.ask else ""
    expect = ""
    if part.expect:
        said = escape(part.expect)
        expect = f"<details><summary>What to expect</summary><p>{said}</p></details>"
    return f"<h2>{named}</h2>{look}{ask}{expect}"


def _opens(part: CoursePart, site: RecordedSite) -> str:
    """The address of what a part opens; "" where the site has it not."""
    if not part.page or part.page not in site.course.pages:
        return ""
    shown = next((one for one in site.recordings if one.example.title == part.sentence), None)
    if part.sentence and shown is None:
        return ""
    name = shown.name if shown else ""
    change = part.change if shown and part.change in {one.name for one in shown.switches} else ""
    return site.address(part.page, sentence=name, change=change, stage=part.stage, at=part.at)
