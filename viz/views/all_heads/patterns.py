"""What heads attend to: the grid of all of them, the ranking by one statistic, and every head's weight from
one token to another."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import streamlit as st

from model.analysis.heads.labels import SEVERAL
from model.analysis.heads.ranking import STATISTICS, Scores, Statistic, looking, scores
from model.analysis.heads.statistics import NOTHING_COMES_BACK, Family, Tiles, tiles
from model.nn.places import Head
from model.profile.battery import KINDS
from model.profile.shipped import made, profile_of, shipped_profiles
from model.serving.engine import Request
from model.trace.blocks import of_query
from model.trace.records import Token
from viz.figures.head_tiles import head_grid
from viz.notation.head_formulas import PAIR
from viz.notation.head_labels import MEANINGS, TITLES, evidence_of, given_labels, labels_by_head
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import NAMED, led_by
from viz.shell.panel import Caption, Formula, Panel, Part, Table
from viz.shell.pictures import checked, of_all_pairs
from viz.state.look import Look, traced
from viz.state.navigation import view_link
from viz.state.session import change_view, control, current, write_link
from viz.views.all_heads.choice import (
    LIST,
    MAP,
    cell_of,
    choose_family,
    list_of_heads,
    map_of_heads,
    map_or_list,
    name_of,
    names_of,
    of_heads,
)

SHARES = tuple(one for one in STATISTICS if one.unit.startswith("weight"))  # comparable: 0 to 1
LISTED = 8  # heads of a label, in words


@lru_cache(maxsize=16)
def _tiles(request: Request, family: Family) -> Tiles:
    return tiles(traced(request), family)


@lru_cache(maxsize=64)
def _scores(request: Request, family: Family) -> Scores:
    return scores(traced(request), family)


@of_all_pairs
def grid(look: Look) -> Panel:
    """Every head as a small tile; a click on a tile shows it large."""
    family = choose_family(look)
    weights, known = _tiles(look.request, family), _scores(look.request, family)
    layers, names = names_of(family, look), [name_of(look, head) for head in known.heads]
    marked, labels, evidence = _choose_label(look, family)
    keys = len(family.members(look.trace)[0].vectors[1])
    groups = keys if keys < weights.weights.shape[1] else 0
    figure = head_grid(
        weights,
        chosen=cell_of(look, family),
        words=[
            f"{name}<br>{_role(known, head)}"
            + "".join(f"<br>label: {label}" for label in labels.get(head, ()))
            for name, head in zip(names, known.heads, strict=True)
        ],
        groups=groups,
        marked=[(layers.index(place), head) for place, head in marked],
    )
    columns = {one.title: known.values[one.name] for one in SHARES if one.name in known.values}
    panel = Panel(
        "all-heads-grid",
        look_for=_look_for(look, known),
        picture=figure,
        alt=f"Grid of {len(names)} heads; rows are layers, columns are heads.",
        below=[
            Caption(f"{_how_to_read(weights, groups)} Click a tile to enlarge it."),
            *evidence,
            partial(checked, look),
        ],
        table=Table({"head": names, **columns}),
    )
    return of_heads(panel, look, known.heads)


def _look_for(look: Look, known: Scores) -> str:
    """The shapes that are worth finding, each with a head that may be called so on this text."""
    shapes = {
        "previous": "a line just below the diagonal is a previous-token head",
        "next": "a line just above the diagonal is a next-token head",
        "first": "a strong first column means that most tokens put their weight on the first one",
        "induction": "a head that attends to what followed the same token earlier is an induction head",
    }
    sentence = "; ".join(
        f"{shape} ({name_of(look, called[0][0])}: {called[0][1]:.2f})"
        for name, shape in shapes.items()
        if (called := known.called(name))
    )
    if not sentence:
        return (
            "Compare the tiles: the heads of one layer read the same vectors, each in its own way."
        )
    return f"{sentence[0].upper()}{sentence[1:]}."


def _role(known: Scores, head: Head) -> str:
    """What a head may be called on this text: of several names the one with the highest share."""
    place = known.heads.index(head)
    roles = [
        one
        for one in SHARES
        if one.name in known.evidence and known.evidence[one.name][place].holds
    ]
    if not roles:
        return "click to see it large"
    best = max(roles, key=lambda one: known.values[one.name][place])
    return f"{best.title.lower()}: {known.values[best.name][place]:.2f}"


def _how_to_read(weights: Tiles, groups: int) -> str:
    """groups: heads of keys and values, where heads share them."""
    queries, keys = weights.block
    words = (
        "In each tile rows are queries and columns are keys. All tiles share one scale from 0 to "
        "1. Hatched cells are masked."
    )
    if max(queries, keys) > 1:
        words += (
            f" The text is long, so each cell shows the largest weight of a block of {queries} "
            f"queries × {keys} keys."
        )
    if groups:
        words += (
            f" Frames of one colour: heads that share one of the {groups} heads of keys and values. Their "
            "patterns differ all the same, because each has queries of its own."
        )
    return words


def _choose_label(
    look: Look, family: Family
) -> tuple[list[Head], Mapping[Head, list[str]], list[Part]]:
    """The heads with the label that is chosen, the labels of each head, and what is said of them. Nothing of
    weights whose profile does not ship."""
    profile = profile_of(look.model)
    if profile is None:
        return [], {}, []
    given = given_labels(profile)
    given = given[given["layer"].isin(names_of(family, look))]
    counts = given["label"].value_counts()
    label = st.selectbox(
        "Heads with a label",
        [kind.name for kind in KINDS if kind.name in counts],
        index=None,
        placeholder="No head is framed",
        format_func=lambda one: f"{TITLES[one]} ({counts[one]})",
        key=f"all-heads-label-{look.model.name}-{family.title}",
    )
    text = made(shipped_profiles()[look.model.name]).text
    meaning = Caption(
        "A label is of the unchanged model, not of this sentence. Its score is a mean weight on prompts "
        "whose structure is known, its control the same where the reason for it is missing; “over the text” "
        f"is the mean weight over {profile.sums.tokens:,} tokens of {plain(text)}. “Without it” is what the "
        "pass without the head changes: the logit of the right next token, or, in a model without words, "
        "the last vectors, as a share of their length. Where a head looks does not show what it does."
    )
    if label is None:
        return [], labels_by_head(profile), [meaning]
    mine = given[given["label"] == label]
    heads = list(zip(mine["layer"], mine["head"], strict=True))
    scored = [
        f"{name_of(look, head)} {evidence_of(row)}"
        for head, row in zip(heads[:LISTED], mine.head(LISTED).to_dict("records"), strict=True)
    ]
    more = f"; and {len(mine) - LISTED} more" if len(mine) > LISTED else ""
    evidence = f"**{TITLES[label]}.** {MEANINGS[label]} {'; '.join(scored)}{more}."
    return heads, labels_by_head(profile), [evidence, meaning]


BY_NAME = {statistic.name: statistic for statistic in STATISTICS}
KEY = "all-heads-statistic"
SAID_TWICE = "cat dog mat hat cup cat dog mat hat cup cat"


@of_all_pairs
def ranking(look: Look) -> Panel:
    """One statistic at a time: what it means, the heads by it, and the chosen head."""
    family = choose_family(look)
    known = _scores(look.request, family)
    present = [one.name for one in STATISTICS if one.name in known.values]
    if st.session_state.get(KEY) not in present:
        st.session_state[KEY] = present[0]
    name = st.selectbox("Rank by", present, format_func=lambda one: BY_NAME[one].title, key=KEY)
    statistic = BY_NAME[name]
    values, is_list = known.values[statistic.name], map_or_list("ranking", first=LIST) == LIST
    leading, several = led_by([name_of(look, head) for head in known.heads], values, decimals=3)
    unit = "" if statistic in SHARES else f" {statistic.unit}"
    panel = Panel(
        f"all-heads-ranking-map-{statistic.name}",
        look_for=f"Highest here: {leading} with {values.max():.3f}{unit}{' each' if several else ''}. "
        f"{_called(look, known, statistic)}",
        picture=_ranked(look, known, statistic)
        if is_list
        else map_of_heads(
            look,
            family,
            values,
            quantity="weight" if statistic in SHARES else "score",
            title=statistic.unit,
            words=lambda value: f"{statistic.title.lower()}: {value:.4f}",
        ),
        alt=f"{statistic.title} of every head; highest {values.max():.3f}.",
        beside=[f"**{statistic.title}.** {statistic.meaning}"],
        below=[
            Caption(
                "Each value is computed from all the rows of weights. Click a column's name to sort by it, "
                "or the box before a row to open that head."
                if is_list
                else "Rows are layers, columns are heads. Click a cell to see that head."
            ),
            *_left_out(look, known),
        ],
    )
    return of_heads(panel, look, known.heads)


def _called(look: Look, known: Scores, statistic: Statistic) -> str:
    """Which heads may be called induction heads on this text; else why none may."""
    if statistic.name != "induction":
        return ""
    called = [name_of(look, head) for head, _ in known.called(statistic.name)]
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


def _ranked(look: Look, known: Scores, statistic: Statistic) -> Part:
    """The heads by the statistic, with all the others beside it."""
    heads = [head for head, _ in known.ranked(statistic.name)]
    order = [known.heads.index(head) for head in heads]
    first = [statistic, *(one for one in STATISTICS if one is not statistic)]
    return list_of_heads(
        look,
        heads,
        {one.title: known.values[one.name][order] for one in first if one.name in known.values},
        f"all-heads-ranking-{statistic.name}",
        helps={one.title: f"{one.meaning} ({one.unit})" for one in STATISTICS},
    )


def _left_out(look: Look, known: Scores) -> list[Part]:
    """Which statistics this text cannot give, and why; and a text with more repeated tokens, where this one
    has too few to show which heads are induction heads."""
    parts: list[Part] = []
    for reason in dict.fromkeys(known.refused.values()):
        titles = [BY_NAME[name].title for name, why in known.refused.items() if why == reason]
        parts.append(Caption(f"Not ranked here: {', '.join(titles)}. {plain(reason)}"))
    too_few = (
        known.refused["induction"] == NOTHING_COMES_BACK
        if "induction" in known.refused
        else known.evidence["induction"][0].rows < SEVERAL
    )
    if too_few and not look.model.new_words(SAID_TWICE):
        view = replace(current(), text=SAID_TWICE, target=None)
        label = "Rank them on a repeated list of words →"
        parts.append(partial(view_link, "pages/all_heads.py", label, view))
    return parts


CLICKABLE = 64  # up to so many tokens each has a button; beyond that a list is quicker


def from_word_to_word(look: Look) -> Panel:
    """Two tokens, the query and the key of the view, and every head's weight from the one to the other."""
    family = choose_family(look)
    queries, keys = family.queries(look.trace), family.keys(look.trace)
    query, key = min(current().query, len(queries) - 1), min(current().key, len(keys) - 1)
    change_view(replace(current(), query=query, key=key))
    weights, heads = looking(look.trace, family, query, key), family.heads(look.trace)
    names = [name_of(look, head) for head in heads]
    leading, several = led_by(names, weights, decimals=3)
    put, each = ("put", " each") if several else ("puts", "")
    one, other = bold_token(queries[query].text, query), bold_token(keys[key].text, key)
    mask = of_query(family.members(look.trace)[0], query).mask
    may_attend = mask is None or mask[0, key]
    order = sorted(range(len(heads)), key=lambda place: -weights[place])
    panel = Panel(
        "all-heads-pairs",
        look_for=f"{leading} {put} the largest weight from {one} on {other}: {weights.max():.3f}{each}. "
        f"The mean of all {len(names)} heads is {weights.mean():.3f}."
        if may_attend
        else "",
        picture=map_of_heads(
            look,
            family,
            weights,
            quantity="weight",
            title="weight",
            words="weight {:.4f}".format,
        )
        if map_or_list("pairs") == MAP
        else list_of_heads(
            look,
            [heads[place] for place in order],
            {"weight": weights[order]},
            f"all-heads-pairs-list-{query}-{key}",
        ),
        chosen=f"{query}-{key}-",
        alt=f"Weight of every head; the highest is {weights.max():.3f}.",
        beside=()
        if may_attend
        else [
            f"{one} may not attend to {other}: the mask forbids it, so every weight is 0. "
            "Choose a key token further left."
        ],
        below=[
            partial(_choose_token, "Query token", queries, "query"),
            partial(_choose_token, "Key token", keys, "key"),
            write_link,
            Formula(PAIR),
        ],
    )
    return of_heads(panel, look, heads)


def _choose_token(label: str, tokens: Sequence[Token], field: str) -> None:
    """The tokens of the sentence to click; they join the link."""
    labels = numbered_labels((token.text for token in tokens), 24)
    places, here = range(len(tokens)), control(field, "pair")
    if len(tokens) > CLICKABLE:
        st.selectbox(label, places, format_func=labels.__getitem__, **here)
    else:
        st.pills(label, places, required=True, format_func=lambda at: plain(labels[at]), **here)
