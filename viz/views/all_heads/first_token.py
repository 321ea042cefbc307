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
from viz.notation.numbers import counted, led_by, signed
from viz.notation.theme import QuantityName
from viz.shell.controls import LISTED
from viz.shell.panel import Caption, Formula, Panel, Part, Table
from viz.shell.pictures import checked
from viz.state.look import Look, loaded, traced
from viz.state.navigation import HOME, view_link
from viz.state.session import current
from viz.views.all_heads.choice import choose_family, name_of, of_heads, table_of
from viz.views.laboratory.effects import effects

WEIGHT, VALUE, EDGE, HIDDEN = "Its weight", "Its value", "What its edges carry", "When it is hidden"
LEARNED = "The learned sink"
RESTS = 0.5  # of a head's weight: more than on all other keys together
NAMED = 3  # tokens to which the weight goes
_OF_EDGES = ("length of its edge, mean", "of all edges of a row", "share of lengths")


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
        advice = "Choose an earlier token, or type" if position else "Type"
        raise NotShownError(f"{refusal} {advice} a longer text.") from refusal
    notes: list[Part] = []
    if not look.model.runs:
        more = "Open the model itself to see what its edges carry, or to hide a token."
        notes.append(Caption(f"{RECORDED} {more}"))
    elif not look.has_output:
        why = plain(look.model.unproven["output"])
        notes.append(Caption(f"W_O is not proven here, because {why}."))
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
        alt=f"{shown}: one number for each head; the largest is {np.nanmax(values):.2f}.",
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
    VALUE: (lambda means: means.value_ratio, "value", "times the others' length"),
    EDGE: (lambda means: means.carried, "stream", "share of lengths"),
    LEARNED: (lambda means: means.learned, "weight", "mean weight"),
}


def _look_for(shown: str, look: Look, means: TokenAsKey, token: str) -> str:
    """What the chosen map shows, in numbers. token: as Markdown may show it."""
    weight, ratio = np.nanmean(means.weight), means.value_ratio
    if shown == VALUE:
        return (
            f"The value of {token} is {np.nanmean(ratio):.2f} times as long as those of the other tokens, on "
            f"average over the heads. {_largest(look, means, -ratio, 'Shortest', ratio)} "
            f"{_largest(look, means, ratio, 'Longest')}"
        )
    if shown == EDGE:
        return (
            f"The edges to {token} have {weight:.0%} of the weight of these rows and "
            f"{np.nanmean(means.carried):.0%} of the lengths of all edges, on average over the heads. "
            f"{_largest(look, means, means.carried)}"
        )
    if shown == LEARNED:
        return (
            f"In these rows the learned sink of a head takes {np.nanmean(means.learned):.2f} of the weight, "
            f"on average over the heads; {token} gets {weight:.2f}. The sink has no value, so its share "
            f"adds nothing to the stream. {_largest(look, means, means.learned)}"
        )
    rests = means.weight > RESTS  # NaN is not
    words = (
        f"{token} gets {weight:.2f} of the weight of the other tokens that may attend to it, on average over "
        f"the heads. Spread evenly, it would get {np.nanmean(means.even):.2f}. "
        f"{_largest(look, means, means.weight)}"
    )
    if not rests.any():
        return f"{words} No head gives it more than half of its weight on this text."
    known = int((~np.isnan(means.weight)).sum())
    return (
        f"{words} In {rests.sum()} of {counted(known, 'head')} it has more than half"
        f"{_what_it_carries(means, rests)}"
    )


def _what_it_carries(means: TokenAsKey, rests: BoolArray) -> str:
    """How long the token's value is where it has most of the weight, and whether that moves the stream."""
    words = (
        f"; there its value is {np.nanmean(means.value_ratio[rests]):.2f} times as long as those of the "
        "other tokens."
    )
    if np.isnan(means.carried[rests]).all():
        return words
    weight, carried = means.weight[rests].mean(), np.nanmean(means.carried[rests])
    words += f" With {weight:.0%} of the weight its edges carry {carried:.0%} of the lengths"
    if carried < weight / 2:
        return f"{words}: most of this weight moves the stream little."
    if round(carried, 2) < round(weight, 2):
        return f"{words}: this weight moves the stream, but by less than its share."
    return f"{words}: this weight moves the stream by its share or more."


def _largest(
    look: Look, means: TokenAsKey, by: Wide, word: str = "Highest", values: Wide | None = None
) -> str:
    """The heads that lead by some numbers, with the number of the leader."""
    names = [name_of(look, head) for head in means.heads]
    ranked = np.where(np.isnan(by), -np.inf, by)
    leading, several = led_by(names, ranked, decimals=2)
    value = (by if values is None else values)[int(ranked.argmax())]
    return f"{word}: {leading} with {value:.2f}{' each' if several else ''}."


def _why(look: Look, family: Family, means: TokenAsKey, has_sinks: bool) -> str:
    sink = ", with its sink's," * has_sinks
    words = (
        f"A row of weights{sink} sums to 1, so a head that finds nothing to read "
        "still puts its weight somewhere. Weight on a short value adds little to the stream. A token used in "
        "this way is an **attention sink** (Xiao et al. 2023)."
    )
    others = len(family.queries(look.trace)) - 1
    causal = family.members(look.trace)[0].kind == "causal"
    if causal and means.position == 0 and (means.rows == others).all():
        words += " Under the causal mask only the first token can be read by every other one."
    if has_sinks:
        words += " In this model each head also has a learned sink: the weight that it takes reads nothing."
    return f"{words} Choose another token to compare."


def _columns(look: Look, means: TokenAsKey, has_sinks: bool) -> dict[str, object]:
    columns: dict[str, object] = {
        "rows": means.rows,
        "mean weight": means.weight,
        "spread evenly": means.even,
        "length of its value": means.value,
        "of the other values, mean": means.other_values,
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
    return (
        f"{token} is hidden from the other tokens. It had {np.nanmean(means.weight):.2f} of their weight, on "
        f"average over the heads. Others gain what it loses{goes}. The picture shows by layer how much each "
        "key's mean weight changes. A later layer also reads what the earlier ones have changed."
    )


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
    label = "Open this run on Explore →"
    return [" · ".join(words), partial(view_link, HOME, label, view)]
