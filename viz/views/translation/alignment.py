"""The alignment of a translation: lines between two sentences, and the gold beneath them."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from model.trace.arrays import Array
from model.training.alignment import (
    Links,
    crossings,
    gold_phrase,
    links_of,
    share_on_gold,
    shares_on_gold,
    source_words,
    target_words,
)
from viz.figures.alignment import alignment
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import counted
from viz.shell.pictures import chart, checked, table
from viz.state.look import Look
from viz.state.session import current
from viz.views.translation.formulas import CROSS, ON_GOLD
from viz.views.translation.head import choose_cross_head
from viz.views.translation.run import whose_french, with_target
from viz.views.translation.sentences import look_for
from viz.views.translation.steps import NAMES

_WORD = "encoder-alignment-word"
_ALL = -1


def show_alignment(seen: Look) -> None:
    """The page's second view, for the model's own French or the reader's."""
    look = with_target(seen, current().target)
    trace = look.trace
    source, target = source_words(trace), target_words(trace)
    seen_here = look_for(look.request.text, look.request.model) if current().target is None else ""
    st.markdown(
        "**What to look for.** "
        + (seen_here or "Do lines cross? There the two languages put the words in another order.")
    )
    whose_french()
    links = links_of(trace)
    picture, words = st.columns([3, 2], gap="large")
    with words:
        attention, head = choose_cross_head(trace, links)
        weights = attention.weights(head)[: len(target)]
        chosen = _word(target)
        _shares(weights, links, source, target)
        _grammar(source, target)
        st.latex(CROSS)
        if links is not None:
            st.latex(ON_GOLD)
    with picture:
        chart(
            alignment(
                weights, source=source, target=target, gold=links, chosen=chosen, names=NAMES
            ),
            "encoder-alignment",
        )
        st.caption(
            "A word's lines are the row of the query that writes it, which stands one word earlier. "
            "Each row sums to 1; weights under 0.02 are not drawn."
        )
        table(_frame(weights, links, source, target), "encoder-alignment")
    checked(look)


def _word(target: Sequence[str]) -> int | None:
    """The word whose lines stand out; None: all."""
    options = [_ALL, *range(len(target))]
    if st.session_state.get(_WORD) not in options:
        st.session_state[_WORD] = _ALL
    chosen: int = st.selectbox(
        "Show the lines of",
        options,
        format_func=lambda at: "all words" if at == _ALL else f"{token_label(target[at])} ({at})",
        key=_WORD,
    )
    return None if chosen == _ALL else chosen


def _shares(
    weights: Array, links: Links | None, source: Sequence[str], target: Sequence[str]
) -> None:
    """How much of the weight lies on gold, word by word for those that changed places."""
    mean = None if links is None else share_on_gold(weights, links)
    if links is None or mean is None:
        return
    shares = shares_on_gold(weights, links)
    count = sum(share is not None for share in shares)
    st.markdown(
        f"On the gold words lies **{mean:.4f}** of this head's weight, the mean of {counted(count, 'word')}."
    )
    for one, other in crossings(links):
        said = " ".join(source[at] for at in sorted({*links[one], *links[other]}))
        st.markdown(
            plain(
                f"“{said}” becomes “{target[one]} {target[other]}”: the gold lines cross. On gold: "
                f"“{target[one]}” {shares[one] or 0:.4f}, “{target[other]}” {shares[other] or 0:.4f}."
            )
        )


def _grammar(source: tuple[str, ...], target: tuple[str, ...]) -> None:
    """What the grammar says where that is not what is shown."""
    phrase = gold_phrase(source)
    if phrase is None:
        st.caption(
            "The grammar has no such sentence, so there is no gold to lay beneath the lines."
        )
    elif phrase.french != target:
        st.caption(
            plain(
                f"The grammar says “{' '.join(phrase.french)}”. The words that both have keep "
                "their gold."
            )
        )


def _frame(
    weights: Array, links: Links | None, source: Sequence[str], target: Sequence[str]
) -> pd.DataFrame:
    """For each target word the source word that is read most, and the gold."""
    most = weights.argmax(-1)
    columns: dict[str, object] = {
        "word": [token_label(word) for word in target],
        "reads most": [token_label(source[at]) for at in most],
        "weight": weights[np.arange(len(target)), most],
    }
    if links is not None:
        columns["gold"] = [" ".join(source[at] for at in link) or "—" for link in links]
        columns["weight on gold"] = shares_on_gold(weights, links)
    return pd.DataFrame(columns)
