"""The neurons of a feed-forward layer, where on the activation curve their values lie, and experts: which of
them read each token, and with what weight."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import streamlit as st

from model.analysis.stream.feed_forward import (
    activation_check,
    bends,
    flat_share,
    histogram,
    neuron_statistics,
    strongest,
)
from model.nn.activations import ACTIVATION_LAWS, Activation
from model.nn.places import Place
from model.trace.records import ExpertsRecord, FeedForwardRecord
from model.trace.unproven import NotShownError
from viz.elements.one_of import one_listed
from viz.figures.chart import frame
from viz.figures.curves import (
    curve_over_values,
    points_on_the_curve,
)
from viz.figures.heatmap import Axis
from viz.figures.vectors import ColourEnd, colour_end, token_rows
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token
from viz.notation.names import sublayer_name
from viz.notation.numbers import signed
from viz.notation.theme import INK
from viz.notation.words import sentences_of
from viz.shell.controls import LISTED
from viz.shell.panel import Caption, Check, Formula, Panel, Part, Table
from viz.state.look import Look
from viz.views.feed_forward import formulas

say = sentences_of("feed_forward.neurons")

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


def _choose(key: str, columns: int, cell: int) -> None:
    """Takes the token of a clicked cell of so many columns."""
    st.session_state[key] = cell // columns


def neurons(look: Look) -> Panel:
    """Token × strongest neurons of one layer. It opens on a token with a neuron that the activation bends."""
    record, config = choose_neurons(look), look.model.config
    tokens, count = tokens_of(look, record), record.hidden.shape[1]
    listed = strongest(record.hidden, SHOWN)
    values, bent = record.hidden[:, listed], bends(config.activation, record.before[:, listed])
    rows = bent if bent.max() > BENT else np.abs(values)
    first = int(rows.max(1).argmax())
    token = one_listed("Token", numbered_labels(tokens, LISTED), TOKEN, first=first)
    framed = {"largest": int(np.abs(values[token]).argmax())}
    if bent[token].max() > BENT:
        framed[say("bent_most_curve")] = int(bent[token].argmax())
    shown = [
        (neuron, float(record.before[token, neuron]), float(record.hidden[token, neuron]))
        for neuron in map(int, listed[[*framed.values()]])
    ]
    in_numbers: list[Part] = []
    for words, (neuron, before, hidden) in zip(framed, shown, strict=True):
        equation = formulas.activation_in_numbers(config.activation, before, hidden)
        in_numbers += [f"Neuron {neuron}, {words}", Formula(equation)]
    points = {f"neuron {neuron}": before for neuron, before, _ in shown}
    curve = points_on_the_curve(ACTIVATION_LAWS[config.activation], points)
    rule = say("strongest_neurons", listed=len(listed), count=count)
    picture = token_rows(
        values,
        tokens=tokens,
        columns=Axis(rule, [str(n) for n in listed], tokens=False),
        quantity="stream",
        end=colour_end(values),
        chosen=token,
    )
    ticks = sorted({*framed.values()})  # of all labels some would be left out, and not these
    names = [f"<b>{listed[tick]}</b>" for tick in ticks]
    picture.update_xaxes(tickvals=ticks, ticktext=names, tickangle=0)
    for column in framed.values():
        frame(picture, (column - 0.5, column + 0.5, token - 0.5, token + 0.5), INK, 3)
    check = _check(config.activation, record)
    return Panel(
        "feed-forward-neurons",
        look_for=_look_for(bold_token(tokens[token]), shown, gated=config.is_gated),
        picture=picture,
        clicked=partial(_choose, TOKEN, len(listed)),
        chosen=token,
        beside=[
            Formula(formulas.feed_forward(config)),
            Panel("feed-forward-bend", picture=curve),
            *in_numbers,
        ],
        below=_gated(check),
        check=check,
        table=Table(
            {"token": numbered_labels(tokens)}
            | {f"neuron {n}": record.hidden[:, n] for n in listed}
        ),
    )


def _look_for(name: str, neurons: Sequence[tuple[int, float, float]], *, gated: bool) -> str:
    """What the framed cells of a row show.

    neurons: the number and the values before and after, of the largest one and, where the activation bends
    one, of that which it bends most. gated: whether what comes after is multiplied by another number.
    """
    (largest, _, value), *bent = neurons
    words = say("row_neuron_largest", name=name, largest=largest, value=value)
    for neuron, before, hidden in bent:
        words += say("curve_bends_neuron", neuron=neuron)
        goes, comes = signed(f"{before:.2f}"), signed(f"{hidden:.2f}")
        words += "." if gated else say("goes_comes_out", goes=goes, comes=comes)
    return words


def _check(activation: Activation, record: FeedForwardRecord) -> Check | None:
    apart = activation_check(activation, record.before, record.hidden)
    if apart is None:
        return None
    return Check(
        say("check_activation_recorded", before=record.before.size, apart=apart),
        apart,
    )


def _gated(check: Check | None) -> list[Part]:
    """Why there is no check of the activation alone."""
    if check is not None:
        return []
    return [Caption(say("value_gate_multiplied"))]


def on_the_curve(look: Look) -> Panel:
    """The model's own activation over the values it met in this sentence."""
    record, activation = choose_neurons(look), look.model.config.activation
    curve, met = ACTIVATION_LAWS[activation], histogram(record.before)
    check, statistics = _check(activation, record), neuron_statistics(record)
    return Panel(
        "feed-forward-curve",
        look_for=say(
            "values_arrive_below",
            below_zero=statistics.below_zero,
            first_partition=curve.title.partition(",")[0],
        ),
        picture=curve_over_values(curve, met),
        beside=[
            Formula(curve.latex),
            say(
                "mean_before_activation",
                mean_before=statistics.mean_before,
                flat_share=flat_share(activation, record.before),
            ),
        ],
        below=_gated(check),
        check=check,
        table=Table(
            {
                "from": met.edges[:-1],
                "to": met.edges[1:],
                say("share_values"): 100 * met.shares,
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
        look_for=say(
            "token_read_experts",
            count=count,
            read=len(read),
            most=most,
            most_read=read[most],
            tokens=len(tokens),
        ),
        picture=token_rows(
            shares,
            tokens=tokens,
            columns=Axis("expert", list(map(str, range(len(read)))), tokens=False),
            quantity="weight" if within else "stream",
            end=ColourEnd(1.0, 0, shares.size) if within else colour_end(shares),
            chosen=token,
        ),
        clicked=partial(_choose, EXPERTS_TOKEN, len(read)),
        chosen=token,
        beside=[
            Formula(_EXPERTS),
            f"Token {token} {bold_token(tokens[token])} goes to {goes_to}.",
            Caption(_rule(record)),
        ],
        table=Table(columns),
    )


def _rule(record: ExpertsRecord) -> str:
    """Whether the chosen experts are those of the largest logits, in the numbers of this sentence."""
    count = record.chosen.shape[1]
    largest = np.sort(np.argsort(-record.logits, -1)[:, :count], -1)
    same = int((largest == np.sort(record.chosen, -1)).all(-1).sum())
    tokens = len(record.logits)
    whose = say("tokens_experts_largest", same=same, tokens=tokens, count=count)
    more = "" if same == tokens else say("model_router_also")
    return say("router_gives_expert", whose=whose, more=more)
