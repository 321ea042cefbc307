"""Experiments: cards with a question and guesses; a guess opens what the model answers, and the way there."""

import html
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import streamlit as st

from viz.shell import page
from viz.state.navigation import html_link, read_address
from viz.views import experiments as room
from viz.views.experiments.experiments import Experiment, experiments

page.open_page("pages/experiments.py")
st.html(Path(room.__file__).with_name("experiments.css"))


def card(experiment: Experiment) -> str:
    """HTML of an experiment: its question with a guess in each line, which opens the answer."""
    answer = html.escape(experiment.answer)
    guesses = "".join(
        f"<details><summary>{html.escape(choice)}</summary>"
        f"<p><b>{'Yes.' if number == experiment.right else 'No.'}</b> {answer}</p></details>"
        for number, choice in enumerate(experiment.choices)
    )
    setting = f"<small>{html.escape(experiment.setting)}</small>" if experiment.setting else ""
    opened, parameters = read_address(experiment.link)
    return (
        f"<article><header>{experiment.picture}<div><h3>{html.escape(experiment.title)}</h3>"
        f"<p>{html.escape(experiment.question)}</p></div></header>"
        f"{setting}{guesses}{html_link(opened.file, 'See it →', parameters)}</article>"
    )


for topic, listed in groupby(experiments(), attrgetter("topic")):
    st.html(
        f'<section class="experiments"><h2>{html.escape(topic)}</h2>'
        f"<div>{''.join(map(card, listed))}</div></section>"
    )
