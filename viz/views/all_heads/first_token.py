"""Why the first token? The weight that heads put on one token, what that weight carries, and where it goes
when the token is hidden."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import plotly.graph_objects as go

from model.analysis.heads.sinks import TokenAsKey, hiding, moved_weight, token_as_key
from model.analysis.heads.statistics import Family
from model.serving.engine import Request
from model.trace.arrays import BoolArray, Wide
from model.trace.unproven import RECORDED, NotShownError
from viz.elements.one_of import one_listed
from viz.figures.heatmap import Axis, heatmap
from viz.notation.head_formulas import weights_and_lengths
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import led_by, signed
from viz.notation.theme import QuantityName
from viz.notation.words import sentences_of
from viz.shell.controls import LISTED
from viz.shell.panel import Caption, Formula, Panel, Part, Table
from viz.shell.pictures import checked
from viz.state.look import Look, loaded, traced
from viz.state.navigation import HOME, view_link
from viz.state.session import current
from viz.views.all_heads.choice import choose_family, head_names, of_heads, table_of
from viz.views.laboratory.effects import effects

say = sentences_of("all_heads.first_token")

WEIGHT, VALUE, EDGE, HIDDEN = "Its weight", "Its value", say("edges_carry"), say("hidden")
LEARNED = "The learned sink"
RESTS = 0.5  # of a head's weight: more than on all other keys together
NAMED = 3  # tokens to which the weight goes
_OF_EDGES = (say("length_edge_mean"), say("edges_row"), "share of lengths")


@lru_cache(maxsize=16)
def _as_key(request: Request, family: Family, position: int) -> TokenAsKey:
    return token_as_key(loaded(request.model), traced(request), family, position)


@lru_cache(maxsize=16)
def _moved(request: Request, hidden: Request, family: Family, position: int) -> Wide:
    return moved_weight(traced(request), traced(hidden), family, position)


def first_token(look: Look) -> Panel:
    """A map of one token as a key of every head, or the run in which it is hidden."""
    family = choose_family(look)
    has_sinks = any(one.sinks is not None for one in family.members(look.trace))
    # The learned sink only of heads that have one, and only what the model can say.
    offered = {LEARNED: has_sinks, EDGE: look.has_output, HIDDEN: look.model.runs}
    kinds = [kind for kind in (*_MAPS, HIDDEN) if offered.get(kind, True)]
    shown = kinds[one_listed("Number", kinds, f"all-heads-first-{'-'.join(kinds)}")]
    keys = family.keys(look.trace)
    key = f"all-heads-first-{hash(tuple(token.id for token in keys))}"
    position = one_listed("Token", numbered_labels((one.text for one in keys), LISTED), key)
    try:
        means = _as_key(look.request, family, position)
    except NotShownError:
        raise
    except ValueError as refusal:
        advice = say("choose_earlier_token") if position else "Type"
        raise NotShownError(f"{refusal} {advice} a longer text.") from refusal
    notes: list[Part] = []
    if not look.model.runs:
        more = say("open_model_itself")
        notes.append(Caption(f"{RECORDED} {more}"))
    elif not look.has_output:
        why = plain(look.model.unproven["output"])
        notes.append(Caption(say("w_o_not_proven_because", why=why)))
    token = bold_token(keys[position].text, position)
    panel = Panel(
        f"all-heads-first-{position}",
        chosen=f"{shown}-",
        beside=[_why(look, family, means, has_sinks)],
        below=[
            Formula(weights_and_lengths(sinks=has_sinks)),
            *notes,
            partial(checked, look),
        ],
        table=Table(_columns(look, means, has_sinks)),
    )
    if shown == HIDDEN:
        run = Look(replace(look.request, intervention=hiding(look.trace, family, position)))
        return replace(
            panel,
            look_for=_where_it_goes(run, family, means, token),
            picture=_moved_by_layer(run, family, position),
            beside=[*_effects(run, family, position), *panel.beside],
        )
    values_of, quantity, title = _MAPS[shown]
    values = values_of(means)
    panel = replace(
        panel,
        look_for=_look_for(shown, look, means, token),
        alt=say("number_head_largest", shown=shown, nanmax=np.nanmax(values)),
    )
    return of_heads(
        panel,
        look,
        family,
        values,
        quantity=quantity,
        title=title,
        words=lambda value: "no row" if np.isnan(value) else f"{title}: {value:.4f}",
    )


# The number of each head that a map shows, its colour and its name.
_MAPS: dict[str, tuple[Callable[[TokenAsKey], Wide], QuantityName, str]] = {
    WEIGHT: (lambda means: means.weight, "weight", "mean weight"),
    VALUE: (lambda means: means.value_ratio, "value", say("times_others_length")),
    EDGE: (lambda means: means.carried, "stream", "share of lengths"),
    LEARNED: (lambda means: means.learned, "weight", "mean weight"),
}


def _look_for(shown: str, look: Look, means: TokenAsKey, token: str) -> str:
    """What the chosen map shows, in numbers. token: as Markdown may show it."""
    weight, ratio = np.nanmean(means.weight), means.value_ratio
    if shown == VALUE:
        return say(
            "value_times_long",
            token=token,
            nanmean=np.nanmean(ratio),
            shortest=_largest(look, means, -ratio, "Shortest", ratio),
            longest=_largest(look, means, ratio, "Longest"),
        )
    if shown == EDGE:
        return say(
            "edges_weight_rows",
            token=token,
            weight=weight,
            nanmean=np.nanmean(means.carried),
            largest=_largest(look, means, means.carried),
        )
    if shown == LEARNED:
        return say(
            "rows_learned_sink",
            nanmean=np.nanmean(means.learned),
            token=token,
            weight=weight,
            largest=_largest(look, means, means.learned),
        )
    rests = means.weight > RESTS  # NaN is not
    words = say(
        "gets_weight_other",
        token=token,
        weight=weight,
        nanmean=np.nanmean(means.even),
        largest=_largest(look, means, means.weight),
    )
    if not rests.any():
        return say("head_gives_more", words=words)
    known = int((~np.isnan(means.weight)).sum())
    return say(
        "more_half",
        words=words,
        sum_rests=rests.sum(),
        known=known,
        what_it_carries=_what_it_carries(means, rests),
    )


def _what_it_carries(means: TokenAsKey, rests: BoolArray) -> str:
    """How long the token's value is where it has most of the weight, and whether that moves the stream."""
    words = say("value_times_long_other", nanmean=np.nanmean(means.value_ratio[rests]))
    if np.isnan(means.carried[rests]).all():
        return words
    weight, carried = means.weight[rests].mean(), np.nanmean(means.carried[rests])
    words += say("weight_edges_carry", weight=weight, carried=carried)
    if carried < weight / 2:
        return say("most_weight_moves", words=words)
    if round(carried, 2) < round(weight, 2):
        return say("weight_moves_stream", words=words)
    return say("weight_moves_stream_share", words=words)


