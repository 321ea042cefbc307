"""A worked example on a page: one step at a time, with its formula or code, its numbers and what the notes
print."""

import html
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TypeVar

import numpy as np
import pandas as pd
import streamlit as st

from model.snippets import STYLES, Style
from model.worked import Erratum, errata, examples
from model.worked.code import given_to, script, snippet
from model.worked.example import Example, Step
from model.worked.notes import NOTHING
from viz.elements.one_of import one_listed
from viz.elements.plot import scrolling_plot
from viz.figures.cells import labels, worked_step
from viz.notation.markdown import plain
from viz.notation.numbers import DECIMALS, number, numbers
from viz.notation.theme import ERRATUM, rgba
from viz.notation.words import sentences_of
from viz.shell.panel import Formula, Panel, Part, Table, draw_panel
from viz.shell.pictures import lines_of, script_of
from viz.state.navigation import html_link, page_link

say = sentences_of("worked.by_hand")

Option = TypeVar("Option")
WORKED_PAGE = "pages/worked_examples.py"
SHOW, STEPS, ERRATA = "show", "Step by step", "Errata"  # two views of that page, as links say them
AS_FORMULA, AS_CODE = "Formula", "Code"
# Session state: the open step of each example; what a reader chose last, for all examples.
PLACES, READING, STYLE = "worked-steps", "worked-reading", "worked-style"
PRINTED = f"""<style>
.printed {{ overflow-x: auto; padding: 0 0.2rem 0.3rem; }}
.given {{ display: flex; flex-wrap: wrap; gap: 1rem 2rem; }}
.printed table {{ border-collapse: collapse; font-size: 13px; }}
.printed caption {{ text-align: left; white-space: nowrap; opacity: 0.75; padding-bottom: 0.25rem; }}
.printed th, .printed td {{ padding: 0.15rem 0.55rem; text-align: right; font-family: monospace; }}
.printed th {{ font-weight: 400; opacity: 0.75; }}
.printed td.erratum {{ outline: 2px solid {ERRATUM}; background: {rgba(ERRATUM, 0.12)}; }}
.printed td.erratum span {{ display: block; font-weight: 700; }}
</style>"""


@cache
def worked_example(name: str) -> Example:
    """The worked example of this name, as it opens. Raises KeyError if there is none."""
    return {example.name: example for example in examples()}[name]


def by_hand(*names: str) -> None:
    """A worked example with the numbers it opens with, and the link to change them.

    Where there are several, the reader chooses one.
    """
    name = names[0]
    if len(names) > 1:
        name = st.selectbox(
            "Example",
            names,
            format_func=lambda name: worked_example(name).title,
            key=f"example-of-{name}",
        )
    work_through(worked_example(name))
    page_link(WORKED_PAGE, "Change its numbers →", example=name)


