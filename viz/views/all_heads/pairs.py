"""Which heads look from this token to that one."""

import pandas as pd
import streamlit as st

from model.analysis.heads.ranking import looking
from viz.notation.head_formulas import PAIR
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.superlatives import led_by
from viz.state.look import Look
from viz.views.all_heads.choice import choose_family, chosen_head, listed, name_of
from viz.views.all_heads.map import MAP, map_of_heads, map_or_list
from viz.views.all_heads.token_pair import pick_pair


def from_word_to_word(seen: Look) -> None:
    """Two tokens, and every head's weight from the one to the other."""
    family = choose_family(seen)
    queries, keys = family.queries(seen.trace), family.keys(seen.trace)
    query, key = pick_pair(queries, keys)
    found, heads = looking(seen.trace, family, query, key), family.heads(seen.trace)
    order = sorted(range(len(heads)), key=lambda place: -found[place])
    names = [
        f"**{plain(token_label(token.text))}** (position {at})"
        for token, at in ((queries[query], query), (keys[key], key))
    ]
    first = seen.trace.find(heads[0][0])
    if first.mask is not None and not first.mask[query, key]:
        st.markdown(
            f"{names[0]} may not look at {names[1]}: the mask forbids it, so every weight is 0. "
            "Click a token further left below “Is looked at”."
        )
    else:
        leading, several = led_by([name_of(seen, head) for head in heads], found, decimals=3)
        largest = f"put the largest weight there: {found.max():.3f} each"
        if not several:
            largest = f"puts the largest weight there: {found.max():.3f}"
        st.markdown(
            f"**What to look for.** From {names[0]} to {names[1]}, {leading} {largest}. "
            f"The mean of all {len(heads)} heads is {found.mean():.3f}."
        )
    picture, one = st.columns([3, 2], gap="large")
    with picture:
        if map_or_list("pairs") == MAP:
            map_of_heads(
                seen,
                family,
                found,
                quantity="weight",
                title="weight",
                words="weight {:.4f}".format,
                key=f"all-heads-pairs-{query}-{key}",
                alt=f"Weight of every head; the highest is {found[order[0]]:.3f}.",
            )
        else:
            ranked = [heads[place] for place in order]
            frame = pd.DataFrame(
                {"head": [name_of(seen, head) for head in ranked], "weight": found[order]}
            )
            listed(frame, ranked, f"all-heads-pairs-list-{query}-{key}")
        st.latex(PAIR)
    with one:
        chosen_head(seen, family)