def _largest(
    look: Look, means: TokenAsKey, by: Wide, word: str = "Highest", values: Wide | None = None
) -> str:
    """The heads that lead by some numbers, with the number of the leader."""
    names = head_names(look, means.heads)
    ranked = np.where(np.isnan(by), -np.inf, by)
    leading, several = led_by(names, ranked, decimals=2)
    value = (by if values is None else values)[int(ranked.argmax())]
    return f"{word}: {leading} with {value:.2f}{' each' if several else ''}."


def _why(look: Look, family: Family, means: TokenAsKey, has_sinks: bool) -> str:
    sink = ", with its sink's," * has_sinks
    words = say("row_weights_sums", sink=sink)
    others = len(family.queries(look.trace)) - 1
    causal = family.members(look.trace)[0].kind == "causal"
    if causal and means.position == 0 and (means.rows == others).all():
        words += say("under_causal_mask")
    if has_sinks:
        words += say("model_head_also")
    return say("choose_another_token", words=words)


def _columns(look: Look, means: TokenAsKey, has_sinks: bool) -> dict[str, object]:
    columns: dict[str, object] = {
        "rows": means.rows,
        "mean weight": means.weight,
        "spread evenly": means.even,
        say("length_value"): means.value,
        say("other_values_mean"): means.other_values,
    }
    if look.has_output:
        of_edges = (means.edge, means.edges, means.carried)
        columns |= dict(zip(_OF_EDGES, of_edges, strict=True))
    columns |= {"learned sink, mean": means.learned} if has_sinks else {}
    return table_of(look, means.heads, columns)


def _moved_by_layer(run: Look, family: Family, position: int) -> go.Figure:
    """By layer and key: the weight that the hidden token loses and the others gain."""
    keys = [token.text for token in family.keys(run.trace)]
    layers = len(family.members(run.trace))
    moved = _moved(run.requests[1], run.request, family, position)
    figure = heatmap(
        moved.reshape(layers, -1, len(keys)).mean(1),
        rows=Axis("layer", [str(layer) for layer in range(layers)], tokens=False),
        columns=Axis("key", keys),
        quantity="difference",
        height=min(max(26 * layers + 130, 220), 800),
    )
    figure.data[-1].colorbar.title = {"text": "change of weight", "side": "right"}
    return figure


def _where_it_goes(run: Look, family: Family, means: TokenAsKey, token: str) -> str:
    """To which tokens the weight goes."""
    moved = np.nanmean(_moved(run.requests[1], run.request, family, means.position), axis=0)
    keys = [token.text for token in family.keys(run.trace)]
    ranked = np.argsort(-moved, kind="stable")[:NAMED].tolist()
    most = [key for key in ranked if round(moved[key], 2) > 0]
    gains = [f"{bold_token(keys[key], key)} {signed(f'{moved[key]:+.2f}')}" for key in most]
    if any(one.sinks is not None for one in family.members(run.trace)):
        gains.append(f"the learned sink {signed(f'{-moved.sum():+.2f}')}")
    goes = f": {', '.join(gains)}" if gains else ", each a little"
    return say("hidden_other_tokens", token=token, nanmean=np.nanmean(means.weight), goes=goes)


def _effects(run: Look, family: Family, position: int) -> list[Part]:
    """What the run predicts, each effect with the number before and after, and a link to Explore."""
    read = "encoder" if family.cross else family.stack
    own_row = position if read == run.model.stacks()[-1] else None
    words = [
        f"{effect.name}: "
        f"{f'{plain(effect.before)} → ' if effect.before else ''}**{plain(effect.after)}**"
        for effect in effects(run, traced(run.requests[1]), run.trace, hidden=own_row)
    ]
    view = replace(current(), show="", intervention=run.request.intervention)
    label = say("open_run_explore")
    return [" · ".join(words), partial(view_link, HOME, label, view)]