@st.fragment
def work_through(example: Example) -> None:
    """One step at a time: its result beside the idea and the formula, and below it what the notes print."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        panel = stepped(example)
    draw_panel(panel)


def stepped(example: Example, moved: Callable[[int], None] = lambda position: None) -> Panel:
    """The steps of an example, and the choice of formula or code; then what the open step shows.

    moved: is told the number of the open step, counted from 0.
    """
    position = _choose_step(example)
    moved(position)
    step, key = example.steps[position], f"{example.name}-{position}"
    reading: list[Part] = [
        Formula(step.formula),
        *([Formula(step.numbers)] if step.numbers else []),
    ]
    if any(example.code):
        kinds = (AS_FORMULA, AS_CODE)
        chosen = _remembered("Formula or code", kinds, READING, f"reading-{example.name}")
        if chosen == AS_CODE:
            reading = [partial(_code, example, position)]
    values = np.atleast_2d(step.result)
    frame = pd.DataFrame(
        numbers(values),
        index=labels(step.rows, len(values), alone=step.result.ndim < 2),
        columns=labels(step.columns, values.shape[1]),
    )
    return Panel(
        f"result-{key}",
        look_for=plain(step.comment or example.idea),
        picture=partial(_result, step, key),
        saved=None if step.result.ndim == 0 else partial(worked_step, step),
        beside=[
            *([plain(example.idea)] if step.comment else []),
            *reading,
            *_given(example, step),
        ],
        below=[
            partial(_back_and_on, example.name, position, len(example.steps) - 1),
            partial(_notes, example, step),
        ],
        table=Table(frame),
    )


def open_step(name: str, position: int) -> None:
    """Opens a step of an example, counted from 0; the nearest one where there is no such step."""
    last = len(worked_example(name).steps) - 1
    _places()[name] = min(max(position, 0), last)


def _places() -> dict[str, int]:
    places: dict[str, int] = st.session_state.setdefault(PLACES, {})
    return places


def _choose_step(example: Example) -> int:
    """The steps by number and name; returns the open step."""
    name, last = example.name, len(example.steps) - 1
    open_step(name, _places().get(name, 0))
    position, key = _places()[name], f"step-{name}"
    st.session_state[key] = position
    st.selectbox(
        "Step",
        range(last + 1),
        format_func=lambda at: f"{at + 1} of {last + 1}: {example.steps[at].title}",
        key=key,
        label_visibility="collapsed",
        width=240,
        on_change=lambda: open_step(name, st.session_state[key]),
    )
    return position


def _back_and_on(name: str, position: int, last: int) -> None:
    """Below the picture: to the step before and to the next one."""
    with st.container(horizontal=True, gap="small"):
        for label, key, to in (
            ("← Back", "back", position - 1),
            ("Next →", "next", position + 1),
        ):
            st.button(
                label,
                key=f"{key}-{name}",
                type="primary" if to > position else "secondary",
                disabled=not 0 <= to <= last,
                on_click=open_step,
                args=(name, to),
            )


def _remembered(
    label: str,
    options: Sequence[Option],
    memory: str,
    key: str,
    *,
    named: Callable[[Option], str] = str,
) -> Option:
    """One choice for all examples: each shows what was chosen last, or the first where it does not have that.

    Args:
        memory: the name in the session of what was chosen last.
        key: of the control.
        named: what an option is called.
    """
    wanted = st.session_state.get(memory, options[0])
    st.session_state[key] = wanted if wanted in options else options[0]

    def remember() -> None:
        st.session_state[memory] = st.session_state[key]

    st.segmented_control(
        label,
        options,
        required=True,
        format_func=named,
        key=key,
        label_visibility="collapsed",
        on_change=remember,
    )
    chosen: Option = st.session_state[key]
    return chosen


def _code(example: Example, at: int) -> None:
    """The lines of a step in the style that the reader chooses, the chosen cell's number, and a script
    that computes the step alone."""
    if not example.code[at]:
        st.caption(say("step_code_computes"))
        st.latex(example.steps[at].formula)
        return
    step, forms, inputs = example.steps[at], example.code, example.inputs
    offered: list[Style] = list(forms[at])
    wanted: Style = st.session_state.get(STYLE, offered[0])
    key = f"{example.name}-{at}"
    values = np.atleast_2d(step.result)
    names = {
        "row": labels(step.rows, values.shape[0], alone=step.result.ndim < 2),
        "column": labels(step.columns, values.shape[1]),
    }
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        style = _remembered("Style", offered, STYLE, f"code-style-{key}", named=STYLES.__getitem__)
        cell = {
            axis: one_listed(axis.capitalize(), listed, f"code-{axis}-{key}")
            if len(listed) > 1
            else 0
            for axis, listed in names.items()
        }
    if wanted not in offered:
        st.caption(say("step_form_own", wanted_styles=STYLES[wanted]))
    lines_of(
        snippet(forms, inputs, at, style),
        given=given_to(forms, inputs, at, style),
        cell=cell,
        value=float(values[cell["row"], cell["column"]]),
    )
    text = script(forms, inputs, at, style)
    needs = "PyTorch and NumPy" if "import numpy" in text else "PyTorch only"
    script_of(text, say("needs_prints_result", needs=needs))


def _result(step: Step, key: str) -> None:
    """The name of the step above a matrix or a row as a picture, or above a single number."""
    st.markdown(f"**{plain(step.title)}**")
    if step.result.ndim == 0:
        st.metric(plain(step.title), number(float(step.result)), label_visibility="collapsed")
    else:
        scrolling_plot(worked_step(step), f"result-{key}")


def _notes(example: Example, step: Step) -> None:
    """What the notes print for the step and whether it agrees, and the way to their errata."""
    found = sum(erratum.example == example.name for erratum in errata())
    if step.notes is not None and step.differing is not None:
        words = say("notes_print_same")
        if not step.agrees:
            count, size = int(step.differing.sum()), int(np.isfinite(step.notes.values).sum())
            where = "" if size == 1 else f" in {count} of {size} figures"
            words = say("notes_print_another", where=where, value=step.notes.erratum or "")
        st.markdown(words)
        if not step.agrees:
            st.html(printed_table(step))
        st.caption(plain(f"{step.notes.source}: “{step.notes.quotation}”"))
    elif not found:
        return
    about = say("errata_notes", found=found) if found else say("notes")
    link = html_link(WORKED_PAGE, about, {SHOW: ERRATA, "example": example.name})
    st.html(f'<p class="onward">{link}</p>')


_NAMED = re.compile(r"[A-Za-z]+(?:_[A-Za-z0-9])?")  # the letters of a formula


def _given(example: Example, step: Step) -> list[Part]:
    """The matrices that a step's formula names and that are given, side by side."""
    named = _NAMED.findall(step.formula)
    tables = []
    for item in example.inputs:
        if item.value.ndim != 2 or item.symbol not in named:
            continue
        head = "".join(f"<th>{html.escape(one)}</th>" for one in item.columns or ())
        sides = labels(item.rows, len(item.value))
        body = "".join(
            f"<tr><th>{html.escape(side)}</th>{''.join(f'<td>{one}</td>' for one in row)}</tr>"
            for side, row in zip(sides, numbers(item.value), strict=True)
        )
        top = f"<tr><td></td>{head}</tr>" if head else ""
        tables.append(f"<table><caption>{html.escape(item.label)}</caption>{top}{body}</table>")
    shown = f'{PRINTED}<div class="printed given">{"".join(tables)}</div>'
    return [partial(st.html, shown)] if tables else []


