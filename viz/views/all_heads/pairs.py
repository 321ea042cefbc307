"""Which heads look from this token to that one; both are picked by a click."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from model.analysis.heads.ranking import looking
from model.analysis.heads.statistics import Family
from model.trace.blocks import of_query
from model.trace.records import Token
from viz.notation.head_formulas import PAIR
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import led_by
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

Weights = NDArray[np.float64]  # (head of a family,): what each puts from the one token on the other
CLICKABLE = 64  # up to so many tokens each has a button; beyond that a list is quicker


def from_word_to_word(seen: Look) -> None:
    """Two tokens, and every head's weight from the one to the other."""
    with beside_chosen_head(seen):
        picture = st.container()
        family = choose_family(seen)
        queries, keys = family.queries(seen.trace), family.keys(seen.trace)
        query, key = pick_pair(queries, keys)
        found, kind = looking(seen.trace, family, query, key), map_or_list("pairs")
        with picture:
            (_map if kind == MAP else _list)(seen, family, found, f"{query}-{key}")
        one, other = bold_token(queries[query].text, query), bold_token(keys[key].text, key)
        if _may_attend(seen, family, query, key):
            look_for(_largest(seen, family, found, f"from {one} on {other}"))
        else:
            st.markdown(
                f"{one} may not attend to {other}: the mask forbids it, so every weight is 0. "
                "Choose a key token further left."
            )
        st.latex(PAIR)


def _may_attend(seen: Look, family: Family, query: int, key: int) -> bool:
    mask = of_query(family.members(seen.trace)[0], query).mask
    return mask is None or bool(mask[0, key])


def _largest(seen: Look, family: Family, found: Weights, where: str) -> str:
    """Which heads put the largest weight, and the mean of all."""
    names = [name_of(seen, head) for head in family.heads(seen.trace)]
    leading, several = led_by(names, found, decimals=3)
    put, each = ("put", " each") if several else ("puts", "")
    return (
        f"{leading} {put} the largest weight {where}: {found.max():.3f}{each}. "
        f"The mean of all {len(names)} heads is {found.mean():.3f}."
    )


def _map(seen: Look, family: Family, found: Weights, pair: str) -> None:
    map_of_heads(
        seen,
        family,
        found,
        quantity="weight",
        title="weight",
        words="weight {:.4f}".format,
        key=f"all-heads-pairs-{pair}",
        alt=f"Weight of every head; the highest is {found.max():.3f}.",
    )


def _list(seen: Look, family: Family, found: Weights, pair: str) -> None:
    heads = family.heads(seen.trace)
    order = sorted(range(len(heads)), key=lambda place: -found[place])
    ranked = [heads[place] for place in order]
    list_of_heads(seen, ranked, {"weight": found[order]}, f"all-heads-pairs-list-{pair}")


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
