"""Trainings that were shipped: one head along the checkpoints, and untrained beside trained."""

import numpy as np
import pandas as pd
import streamlit as st

from model.training.checkpoints import Film
from viz.figures.heatmap import weights_of_head
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import difference
from viz.shell.pictures import chart, table
from viz.state.examples import EXAMPLES
from viz.views.training.choice import Seen, seen_training
from viz.views.training.film import film, message
from viz.views.training.film.message import PATTERN_NAMES, measures, patterns
from viz.views.training.formulas import BEFORE, MOVED, SHARPEST, STRIPE
from viz.views.training.shared import archive

ROLES = {
    "induction": "In a list said twice the framed cells are what followed each token the first time.",
    "previous_token": "The induction head of the next layer needs this one: on lists said twice both "
    "form in the same steps.",
    "alignment": "The token of a row writes the next French word. Where the two languages order words "
    "otherwise, the cells should leave the diagonal.",
}


def watch() -> None:
    """The slider over the checkpoints."""
    seen = seen_training()
    if seen is None:
        return
    st.markdown(f"**What to look for.** {_look_for(seen)}")
    say_what_is_cut(seen.film)
    movement = archive().movement(seen.course)
    film(
        message(seen.course, seen.film, movement, place=seen.place, head=seen.head),
        mount="training-film",
    )
    checked(seen.film)
    formulas(seen)


def beside() -> None:
    """The same head at step 0 and at the end, on the same scale."""
    seen = seen_training()
    if seen is None:
        return
    st.markdown(
        "**What to look for.** Left, a head of the model as it was drawn at random. Right, the same "
        "head after training. Both have one scale, 0 to 1. The numbers below say what moved."
    )
    say_what_is_cut(seen.film)
    steps = seen.film.steps
    queries = [token.text for token in seen.film.queries(seen.place)]
    keys = [token.text for token in seen.film.keys(seen.place)]
    numbers = measures(seen.film, seen.place, seen.head)
    for column, at in zip(st.columns(2, gap="large"), (0, -1), strict=True):
        reading = seen.film.readings[at]
        attention = reading.attention[seen.place]
        with column:
            which = "untrained" if at == 0 else "trained"
            st.markdown(f"**Head {seen.name}, {which}: step {steps[at]:,}**")
            chart(
                weights_of_head(attention, seen.head, queries=queries, keys=keys),
                f"training-beside-{which}",
            )
            for one in numbers:
                st.caption(f"{one.name}: {one.values[at]:.4f}")
            labels = [f"{n} {token_label(key)}" for n, key in enumerate(keys)]
            frame = pd.DataFrame(np.asarray(attention.weights(seen.head)), columns=labels)
            frame.insert(
                0, "query", [f"{n} {token_label(query)}" for n, query in enumerate(queries)]
            )
            table(frame, f"training-beside-{which}")
    checked(seen.film)


def formulas(seen: Seen) -> None:
    """The formulas of the numbers beside the film."""
    found = {pattern.name for pattern in patterns(seen.film, seen.place)}
    shown = [
        (
            "What followed the same token earlier; R: the rows with such a key",
            STRIPE,
            "induction" in found,
        ),
        ("The token before", BEFORE, "previous_token" in found),
        ("Largest weight of a row", SHARPEST, True),
        ("How far weights moved", MOVED, True),
    ]
    kept = [(name, formula) for name, formula, holds in shown if holds]
    for column, (name, formula) in zip(st.columns(len(kept)), kept, strict=True):
        column.caption(name)
        column.latex(formula)


def say_what_is_cut(shown: Film) -> None:
    """Says how much of a long text is left out; one place, whether there is something to say or not."""
    with st.container():
        if shown.unread:
            read = len(shown.last.tokens)
            st.warning(f"The first {read:,} tokens are read; {shown.unread:,} more are left out.")


def checked(shown: Film) -> None:
    """The check line."""
    st.caption(
        f"Check: at all {len(shown.steps)} checkpoints, attention outputs and norms recomputed from "
        f"what was recorded differ from the model's own by at most {difference(shown.check)}."
    )


def _look_for(seen: Seen) -> str:
    for example in EXAMPLES:
        where = (example.model, example.text, example.place, example.head)
        if where == (seen.course.key, seen.film.text, seen.place, seen.head):
            return plain(f"Press Play. {example.look_for}")
    said = f"Press Play, or move the slider. {_moved(seen)}"
    for what in seen.course.heads:
        if what in ROLES and seen.course.found(what) == (seen.place, seen.head):
            said += f" {ROLES[what]}"
    return plain(said)


def _moved(seen: Seen) -> str:
    """How the number that tells most of this head goes from the first checkpoint to the last."""
    numbers = measures(seen.film, seen.place, seen.head)
    roles = [
        what for what in seen.course.heads if seen.course.found(what) == (seen.place, seen.head)
    ]
    named = [f"Mean {PATTERN_NAMES[what]}" for what in roles if what in PATTERN_NAMES]
    one = next((one for one in numbers if one.name in named), numbers[-1])
    return f"{one.name}: {one.values[0]:.2f} at the first checkpoint, {one.values[-1]:.2f} at the last."
