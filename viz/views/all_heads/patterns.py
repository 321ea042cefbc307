"""What heads attend to: the grid of all of them, each one's score by a statistic, and its weight from one
token to another."""

from dataclasses import replace
from functools import lru_cache, partial

import streamlit as st

from model.analysis.heads.labels import SEVERAL
from model.analysis.heads.ranking import STATISTICS, Scores, Statistic, looking, scores
from model.analysis.heads.statistics import NOTHING_COMES_BACK, Family, Tiles, tiles
from model.nn.places import Head
from model.profile.shipped import made, profile_of, shipped_profiles
from model.serving.engine import Request
from model.trace.blocks import of_query
from viz.elements.one_of import one_listed
from viz.figures.head_tiles import head_grid
from viz.notation.head_formulas import PAIR
from viz.notation.head_labels import labels_by_head
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import NAMED, led_by
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Formula, Panel, Part, Table
from viz.shell.pictures import checked, of_all_pairs
from viz.state.look import Look, traced
from viz.state.navigation import view_link
from viz.state.presets import REPEATED
from viz.state.session import change_view, control, current
from viz.views.all_heads.choice import (
    beside_chosen,
    cell_of,
    choose_family,
    head_names,
    jobs_of,
    name_of,
    of_heads,
    table_of,
)

say = sentences_of("all_heads.patterns")

SHARES = tuple(one for one in STATISTICS if one.unit.startswith("weight"))  # comparable: 0 to 1


@lru_cache(maxsize=16)
def _tiles(request: Request, family: Family) -> Tiles:
    return tiles(traced(request), family)


@lru_cache(maxsize=64)
def scores_of(request: Request, family: Family) -> Scores:
    return scores(traced(request), family)


@of_all_pairs
def grid(look: Look) -> Panel:
    """Every head as a small map, with the name of its job where that is known."""
    family = choose_family(look)
    weights, known = _tiles(look.request, family), scores_of(look.request, family)
    names = head_names(look, known.heads)
    profile = profile_of(look.model)
    labels = {} if profile is None else labels_by_head(profile)
    keys = len(family.members(look.trace)[0].vectors[1])
    groups = keys if keys < weights.weights.shape[1] else 0
    jobs = jobs_of(look, known.heads)
    figure = head_grid(
        weights,
        chosen=cell_of(look, family),
        words=[
            f"{name}<br>{_role(known, head)}"
            + "".join(f"<br>label: {label}" for label in labels.get(head, ()))
            for name, head in zip(names, known.heads, strict=True)
        ],
        groups=groups,
        jobs=jobs,
    )
    columns = {one.title: known.values[one.name] for one in SHARES if one.name in known.values}
    # groups: heads of keys and values, where heads share them.
    queries, keys = weights.block
    words = say("tile_rows_queries")
    if max(queries, keys) > 1:
        words += say("text_long_cell_shows", queries=queries, keys=keys)
    if groups:
        words += say("frames_colour_heads", groups=groups)
    below: list[Part] = [Caption(words), partial(checked, look)]
    if profile is not None and any(jobs):
        text = made(shipped_profiles()[look.model.name]).text
        below.insert(
            1,
            Caption(say("job_under_tile_point", tokens=profile.sums.tokens, text=text)),
        )
    panel = Panel(
        "all-heads-grid",
        look_for=_look_for(look, known),
        alt=say("grid_heads_rows", names=len(names)),
        below=below,
        table=Table(table_of(look, known.heads, columns)),
    )
    return beside_chosen(panel, look, figure, known.heads)


def _look_for(look: Look, known: Scores) -> str:
    """The shapes that are worth finding, each with a head that may be called so on this text."""
    shapes = {
        "previous": say("line_just_below"),
        "next": say("line_just_above"),
        "first": say("strong_first_column"),
        "induction": say("head_attends_followed"),
    }
    sentence = "; ".join(
        f"{shape} ({name_of(look, called[0][0])}: {called[0][1]:.2f})"
        for name, shape in shapes.items()
        if (called := known.called(name))
    )
    if not sentence:
        return say("compare_tiles_heads")
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
        return say("click_see_large")
    best = max(roles, key=lambda one: known.values[one.name][place])
    return f"{best.title.lower()}: {known.values[best.name][place]:.2f}"


BY_NAME = {statistic.name: statistic for statistic in STATISTICS}
SAID_TWICE = REPEATED


