"""The frame of one experiment: its question, the guess, and the picture that moves to the answer."""

import html
from dataclasses import replace
from functools import partial

import streamlit as st

from model.trace.unproven import NotShownError
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.shell.panel import Panel, PanelView, Part, below_controls
from viz.state.link import to_link
from viz.state.look import Look
from viz.state.navigation import HOME, html_link
from viz.views.experiments.examples import seen, seen_in
from viz.views.experiments.experiments import FILE, STYLE, Experiment
from viz.views.experiments.guesses import QUESTIONS, TrialResult

say = sentences_of("experiments.asking")

ALL = "All"  # all cards, as links say it


def question(one: Experiment) -> None:
    """The way back to all cards, and the question."""
    back = html_link(FILE, "← All experiments", {"show": ALL})
    st.html(
        f'{STYLE}<p class="onward">{back}</p><h2 class="asked">{html.escape(one.question)}</h2>'
    )


def asked(one: Experiment, look: Look) -> Panel:
    """The guess, and what the visitor's own run says before and after it; the example's where that cannot."""
    guess = st.segmented_control(
        "Your guess", one.choices, key=f"guess-{one.show}", label_visibility="collapsed"
    )
    run, ask, answered = seen(look), QUESTIONS[one.show], guess is not None
    try:
        trial = ask(run, answered)
    except NotShownError as refusal:
        if one.example is None:
            raise
        run = seen_in(one.example)
        with below_controls():
            st.markdown(
                say("example_reads", refusal=str(refusal), run=run.title, request=run.request.text)
            )
        trial = ask(run, answered)
    if guess is None or trial.verdict is None:
        return trial.panel
    _verdict(one, one.choices.index(guess), trial.verdict)
    beside: list[Part] = [trial.verdict.words]
    if trial.change.changes:
        changed = to_link(replace(run.view, show="", intervention=trial.change))
        link = html_link(HOME, say("explore_model_change"), changed)
        beside.append(partial(st.html, f'<p class="onward">{link}</p>'))
    return replace(trial.panel, beside=[*beside, *trial.panel.beside])


def _verdict(one: Experiment, guess: int, verdict: TrialResult) -> None:
    """What the run says, with its numbers, beside what was guessed."""
    right = html.escape(one.choices[verdict.right])
    said = "Right." if guess == verdict.right else f"Not so: {right[0].lower()}{right[1:]}."
    before, after = map(html.escape, verdict.moved)
    st.html(
        f'<p class="verdict"><b>{said}</b> '
        f'<span class="moved"><span>{before} →</span> {after}</span> '
        f"<small>{html.escape(verdict.unit)}</small></p>",
        width="content",
    )


def or_said(view: PanelView) -> PanelView:
    """The view; where it cannot show this sentence or model, a sentence that says why."""

    def shown(*arguments: object) -> Panel:
        try:
            return view(*arguments)
        except NotShownError as refusal:
            return Panel("experiment-not-here", below=[plain(str(refusal))])

    return shown
