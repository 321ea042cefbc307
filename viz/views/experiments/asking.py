"""The frame of one experiment: its question, the guess, and the picture that moves to the answer."""

import html
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import streamlit as st

from viz.notation.markdown import plain
from viz.shell.panel import Panel, PanelView
from viz.state.link import to_link
from viz.state.look import Look
from viz.state.navigation import HOME, html_link
from viz.state.session import current
from viz.views.experiments.experiments import FILE, STYLE, Experiment
from viz.views.experiments.guesses import QUESTIONS, Scene

ALL = "All"  # all cards, as links say it


def question(one: Experiment) -> None:
    """The way back to all cards, and the question."""
    back = html_link(FILE, "← All experiments", {"show": ALL})
    st.html(
        f'{STYLE}<p class="onward">{back}</p><h2 class="asked">{html.escape(one.question)}</h2>'
    )


def asked(one: Experiment, look: Look) -> Panel:
    """The guess, and what the visitor's own run says before and after it."""
    guess = st.segmented_control(
        "Your guess", one.choices, key=f"guess-{one.show}", label_visibility="collapsed"
    )
    scene = QUESTIONS[one.show](look, guess is not None)
    if guess is None or scene.verdict is None:
        return scene.panel
    words = partial(_verdict, one, one.choices.index(guess), scene)
    return replace(scene.panel, beside=[words, *scene.panel.beside])


def _verdict(one: Experiment, guess: int, scene: Scene) -> None:
    """What the run says, with its numbers, beside what was guessed."""
    verdict = scene.verdict
    if verdict is None:
        return
    said = "Right" if guess == verdict.right else "No"
    before, after = map(html.escape, verdict.moved)
    st.html(
        f'<div class="verdict"><p><b>{said}: “{html.escape(one.choices[verdict.right])}”.</b></p>'
        f'<p class="moved"><span>{before} →</span> {after}</p>'
        f"<small>{html.escape(verdict.unit)}</small></div>"
    )
    st.markdown(verdict.words)
    if scene.change.changes:
        view = to_link(replace(current(), show="", intervention=scene.change))
        st.html(
            f'<p class="onward">{html_link(HOME, "Explore the model with this change →", view)}</p>'
        )


def or_said(one: Experiment, view: PanelView) -> Callable[..., Panel]:
    """The view; where it cannot show this sentence or model, a sentence that says why, with the way to one
    that shows it."""

    def shown(*arguments: object) -> Panel:
        try:
            return view(*arguments)
        except ValueError as refusal:
            return Panel("experiment-not-here", below=[partial(_elsewhere, one, str(refusal))])

    return shown


def _elsewhere(one: Experiment, why: str) -> None:
    st.markdown(plain(why))
    if one.example is not None:
        words = f"See it on the example “{one.example.view.text}” →"
        st.html(f'<p class="onward">{html_link(FILE, words, one.on_the_example)}</p>')
