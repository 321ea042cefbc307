"""The choice of a worked example, kept in the session and in the link."""

from functools import cache

import streamlit as st

from model.worked import examples
from viz.notation.words import sentences_of
from viz.state import url
from viz.views.worked.by_hand import open_step, worked_example

say = sentences_of("worked.choice")

TOPICS = {
    "§1": say("self_attention_hand"),
    "§2": say("why_scores_divided"),
    "§3": "Softmax",
    "§4": "Weighted sum",
    "§5": "Masks",
    "§6": say("ladder_self_attention"),
    "§7": say("heads_shapes_cost"),
    "§8": "Positional encoding",
    "§9": say("layer_batch_norm"),
    "§10": say("feed_forward_shortcuts"),
    "§11": "Tokens, embeddings, windows",
    "§12": "Encoder and decoder",
    "§13": "The output",
    "§14": say("word_sentences"),
}
EXAMPLE, STEP = "example", "step"  # parameters of the link
CHOSEN, WRITTEN = "worked-example", "worked-link"  # session state


@cache
def names_of(topic: str) -> tuple[str, ...]:
    """The names of a topic's examples, in the order of the notes."""
    return tuple(example.name for example in examples() if example.section == topic)


def chosen() -> str:
    """The name of the example that is open."""
    name: str = st.session_state.setdefault(CHOSEN, examples()[0].name)
    return name


def choose(name: str, step: int = 0) -> None:
    """Opens an example at a step, counted from 0."""
    st.session_state[CHOSEN] = name
    open_step(name, step)


def adopt_link() -> None:
    """Opens the example and step of a link that was followed or edited.

    Where there is no such example a sentence says so, and the open one stays.
    """
    link = url.read({EXAMPLE, STEP})
    name, step = link.get(EXAMPLE), link.get(STEP, "1")
    if name is None or (name, step) == st.session_state.get(WRITTEN):
        return
    try:
        worked_example(name)
    except KeyError:
        st.markdown(say("worked_example_choose", name=name[:60]))
        return
    choose(name, int(step) - 1 if step.isascii() and step.isdigit() and len(step) < 4 else 0)


def write_link(step: int) -> None:
    """Writes the open example and its step, counted from 0, into the link."""
    parameters = {EXAMPLE: chosen()} | ({STEP: str(step + 1)} if step else {})
    url.say(parameters, {EXAMPLE, STEP})
    st.session_state[WRITTEN] = (chosen(), parameters.get(STEP, "1"))


def choice() -> None:
    """The example, of all topics."""
    st.session_state["worked-name"] = chosen()
    st.selectbox(
        "Example",
        [name for topic in TOPICS for name in names_of(topic)],
        format_func=_titled,
        key="worked-name",
        label_visibility="collapsed",
        on_change=lambda: choose(st.session_state["worked-name"]),
    )


def _titled(name: str) -> str:
    """An example in the list, behind its topic."""
    example = worked_example(name)
    return f"{TOPICS[example.section]}: {example.title}"
