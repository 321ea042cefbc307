"""The neurons of a feed-forward layer, where on the activation curve their values lie, and experts: which of
them read each token, and with what weight."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import streamlit as st

from model.analysis.stream.feed_forward import (
    CURVES,
    activation_check,
    bends,
    flat_share,
    histogram,
    neuron_statistics,
    strongest,
)
from model.nn.config import Activation
from model.nn.places import Place
from model.trace.records import ExpertsRecord, FeedForwardRecord
from model.trace.unproven import NotShownError
from viz.elements.one_of import one_listed
from viz.figures.curves import (
    curve_over_values,
    points_on_the_curve,
)
from viz.figures.heatmap import Axis
from viz.figures.vectors import MARKED, ColourEnd, colour_end, token_rows
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token, plain
from viz.notation.names import sublayer_name
from viz.notation.numbers import counted, difference, signed
from viz.shell.controls import HINT, LISTED
from viz.shell.panel import Caption, Check, Formula, Panel, Part, Table
from viz.state.look import Look
from viz.views.feed_forward import formulas

TOKEN = "feed-forward-token"
SHOWN = 24  # neurons in the picture
BENT = 0.01  # by less an activation bends nothing that is worth a look


def choose_sublayer(label: str, names: Sequence[str], look: Look, key: str) -> str:
    """A list of sub-layers under the names that readers know; the chosen one's own name. names: at least
    one."""
    named = partial(sublayer_name, stacks=len(look.trace.stacks))
    chosen: str = st.selectbox(label, names, format_func=named, key=key)
    return chosen


def choose_neurons(look: Look) -> FeedForwardRecord:
    """The layer of a list. Refuses where the model has no feed-forward layers whose neurons are recorded."""
    records = {record.name: record for record in look.trace.feed_forward}
    if not records and look.trace.experts:
        raise NotShownError(
            "The feed-forward layers of this model are made of experts, each with neurons of its own, which "
            "are not recorded. The view Experts shows which of them read each token."
        )
    if not records:
        raise NotShownError(
            "This model has attention only: no feed-forward layers. Stories and MiniLM have them."
        )
    return records[choose_sublayer("Layer", list(records), look, "feed-forward-layer")]


def tokens_of(look: Look, record: FeedForwardRecord | ExpertsRecord) -> list[str]:
    return [token.text for token in look.trace.tokens_of(Place.named(record.name).stack)]


def _choose(key: str, token: int) -> None:
    st.session_state[key] = token


def neurons(look: Look) -> Panel:
    """Token × strongest neurons of one layer. It opens on a token with a neuron that the activation bends."""
    record, config = choose_neurons(look), look.model.config
    tokens, count = tokens_of(look, record), record.hidden.shape[1]
    listed, statistics = strongest(record.hidden, SHOWN), neuron_statistics(record)
    bent = bends(config.activation, record.before[:, listed])
    peak, loudest = statistics.peak
    first = int(bent.max(1).argmax()) if bent.max() > BENT else peak
    token = one_listed("Token", numbered_labels(tokens, LISTED), TOKEN, first=first)
    values = record.hidden[:, listed]
    largest = int(np.abs(record.hidden[token]).argmax())
    told = {f"{bold_token(tokens[token])}, largest: neuron": largest}
    if bent[token].max() > BENT:
        told["Bent most by the curve: neuron"] = int(listed[bent[token].argmax()])
    in_numbers: list[Part] = []
    for words, neuron in told.items():
        before, hidden = (float(each[token, neuron]) for each in (record.before, record.hidden))
        equation = formulas.activation_in_numbers(config.activation, before, hidden)
        in_numbers += [f"{words} {neuron}", Formula(equation)]
    points = {f"neuron {n}": float(record.before[token, n]) for n in dict.fromkeys(told.values())}
    curve = points_on_the_curve(CURVES[config.activation], points)
    rule = f"the {len(listed)} strongest of {count:,} neurons"
    check = _check(config.activation, record)
    return Panel(
        "feed-forward-neurons",
        look_for=f"The strongest is neuron {loudest}, with {signed(f'{statistics.peak_value:.2f}')} on token "
        f"{peak} {bold_token(tokens[peak])}. The mean |activation| of all {count:,} neurons and "
        f"{counted(len(tokens), 'token')} is {statistics.mean_size:.3f}.",
        picture=token_rows(
            values,
            tokens=tokens,
            columns=Axis(rule, [str(n) for n in listed], tokens=False),
            quantity="stream",
            end=colour_end(values),
            chosen=token,
        ),
        clicked=partial(_choose, TOKEN),
        chosen=token,
        beside=[
            Formula(formulas.feed_forward(config)),
            Panel("feed-forward-bend", picture=curve),
            *in_numbers,
        ],
        below=[*([Caption(HINT)] if len(tokens) <= MARKED else []), *_gated(check)],
        check=check,
        table=Table(
            {"token": numbered_labels(tokens)}
            | {f"neuron {n}": record.hidden[:, n] for n in listed}
        ),
    )


def _check(activation: Activation, record: FeedForwardRecord) -> Check | None:
    apart = activation_check(activation, record.before, record.hidden)
    if apart is None:
        return None
    return Check(
        f"Check: the activation of all {record.before.size:,} recorded values, recomputed in double "
        f"precision, differs from the recorded one by at most {difference(apart)}.",
        apart,
    )


def _gated(check: Check | None) -> list[Part]:
    """Why there is no check of the activation alone."""
    if check is not None:
        return []
    return [
        Caption(
            "The value of the gate is multiplied by that of a second map; the page Stream "
            "checks both."
        )
    ]


def on_the_curve(look: Look) -> Panel:
    """The model's own activation over the values it met in this sentence."""
    record, activation = choose_neurons(look), look.model.config.activation
    curve, met = CURVES[activation], histogram(record.before)
    check, statistics = _check(activation, record), neuron_statistics(record)
    return Panel(
        "feed-forward-curve",
        look_for=f"**{statistics.below_zero:.1%}** of the values arrive below 0, where "
        f"{plain(curve.title.partition(',')[0])} lets little or nothing through.",
        picture=curve_over_values(curve, met),
        beside=[
            Formula(curve.latex),
            f"The mean before the activation is {signed(f'{statistics.mean_before:.3f}')}. The slope lies "
            f"between −0.05 and 0.05 at **{flat_share(activation, record.before):.1%}** of the values: there "
            "hardly any gradient comes back.",
        ],
        below=_gated(check),
        check=check,
        table=Table(
            {
                "from": met.edges[:-1],
                "to": met.edges[1:],
                "share of the values, %": 100 * met.shares,
            }
        ),
    )


