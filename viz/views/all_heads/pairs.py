"""Which heads look from this token to that one; both are picked by a click."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from model.analysis.heads.ranking import looking
from model.trace.records import Token
from viz.notation.head_formulas import PAIR
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token, plain
from viz.notation.superlatives import led_by
from viz.shell.pictures import look_for
from viz.state.look import Look
from viz.state.session import change_view, control, current, write_link
from viz.views.all_heads.choice import (
    MAP,
    beside_chosen_head,
    choose_family,
    list_of_heads,
    map_of_heads,
    map_or_list,
    name_of,
)

CLICKABLE = 64  # up to so many tokens each has a button; beyond that a list is quicker


def from_word_to_word(seen: Look) -> None:
    """Two tokens, and every head's weight from the one to the other."""
    pictures = st.container()
    family = choose_family(seen)
    queries, keys = family.queries(seen.trace), family.keys(seen.trace)
    query, key = pick_pair(queries, keys)
    found, heads = looking(seen.trace, family, query, key), family.heads(seen.trace)
    one, other = bold_token(queries[query].text, query), bold_token(keys[key].text, key)
    first = seen.trace.find(heads[0][0])
    if first.mask is not None and not first.mask[query, key]:
        st.markdown(
            f"{one} may not attend to {other}: the mask forbids it, so every weight is 0. Choose a "
            "key token further left."
        )
    else:
        leading, several = led_by([name_of(seen, head) for head in heads], found, decimals=3)
        put, each = ("put", " each") if several else ("puts", "")
        look_for(
            f"{leading} {put} the largest weight from {one} on {other}: {found.max():.3f}{each}. "
            f"The mean of all {len(heads)} heads is {found.mean():.3f}."
        )
    with pictures, beside_chosen_head(seen):
        if map_or_list("pairs") == MAP:
            map_of_heads(
                seen,
                family,
                found,
                quantity="weight",
                title="weight",
                words="weight {:.4f}".format,
                key=f"all-heads-pairs-{query}-{key}",
                alt=f"Weight of every head; the highest is {found.max():.3f}.",
            )
        else:
            order = sorted(range(len(heads)), key=lambda place: -found[place])
            ranked = [heads[place] for place in order]
            list_of_heads(
                seen, ranked, {"weight": found[order]}, f"all-heads-pairs-list-{query}-{key}"
            )
        st.latex(PAIR)


def pick_pair(queries: Sequence[Token], keys: Sequence[Token]) -> tuple[int, int]:
    """The positions of both tokens; they are the query and key of the view and join its link."""
    view = current()
    query, key = min(view.query, len(queries) - 1), min(view.key, len(keys) - 1)
    change_view(replace(view, query=query, key=key))
    _row("Query token", queries, "query")
    _row("Key token", keys, "key")
    write_link()
    return query, key


def _row(label: str, tokens: Sequence[Token], field: str) -> None:
    labels = numbered_labels((token.text for token in tokens), 24)
    places, here = range(len(tokens)), control(field, "pair")
    if len(tokens) > CLICKABLE:
        st.selectbox(label, places, format_func=labels.__getitem__, **here)
    else:
        st.pills(label, places, required=True, format_func=lambda at: plain(labels[at]), **here)
