"""The live part of the layer norm page: the choice of a norm, a token and a dimension, and what other norms
would do to its input."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from model.analysis.stream.stream import (
    kernel_check,
    layer_normalized,
    norm_reads,
    token_statistics,
)
from model.code.around import norm_file_reads
from model.nn.config import TransformerConfig
from model.nn.norms import NORM_PLACES, NORMS
from model.nn.places import Place
from model.snippets.layers import norm as norm_code
from model.trace.arrays import Array, Wide
from model.trace.records import NormRecord
from viz.elements.one_of import choosable_table, keep_within, one_listed, one_of
from viz.figures.bars import VectorSpread, spread_bars
from viz.figures.curves import variance_gap
from viz.figures.diagrams import norm_orders
from viz.figures.heatmap import Axis
from viz.figures.vectors import MARKED, ColourEnd, colour_end, token_rows
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import bold_token
from viz.notation.names import norm_name
from viz.notation.numbers import difference, signed
from viz.notation.theme import QuantityName
from viz.shell.controls import HINT, LISTED
from viz.shell.panel import (
    Caption,
    Check,
    Code,
    Formula,
    Panel,
    PanelView,
    Part,
    Table,
)
from viz.state.look import Look
from viz.views.norms import formulas

TOKEN, DIMENSION, NORM = "layer-norm-token", "layer-norm-dimension", "layer-norm-norm"
SPREAD, TABLE = "Spread", "Per token"
STAGES = (SPREAD, "Input", "Normalized", "Output", TABLE)


@dataclass(frozen=True)
class NormLook:
    """The chosen norm, and the token and dimension whose numbers fill its formula."""

    norm: NormRecord
    tokens: list[str]
    token: int
    dimension: int
    shifts: bool

    @property
    def words(self) -> str:
        """The chosen token, safe in Markdown."""
        return f"{self.token} {bold_token(self.tokens[self.token])}"


def choose_norm(look: Look) -> NormRecord:
    """At first the norm whose tokens differ most in deviation: there is most to see in it."""
    norms = {norm.name: norm for norm in look.trace.norms}
    uneven = [
        norm.inverse_deviation.max() / norm.inverse_deviation.min() for norm in norms.values()
    ]
    titles = {name: _title(look, name) for name in norms}
    name = st.selectbox(
        "Norm",
        list(norms),
        index=int(np.argmax(uneven)),
        format_func=titles.__getitem__,
        key=NORM,
    )
    return norms[name]


def _title(look: Look, name: str) -> str:
    return norm_name(name, look.model.config, stacks=len(look.trace.stacks))


def choose_numbers(look: Look) -> NormLook:
    """The norm, and one of its numbers."""
    norm = choose_norm(look)
    tokens = [token.text for token in look.trace.tokens_of(Place.named(norm.name).stack)]
    with st.popover("Token and dimension"):  # whose numbers fill the formula
        token = one_listed("Token", numbered_labels(tokens, LISTED), TOKEN)
        width = norm.input.shape[1]
        keep_within(DIMENSION, width)
        dimension = int(st.number_input("Dimension", 0, width - 1, step=1, key=DIMENSION))
    return NormLook(norm, tokens, token, dimension, look.model.config.shifts)


def _take(token: int) -> None:
    st.session_state[TOKEN] = token


def _rows(
    look: NormLook, values: Array | Wide, quantity: QuantityName, end: ColourEnd
) -> go.Figure:
    """values (token, dimension), with marks that choose the token."""
    width = [str(dimension) for dimension in range(values.shape[1])]
    return token_rows(
        values,
        tokens=look.tokens,
        columns=Axis("dimension", width, tokens=False),
        quantity=quantity,
        end=end,
        chosen=look.token,
    )


def _hint(look: NormLook) -> list[Part]:
    return [Caption(HINT)] if len(look.tokens) <= MARKED else []


def norm_check(norm: NormRecord) -> Check:
    check = kernel_check(norm)
    words = (
        "Check: recomputed in double precision from the recorded input, "
        f"{norm.law.compared.format(mean=difference(check.mean))} by a relative error of at most "
        f"{difference(check.inverse_deviation)}"
    )
    if check.output is not None:
        words += f", the recorded output by at most {difference(check.output)}"
    largest = max(check.mean, check.inverse_deviation, check.output or 0.0)
    return Check(f"{words}.", largest)


def this_norm(look: Look) -> Panel:
    """One norm: what it does."""
    chosen = choose_numbers(look)
    norm, token, dimension, shifts = chosen.norm, chosen.token, chosen.dimension, chosen.shifts
    stage = st.selectbox("Stage", STAGES, key="layer-norm-stage")
    name, picture = f"layer-norm-{stage}", None
    columns = {"input": norm.input[token], "normalized": norm.normalized[token]}
    columns |= {"γ": norm.gamma} | ({"β": norm.beta} if shifts else {})
    sizes = norm.input.shape
    if stage == SPREAD:
        name, picture = "layer-norm-spread", _spread(chosen)
    elif stage != TABLE:
        values = _stages(norm)[stage.lower()]
        quantity: QuantityName = "output" if stage == "Output" else "stream"
        picture = _rows(chosen, values, quantity, colour_end(values))
    return Panel(
        name,
        look_for=_change_of_size(chosen),
        picture=picture or (lambda: _statistics(chosen)),
        clicked=_take,
        chosen=token,
        beside=[
            Formula(norm.law.formula(shifts=shifts)),
            f"Token {chosen.words}, dimension {dimension}:",
            Formula(formulas.norm_in_numbers(norm, token, dimension, shifts=shifts)),
        ],
        below=[] if stage in (SPREAD, TABLE) else _hint(chosen),
        check=norm_check(norm),
        code=Code(
            norm_code(norm, shifts=shifts),
            given={
                "x": f"{sizes}: the norm's input",
                "gamma": f"({sizes[1]},)",
                "beta": f"({sizes[1]},)",
            },
            cell={"query": token, "dimension": dimension},
            value=float(norm.output[token, dimension]),
            reads=norm_file_reads(norm, shifts=shifts),
        ),
        table=Table(columns | {"output": norm.output[token]}, index="dimension"),
    )


def spread_of(norm: NormRecord, values: Array) -> VectorSpread:
    """What a norm measures of each token: mean and deviation, or the root mean square around 0."""
    mean, size = norm.law.statistics(values.astype(np.float64))
    return VectorSpread(mean[:, 0], np.sqrt(size[:, 0]))


def _spread(look: NormLook) -> go.Figure:
    """How widely each token's numbers are spread, before and after; a click chooses the token."""
    norm = look.norm
    before, after = (spread_of(norm, values) for values in (norm.input, norm.normalized))
    measure = norm.law.around
    return spread_bars(before, after, tokens=look.tokens, chosen=look.token, measure=measure)


