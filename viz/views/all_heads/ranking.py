"""Heads ranked by what they look at, so that nobody has to open all of them."""

from dataclasses import replace

import streamlit as st

from model.analysis.heads.labels import SEVERAL
from model.analysis.heads.ranking import STATISTICS, Scores, Statistic
from model.analysis.heads.statistics import NOTHING_COMES_BACK, Family
from viz.notation.markdown import plain
from viz.notation.numbers import NAMED, led_by
from viz.shell.pictures import of_all_pairs
from viz.state.look import Look
from viz.state.navigation import view_link
from viz.state.session import current
from viz.views.all_heads.choice import (
    LIST,
    beside_chosen_head,
    choose_family,
    list_of_heads,
    map_of_heads,
    map_or_list,
    name_of,
)
from viz.views.all_heads.grid import SHARES, scores_of

BY_NAME = {statistic.name: statistic for statistic in STATISTICS}
KEY = "all-heads-statistic"
SAID_TWICE = "cat dog mat hat cup cat dog mat hat cup cat"


@of_all_pairs
def ranking(seen: Look) -> None:
    """One statistic at a time: what it means, the heads by it, and the chosen head."""
    with beside_chosen_head(seen):
        picture = st.container()
        family = choose_family(seen)
        known = scores_of(seen.request, family)
        statistic = _statistic(known)
        kind = map_or_list("ranking", first=LIST)
        st.markdown(
            f"**{statistic.title}.** {statistic.meaning} **What to look for.** "
            f"{_highest(seen, known, statistic)} {_called(seen, known, statistic)}"
        )
        _left_out(seen, known)
        with picture:
            if kind == LIST:
                _list(seen, known, statistic)
            else:
                _map(seen, family, known, statistic)


def _highest(seen: Look, known: Scores, statistic: Statistic) -> str:
    values = known.values[statistic.name]
    names = [name_of(seen, head) for head in known.heads]
    leading, several = led_by(names, values, decimals=3)
    unit = "" if statistic in SHARES else f" {statistic.unit}"
    return f"Highest here: {leading} with {values.max():.3f}{unit}{' each' if several else ''}."


def _called(seen: Look, known: Scores, statistic: Statistic) -> str:
    """Which heads may be called induction heads on this text; else why none may."""
    if statistic.name != "induction":
        return ""
    called = [name_of(seen, head) for head, _ in known.called(statistic.name)]
    if called:
        more = f" and {len(called) - NAMED} more" if len(called) > NAMED else ""
        return f"Induction heads on this text: {', '.join(called[:NAMED])}{more}."
    rows = known.evidence[statistic.name][0].rows
    if rows < SEVERAL:
        return (
            f"Only {rows} of this text's rows count here, too few to call a head an induction head."
        )
    return (
        "None is an induction head here: too few rows have more than half of their weight there, "
        "or other rows attend to the same tokens too."
    )


def _statistic(known: Scores) -> Statistic:
    """The statistic to rank by, among those that this text has rows for."""
    present = [one.name for one in STATISTICS if one.name in known.values]
    if st.session_state.get(KEY) not in present:
        st.session_state[KEY] = present[0]
    name = st.segmented_control(
        "Rank by", present, required=True, format_func=lambda one: BY_NAME[one].title, key=KEY
    )
    return BY_NAME[name or present[0]]


def _list(seen: Look, known: Scores, statistic: Statistic) -> None:
    order = [head for head, _ in known.ranked(statistic.name)]
    places = [known.heads.index(head) for head in order]
    first = [statistic, *(one for one in STATISTICS if one is not statistic)]
    list_of_heads(
        seen,
        order,
        {one.title: known.values[one.name][places] for one in first if one.name in known.values},
        f"all-heads-ranking-{statistic.name}",
        helps={one.title: f"{one.meaning} ({one.unit})" for one in STATISTICS},
    )
    st.caption(
        "Each value is computed from all the rows of weights. Click a column's name to sort by it, "
        "or the box before a row to open that head."
    )


def _map(seen: Look, family: Family, known: Scores, statistic: Statistic) -> None:
    values = known.values[statistic.name]
    map_of_heads(
        seen,
        family,
        values,
        quantity="weight" if statistic in SHARES else "score",
        title=statistic.unit,
        words=lambda value: f"{statistic.title.lower()}: {value:.4f}",
        key=f"all-heads-ranking-map-{statistic.name}",
        alt=f"{statistic.title} of every head; highest {values.max():.3f}.",
    )
    st.caption("Rows are layers, columns are heads. Click a cell to see that head.")


def _left_out(seen: Look, known: Scores) -> None:
    """Which statistics this text cannot give, and why."""
    for reason in dict.fromkeys(known.refused.values()):
        titles = [BY_NAME[name].title for name, why in known.refused.items() if why == reason]
        st.caption(f"Not ranked here: {', '.join(titles)}. {plain(reason)}")
    if _wants_a_list(known) and not seen.model.new_words(SAID_TWICE):
        view = replace(current(), text=SAID_TWICE, target=None)
        view_link("pages/all_heads.py", "Rank them on a repeated list of words →", view)


def _wants_a_list(known: Scores) -> bool:
    """Whether a text with more repeated tokens would show which heads are induction heads."""
    if "induction" in known.refused:
        return known.refused["induction"] == NOTHING_COMES_BACK
    return known.evidence["induction"][0].rows < SEVERAL