EXPERTS, EXPERTS_TOKEN = "Experts", "experts-token"
_EXPERTS = r"\mathrm{FFN}(x) = \sum_{e\,\in\,\text{chosen}} w_e(x)\, E_e(x) \;(+\;\text{shared})"


def experts(look: Look) -> Panel:
    """Token × expert: the weights by which the outputs of the chosen experts are multiplied."""
    records = {record.name: record for record in look.trace.experts}
    record = records[choose_sublayer("Layer", list(records), look, "experts-layer")]
    tokens = tokens_of(look, record)
    labels = numbered_labels(tokens, LISTED)
    token = one_listed("Token", labels, EXPERTS_TOKEN)
    read = np.array([(record.chosen == number).sum() for number in range(record.logits.shape[1])])
    most, shares, count = int(read.argmax()), record.shares, record.chosen.shape[1]
    within = bool(shares.max() <= 1)  # DeepSeek multiplies them by a factor
    goes_to = ", ".join(
        f"expert {record.chosen[token, at]} with weight **{record.weights[token, at]:.3f}**"
        for at in np.argsort(-record.weights[token])
    )
    columns: dict[str, object] = {"token": labels}
    for place in range(count):
        columns[f"expert, choice {place + 1}"] = record.chosen[:, place]
        columns[f"weight, choice {place + 1}"] = record.weights[:, place]
    columns |= {f"logit of expert {n}": record.logits[:, n] for n in range(len(read))}
    return Panel(
        f"experts-{record.name}",
        look_for=f"Each token is read by {count} of {len(read)} experts, and what they give is added "
        f"up, each times its weight. Expert {most} reads most: {read[most]} of {len(tokens)} tokens.",
        picture=token_rows(
            shares,
            tokens=tokens,
            columns=Axis("expert", list(map(str, range(len(read)))), tokens=False),
            quantity="weight" if within else "stream",
            end=ColourEnd(1.0, 0, shares.size, signed=False) if within else colour_end(shares),
            chosen=token,
        ),
        clicked=partial(_choose, EXPERTS_TOKEN),
        chosen=token,
        beside=[
            Formula(_EXPERTS),
            f"Token {token} {bold_token(tokens[token])} goes to {goes_to}.",
            Caption(_rule(record)),
        ],
        below=[Caption(HINT)] if len(tokens) <= MARKED else (),
        table=Table(columns),
    )


def _rule(record: ExpertsRecord) -> str:
    """Whether the chosen experts are those of the largest logits, in the numbers of this sentence."""
    count = record.chosen.shape[1]
    largest = np.sort(np.argsort(-record.logits, -1)[:, :count], -1)
    same = int((largest == np.sort(record.chosen, -1)).all(-1).sum())
    tokens = len(record.logits)
    whose = f"for {same} of {tokens} tokens these are the experts with its {count} largest logits"
    more = "" if same == tokens else "; this model's router also limits or corrects the choice"
    return (
        f"A router gives each expert a logit; {whose}{more}. Weights and choice are the router's own. "
        "Some models, as DeepSeek, add shared experts, which read every token and are not drawn here."
    )
