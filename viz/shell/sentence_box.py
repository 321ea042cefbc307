"""The sentence, in a box of as many lines as it needs, and the examples to start from.

Enter sends the sentence, Shift and Enter begin a new line: `viz.shell.keys` hears them.
"""

from dataclasses import replace

import streamlit as st

from model.loading.registry import models
from model.serving.trace_files import opens_file
from viz.shell.model_notes import looked_up
from viz.state.examples import EXAMPLES, SentenceExample
from viz.state.link import short_link
from viz.state.session import current, first_text, open_view
from viz.state.view import TEXT_LIMIT

_MODELS = {example.view.model for example in EXAMPLES}


def sentence_box() -> None:
    """The sentence of the view."""
    is_recorded = opens_file(current().model)  # it has one text, or none
    st.text_area(
        "Your sentence",
        height="content",
        max_chars=TEXT_LIMIT,
        placeholder="Recorded without a text" if is_recorded else "Type a sentence and press Enter",
        label_visibility="collapsed",
        disabled=is_recorded,
        **first_text(),
    )


def choose_example() -> None:
    """The examples: those of the open model first."""
    st.selectbox(
        "Examples",
        _examples(current().model),
        index=None,
        key="example",
        format_func=lambda example: f"{example.title}: {example.view.text}",
        placeholder="Examples",
        label_visibility="collapsed",
        width=120,
        on_change=_open_chosen_example,
    )


def say_link() -> None:
    """Says what a link to this view leaves out, where the sentence is too long for one."""
    if left_out := short_link(current())[1]:
        st.caption(
            f"Too long for a link, which leaves out: {', '.join(left_out)}. Keep a copy elsewhere: "
            "it stays here only while this page is open."
        )


def open_example(example: SentenceExample) -> None:
    """Opens an example where the page stands."""
    open_view(replace(example.view, show=current().show))


def _examples(model: str) -> list[SentenceExample]:
    """The examples of models that can be opened."""
    here = {name for name in _MODELS if name in models or looked_up(name)[0]}
    listed = [example for example in EXAMPLES if example.view.model in here]
    return sorted(listed, key=lambda example: example.view.model != model)


def _open_chosen_example() -> None:
    example: SentenceExample | None = st.session_state["example"]
    if example is not None:
        open_example(example)
        st.session_state["example"] = None