@of_all_pairs
def pattern(look: Look) -> Panel:
    """How much each head attends in one way, by a score of this text."""
    family = choose_family(look)
    known = scores_of(look.request, family)
    present = [one for one in STATISTICS if one.name in known.values]
    titles = [one.title for one in present]
    key = f"all-heads-score-{len(titles)}"
    statistic = present[one_listed("Score", titles, key)]
    values = known.values[statistic.name]
    leading, several = led_by(head_names(look, known.heads), values, decimals=3)
    unit = "" if statistic in SHARES else f" {statistic.unit}"
    # Which statistics this text cannot give, and why.
    parts: list[Part] = []
    for reason in dict.fromkeys(known.refused.values()):
        titles = [BY_NAME[name].title for name, why in known.refused.items() if why == reason]
        parts.append(Caption(f"Not measured here: {', '.join(titles)}. {plain(reason)}"))
    panel = Panel(
        f"all-heads-pattern-{statistic.name}",
        look_for=f"Highest here: {leading} with {values.max():.3f}{unit}{' each' if several else ''}. "
        f"{_called(look, known, statistic)}",
        alt=say("every_head_highest", statistic=statistic.title, most_values=values.max()),
        beside=[
            f"**{statistic.title}.** {statistic.meaning}",
            *(_repeated(look, known) if statistic.name == "induction" else []),
        ],
        below=[
            *parts,
            *(_repeated(look, known) if "induction" in known.refused else []),
        ],
        table=Table(
            table_of(look, known.heads, {one.title: known.values[one.name] for one in present})
        ),
    )
    return of_heads(
        panel,
        look,
        family,
        values,
        quantity="weight" if statistic in SHARES else "score",
        title=statistic.unit,
        words=lambda value: f"{statistic.title.lower()}: {value:.4f}",
    )


def _called(look: Look, known: Scores, statistic: Statistic) -> str:
    """Which heads may be called induction heads on this text; else why none may."""
    if statistic.name != "induction":
        return ""
    called = [name_of(look, head) for head, _ in known.called(statistic.name)]
    if called:
        more = f" and {len(called) - NAMED} more" if len(called) > NAMED else ""
        return say("induction_heads_text", called=", ".join(called[:NAMED]), more=more)
    rows = known.evidence[statistic.name][0].rows
    if rows < SEVERAL:
        return say("only_text_rows_count", rows=rows)
    return say("none_induction_head")


def _repeated(look: Look, known: Scores) -> list[Part]:
    """The way to a text with more repeated tokens, where this one has too few to show induction heads."""
    is_enough = (
        known.refused["induction"] != NOTHING_COMES_BACK
        if "induction" in known.refused
        else known.evidence["induction"][0].rows >= SEVERAL
    )
    if is_enough or look.model.new_words(SAID_TWICE):
        return []
    view = replace(current(), text=SAID_TWICE, target=None)
    label = say("measure_repeated_list")
    return [partial(view_link, "pages/all_heads.py", label, view)]


def from_word_to_word(look: Look) -> Panel:
    """Two tokens, the query and the key of the view, and every head's weight from the one to the other."""
    family = choose_family(look)
    queries, keys = family.queries(look.trace), family.keys(look.trace)
    query, key = min(current().query, len(queries) - 1), min(current().key, len(keys) - 1)
    change_view(replace(current(), query=query, key=key))
    for label, tokens, field in (("From", queries, "query"), ("To", keys, "key")):
        named = numbered_labels((token.text for token in tokens), 24)
        st.selectbox(
            label, range(len(tokens)), format_func=named.__getitem__, **control(field, "pair")
        )
    weights, heads = looking(look.trace, family, query, key), family.heads(look.trace)
    names = head_names(look, heads)
    leading, several = led_by(names, weights, decimals=3)
    put, each = ("put", " each") if several else ("puts", "")
    one, other = bold_token(queries[query].text, query), bold_token(keys[key].text, key)
    mask = of_query(family.members(look.trace)[0], query).mask
    if mask is None or mask[0, key]:
        said = say(
            "largest_weight_mean",
            leading=leading,
            put=put,
            one=one,
            other=other,
            most_weights=weights.max(),
            each=each,
            names=len(names),
            mean_weights=weights.mean(),
        )
    else:
        said = say("may_not_attend_mask", one=one, other=other)
    panel = Panel(
        "all-heads-pairs",
        look_for=said,
        chosen=f"{query}-{key}-",
        alt=say("weight_every_head", most_weights=weights.max()),
        below=[Formula(PAIR)],
        table=Table(table_of(look, heads, {"weight": weights})),
    )
    return of_heads(
        panel,
        look,
        family,
        weights,
        quantity="weight",
        title="weight",
        words="weight {:.4f}".format,
        cell=(query, key),
    )