def printed_table(step: Step) -> str:
    """The figures as the notes print them; under a wrong one, what the arithmetic gives.

    A cell that the notes leave out is empty. "" where they print nothing for this step.
    """
    if step.notes is None or step.differing is None:
        return ""
    values = np.atleast_2d(step.result)
    figures = np.array(step.notes.figures).reshape(values.shape).tolist()
    differing = step.differing.reshape(values.shape)
    head = labels(step.columns, values.shape[1], alone=step.result.ndim == 0)
    sides = labels(step.rows, len(values), alone=step.result.ndim < 2)
    decimals = np.array(step.notes.decimals).reshape(values.shape).tolist()
    written = numbers(values)
    body = "".join(
        f'<tr><th scope="row">{html.escape(side)}</th>'
        + "".join(
            map(_cell, figures[row], values[row], written[row], decimals[row], differing[row])
        )
        + "</tr>"
        for row, side in enumerate(sides)
    )
    heading = "".join(f'<th scope="col">{html.escape(label)}</th>' for label in head)
    caption = "As printed" + ("" if step.agrees else say("under_arithmetic_gives"))
    return (
        f'{PRINTED}<div class="printed"><table><caption>{caption}</caption>'
        f"<tr><td></td>{heading}</tr>{body}</table></div>"
    )


def _cell(figure: str, value: float, written: str, decimals: int, differs: np.bool_) -> str:
    """One figure; under a wrong one the value, to at least as many decimals as are printed."""
    if not differs:
        return f"<td>{'' if figure == NOTHING else html.escape(figure)}</td>"
    shown = f"{value:.{decimals}f}" if decimals > DECIMALS else written
    return f'<td class="erratum"><s>{html.escape(figure)}</s><span>{html.escape(shown)}</span></td>'


def step_of(erratum: Erratum, example: Example) -> int:
    """The step of its example that an erratum belongs to, counted from 0: the first for one of words."""
    titles = [step.title for step in example.steps]
    return titles.index(erratum.step) if erratum.step else 0