def _stages(norm: NormRecord) -> dict[str, Array]:
    return {"input": norm.input, "normalized": norm.normalized, "output": norm.output}


def _change_of_size(look: NormLook) -> str:
    """What the norm does to the tokens' sizes, in the numbers of this sentence."""
    norm, name = look.norm, look.norm.law.spread
    before, after = (spread_of(norm, values).reach for values in (norm.input, norm.normalized))
    then = f"{'γ and β then stretch and shift' if look.shifts else 'γ then stretches'} single dimensions"
    if (norm.gamma == 1).all() and not norm.beta.any():  # still what training begins with
        then = "γ = 1 and β = 0 change nothing" if look.shifts else "γ = 1 changes nothing"
    if len(before) == 1:
        return (
            f"The token's {name} is {before[0]:.2f} before the norm and {after[0]:.2f} after "
            "normalization."
        )
    return (
        f"Before the norm the {name}s of the tokens {_span(before)}; after normalization they "
        f"{_span(after)}. {then}."
    )


def _span(values: np.ndarray) -> str:
    """From the smallest to the largest, or one number where both are printed alike."""
    least, most = f"{values.min():.2f}", f"{values.max():.2f}"
    return f"are all {least}" if least == most else f"range from {least} to {most}"


def _statistics(look: NormLook) -> None:
    """A row for each token: mean, variance and deviation before, normalized and after."""
    frame = pd.DataFrame({"token": [token_label(token) for token in look.tokens]})
    for name, values in _stages(look.norm).items():
        statistics = token_statistics(values)
        frame[f"{name}: mean"] = statistics.mean.round(6) + 0.0  # no "-0.0000"
        frame[f"{name}: variance"] = statistics.variance
        frame[f"{name}: deviation"] = statistics.deviation
    choosable_table(frame, f"layer-norm-statistics-{look.token}", _take)
    st.caption("Choose a row to fill the formula with that token's numbers.")


def two_variances(look: Look) -> Panel:
    chosen = choose_numbers(look)
    norm, token, dimension = chosen.norm, chosen.token, chosen.dimension
    width = norm.input.shape[1]
    biased = layer_normalized(norm.input, norm.epsilon)
    unbiased = layer_normalized(norm.input, norm.epsilon, unbiased=True)
    apart = np.abs(biased - unbiased).max(-1)
    squares = token_statistics(norm.input).variance * width
    units = float(biased[token, dimension]), float(unbiased[token, dimension])
    on = "On" if norm.law.centres else "In a layer norm, on"
    return Panel(
        "layer-norm-variances",
        look_for=f"{on} token {chosen.words} the results with the two variances differ by at most "
        f"**{apart[token]:.5f}**, over its {width} dimensions. At width 4 they would be 13.4 % apart.",
        picture=variance_gap(width),
        beside=[
            Formula(formulas.TWO_VARIANCES),
            Formula(formulas.variances_in_numbers(width, float(squares[token]), units, dimension)),
            f"PyTorch, GPT-2 and BERT use the first one{norm.law.uses_variance}",
        ],
        check=norm_check(norm),
        table=Table(
            {
                "token": [token_label(text) for text in chosen.tokens],
                "divided by d": squares / width,
                "divided by d − 1": squares / (width - 1),
                "largest difference after normalization": apart,
            },
            decimals=5,
        ),
    )


def other_kind(look: Look) -> Panel:
    """The model's norm, the other kind on the same input, and their difference."""
    chosen = choose_numbers(look)
    norm, token = chosen.norm, chosen.token
    other = NORMS["layer" if norm.kind == "rms" else "rms"]
    own_values, other_values = (
        law.normalized(norm.input, norm.epsilon) for law in (norm.law, other)
    )
    stages = {
        f"The model's {norm.law.name}": own_values,
        f"Result of {other.a_norm}": other_values,
        "Difference": other_values - own_values,
    }
    first = list(stages)[1]
    stage = one_of("Stage", list(stages), f"layer-norm-beside-{norm.kind}", default=first)
    quantity: QuantityName = "difference" if stage == "Difference" else "stream"
    values = stages[stage]
    ends = values if quantity == "difference" else np.concatenate([own_values, other_values])
    statistics = token_statistics(norm.input)
    apart = np.abs(other_values - own_values).max(-1)
    worst = int(apart.argmax())
    mean = signed(f"{statistics.mean[worst]:.3f}")
    where = f"token {worst} {bold_token(chosen.tokens[worst])}"
    differ = f"The two differ most on {where}" if len(apart) > 1 else f"Here, on {where}"
    columns = {
        "mean": statistics.mean,
        "deviation": statistics.deviation,
        "root mean square": np.hypot(statistics.mean, statistics.deviation),
    }
    here = ", ".join(f"{name} {signed(f'{each[token]:.4f}')}" for name, each in columns.items())
    learned = "γ and β, which were learned" if chosen.shifts else "γ, which was learned"
    return Panel(
        f"layer-norm-beside-{list(stages).index(stage)}",
        look_for=f"An RMS norm subtracts no mean. {differ}: a mean of {mean} and a deviation of "
        f"{statistics.deviation[worst]:.3f}; the results are up to {apart[worst]:.3f} apart.",
        picture=_rows(chosen, values, quantity, colour_end(ends)),
        clicked=_take,
        chosen=token,
        beside=[
            Formula(formulas.ROOT_MEAN_SQUARE),
            f"Token {chosen.words}: {here}. The two norms differ by at most **{apart[token]:.4f}** here.",
            Caption(
                f"Derived from the recorded input, without {learned} for the model's own norm. Llama, for "
                "instance, uses an RMS norm, which saves computing the mean."
            ),
        ],
        below=_hint(chosen),
        check=norm_check(norm),
        table=Table(
            {"token": [token_label(text) for text in chosen.tokens]}
            | columns
            | {"largest difference": apart}
        ),
    )


def where(look: Look) -> Panel:
    """Where the chosen norm stands, and what it reads."""
    norm, config = choose_norm(look), look.model.config
    apart = float(np.abs(norm_reads(look.model, look.trace, norm.name) - norm.input).max())
    return Panel(
        "layer-norm-orders",
        picture=norm_orders(config.norm_place),
        beside=[
            f"**{_title(look, norm.name)}.** {_reads(config, norm.name)}",
            NORM_PLACES[config.norm_place].words,
        ],
        check=Check(
            "Check: the norm's recorded input differs from that sum, recomputed from the stream and the "
            f"sub-layers, by at most {difference(apart)}.",
            apart,
        ),
    )


def _reads(config: TransformerConfig, name: str) -> str:
    """What the norm's input is, in one sentence."""
    if ".embedding." in name:
        added = {"its position's": config.adds_positions, "its segment's": config.segments}
        parts = " and ".join(part for part, is_added in added.items() if is_added)
        vector = f"sum of the token's vector and {parts}" if parts else "token's vector"
        return f"Its input is the {vector}."
    if ".final." in name:
        return "Its input is the last state of the stream, after every sub-layer has added to it."
    if name == Place.named(name).after:
        return "Its input is f(x), what the sub-layer writes. Its output is added to the stream."
    if not config.norms_sum:
        return "Its input is x, the stream before the sub-layer. f reads the norm's output."
    return "Its input is x + f(x): the stream plus what the sub-layer adds to it."


VIEWS: dict[str, PanelView] = {
    "This norm": this_norm,
    "Two variances": two_variances,
    "RMS norm beside it": other_kind,
    "Where it stands": where,
}
