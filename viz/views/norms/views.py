"""The live part of the layer norm page: the choice of a norm, a token and a dimension, and what other norms
would do to its input."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from model.analysis.stream.stream import (
    kernel_check,
    layer_normalized,
    norm_reads,
    rms_normalized,
    token_statistics,
)
from model.code.around import norm_file_reads
from model.nn.config import NormKind
from model.nn.places import Place
from model.snippets.layers import norm as norm_code
from model.trace.arrays import Array
from model.trace.records import NormRecord
from viz.elements.one_of import choosable_table, keep_within, one_listed, one_of
from viz.elements.plot import plot
from viz.figures.bars import Spread, spread_bars
from viz.figures.curves import variance_gap
from viz.figures.diagrams import norm_orders
from viz.figures.heatmap import Axis
from viz.figures.vectors import ColourEnd, colour_end
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import bold_token
from viz.notation.names import norm_name
from viz.notation.numbers import difference, signed
from viz.notation.theme import QuantityName
from viz.saving.save import save_figure
from viz.shell.controls import LISTED, choosable_rows
from viz.shell.page import chosen_view
from viz.shell.pictures import chart, code_behind, look_for, table
from viz.state.look import Look
from viz.views.norms import formulas

TOKEN, DIMENSION, NORM = "layer-norm-token", "layer-norm-dimension", "layer-norm-norm"


@dataclass(frozen=True)
class NormLook:
    """The chosen norm, and the token and dimension whose numbers fill its formula."""

    seen: Look
    norm: NormRecord
    tokens: list[str]
    token: int
    dimension: int

    @property
    def title(self) -> str:
        return _title(self.seen, self.norm.name)

    @property
    def chosen(self) -> str:
        """The chosen token, safe in Markdown."""
        return f"{self.token} {bold_token(self.tokens[self.token])}"


class Opened(NamedTuple):
    """The chosen norm, and where things go: the picture on the left, beside it what to look for, and
    below that the formula."""

    look: NormLook
    picture: DeltaGenerator
    said: DeltaGenerator
    formula: DeltaGenerator


def open_norm(seen: Look) -> Opened:
    """Places for a picture and for the words beside it, where the norm is chosen."""
    picture, words = st.columns([2, 1], gap="large")
    with words:
        said = st.container()
        look = _choose_norm(seen)
        return Opened(look, picture, said, st.container())


def _choose_norm(seen: Look) -> NormLook:
    """At first the norm whose tokens differ most in deviation: there is most to see in it."""
    norms = {norm.name: norm for norm in seen.trace.norms}
    uneven = [one.inverse_deviation.max() / one.inverse_deviation.min() for one in norms.values()]
    titles = {name: _title(seen, name) for name in norms}
    name = st.selectbox(
        "Norm",
        list(norms),
        index=int(np.argmax(uneven)),
        format_func=titles.__getitem__,
        key=NORM,
    )
    norm = norms[name]
    token_box, dimension_box = st.columns([3, 2])
    tokens = [token.text for token in seen.trace.tokens_of(Place.named(name).stack)]
    token = one_listed("Token", numbered_labels(tokens, LISTED), TOKEN, box=token_box)
    width = norm.input.shape[1]
    keep_within(DIMENSION, width)
    dimension = dimension_box.number_input("Dimension", 0, width - 1, step=1, key=DIMENSION)
    return NormLook(seen, norm, tokens, token, dimension)


def _title(seen: Look, name: str) -> str:
    return norm_name(name, seen.model.config.norm_place, stacks=len(seen.trace.stacks))


def norm_rows(
    look: NormLook, values: NDArray[np.floating], quantity: QuantityName, key: str, end: ColourEnd
) -> None:
    """values (token, dimension), with marks that choose the token."""
    width = [str(dimension) for dimension in range(values.shape[1])]
    choosable_rows(
        values,
        tokens=look.tokens,
        columns=Axis("dimension", width, tokens=False),
        quantity=quantity,
        end=end,
        key=key,
        chosen=TOKEN,
    )


def spread_of(norm: NormRecord, values: Array) -> Spread:
    """What a norm measures of each token: mean and deviation, or the root mean square around 0."""
    found = token_statistics(values)
    if norm.kind == "layer":
        return Spread(found.mean, found.deviation)
    return Spread(np.zeros_like(found.mean), np.hypot(found.mean, found.deviation))


def norm_spread(look: NormLook) -> None:
    """How widely each token's numbers are spread, before and after; a click chooses the token."""
    norm = look.norm
    before, after = (spread_of(norm, values) for values in (norm.input, norm.normalized))
    measure = "mean ± deviation" if norm.kind == "layer" else "± root mean square"
    figure = spread_bars(before, after, tokens=look.tokens, chosen=look.token, measure=measure)

    def take(token: int) -> None:
        st.session_state[TOKEN] = token

    plot(figure, f"layer-norm-spread-{look.token}", clicked=take)
    save_figure(lambda: figure, "layer-norm-spread")


def norm_check(norm: NormRecord) -> None:
    found = kernel_check(norm)
    mean = f"the kernel's own mean differs by at most {difference(found.mean)}, its 1/√(σ²+ε)"
    size = mean if norm.kind == "layer" else "the recorded 1/√(ms+ε) differs"
    said = (
        f"Check: recomputed in double precision from the recorded input, {size} by a relative "
        f"error of at most {difference(found.inverse_deviation)}"
    )
    if found.output is not None:
        said += f", the recorded output by at most {difference(found.output)}"
    st.caption(f"{said}.")


SPREAD, TABLE = "Spread", "Per token"
STAGES = (SPREAD, "Input", "Normalized", "Output", TABLE)


@st.fragment
def norm_views(seen: Look) -> None:
    """One norm, chosen by name: what it does, and how other norms would treat the same input."""
    chosen_view(VIEWS, seen)  # a click in the picture changes the choice of the token: one fragment


def _this_norm(seen: Look) -> None:
    look, picture, said, formula = open_norm(seen)
    norm, token, shifts = look.norm, look.token, look.seen.model.config.shifts
    look_for(_change_of_size(look), said)
    with picture:
        drawn = st.container()
        stage = one_of("Stage", STAGES, "layer-norm-stage", quiet=True)
    with drawn:
        _draw_stage(look, stage)
    with formula:
        st.latex(formulas.norm_in_general(norm, shifts=shifts))
        st.markdown(f"Token {look.chosen}, dimension {look.dimension}:")
        st.latex(formulas.norm_in_numbers(norm, token, look.dimension, shifts=shifts))
    norm_check(norm)
    sizes = norm.input.shape
    code_behind(
        norm_code(norm, shifts=shifts),
        "layer-norm",
        given={
            "x": f"{sizes}: the norm's input",
            "gamma": f"({sizes[1]},)",
            "beta": f"({sizes[1]},)",
        },
        cell={"query": token, "dimension": look.dimension},
        value=float(norm.output[token, look.dimension]),
        reads=norm_file_reads(norm, shifts=shifts),
    )
    learned = {"γ": norm.gamma} | ({"β": norm.beta} if shifts else {})
    columns = {"input": norm.input[token], "normalized": norm.normalized[token]}
    output = {"output": norm.output[token]}
    table(columns | learned | output, "layer-norm-dimensions", index="dimension")


def _draw_stage(look: NormLook, stage: str) -> None:
    if stage == SPREAD:
        norm_spread(look)
    elif stage == TABLE:
        _statistics(look)
    else:
        quantity: QuantityName = "output" if stage == "Output" else "stream"
        values = _stages(look.norm)[stage.lower()]
        norm_rows(look, values, quantity, f"layer-norm-{stage}", colour_end(values))


def _stages(norm: NormRecord) -> dict[str, Array]:
    return {"input": norm.input, "normalized": norm.normalized, "output": norm.output}


def _change_of_size(look: NormLook) -> str:
    """What the norm does to the tokens' sizes, in the numbers of this sentence."""
    norm = look.norm
    name = "deviation" if norm.kind == "layer" else "root mean square"
    before, after = (spread_of(norm, values).reach for values in (norm.input, norm.normalized))
    shifts = look.seen.model.config.shifts
    then = f"{'γ and β then stretch and shift' if shifts else 'γ then stretches'} single dimensions"
    if _leaves_alone(norm):
        then = "γ = 1 and β = 0 change nothing" if shifts else "γ = 1 changes nothing"
    if len(before) == 1:
        return (
            f"The token's {name} is {before[0]:.2f} before the norm and {after[0]:.2f} after "
            "normalization."
        )
    return (
        f"Before the norm the {name}s of the tokens {_span(before)}; after normalization they "
        f"{_span(after)}. {then}."
    )


def _leaves_alone(norm: NormRecord) -> bool:
    """Whether γ and β are still what training begins with."""
    return bool((norm.gamma == 1).all()) and not norm.beta.any()


def _span(values: np.ndarray) -> str:
    """From the smallest to the largest, or one number where both are printed alike."""
    least, most = f"{values.min():.2f}", f"{values.max():.2f}"
    return f"are all {least}" if least == most else f"range from {least} to {most}"


def _statistics(look: NormLook) -> None:
    """A row for each token: mean, variance and deviation before, normalized and after."""
    frame = pd.DataFrame({"token": [token_label(token) for token in look.tokens]})
    for name, values in _stages(look.norm).items():
        found = token_statistics(values)
        frame[f"{name}: mean"] = found.mean.round(6) + 0.0  # no "-0.0000"
        frame[f"{name}: variance"] = found.variance
        frame[f"{name}: deviation"] = found.deviation

    def take(token: int) -> None:
        st.session_state[TOKEN] = token

    choosable_table(frame, f"layer-norm-statistics-{look.token}", take)
    st.caption("Choose a row to fill the formula with that token's numbers.")


OWN: dict[NormKind, str] = {"layer": "The model's layer norm", "rms": "The model's RMS norm"}
DERIVED: dict[NormKind, str] = {
    "layer": "Result of a layer norm",
    "rms": "Result of an RMS norm",
}


def two_variances(seen: Look) -> None:
    look, picture, said, formula = open_norm(seen)
    norm, token, dimension = look.norm, look.token, look.dimension
    width = norm.input.shape[1]
    biased = layer_normalized(norm.input, norm.epsilon)
    unbiased = layer_normalized(norm.input, norm.epsilon, unbiased=True)
    apart = np.abs(biased - unbiased).max(-1)
    look_for(
        f"{'On' if norm.kind == 'layer' else 'In a layer norm, on'} token {look.chosen} the results "
        f"with the two variances differ by at most **{apart[token]:.5f}**, over its {width} dimensions. "
        "At width 4 they would be 13.4 % apart.",
        said,
    )
    with picture:
        chart(variance_gap(width), "layer-norm-variances")
    with formula:
        st.latex(formulas.TWO_VARIANCES)
        squares = token_statistics(norm.input).variance * width
        units = float(biased[token, dimension]), float(unbiased[token, dimension])
        st.latex(formulas.variances_in_numbers(width, float(squares[token]), units, dimension))
        st.markdown(f"PyTorch, GPT-2 and BERT use the first one{_USES[norm.kind]}")
    norm_check(norm)
    columns = {
        "token": [token_label(text) for text in look.tokens],
        "divided by d": squares / width,
        "divided by d − 1": squares / (width - 1),
        "largest difference after normalization": apart,
    }
    table(columns, "layer-norm-variances", decimals=5)


def beside(seen: Look) -> None:
    """The model's norm, the other kind on the same input, and their difference."""
    look, picture, said, formula = open_norm(seen)
    norm = look.norm
    values: dict[NormKind, np.ndarray] = {
        "layer": layer_normalized(norm.input, norm.epsilon),
        "rms": rms_normalized(norm.input, norm.epsilon),
    }
    other: NormKind = "rms" if norm.kind == "layer" else "layer"
    found = token_statistics(norm.input)
    apart = np.abs(values["rms"] - values["layer"]).max(-1)
    worst = int(apart.argmax())
    mean = signed(f"{found.mean[worst]:.3f}")
    where = f"token {worst} {bold_token(look.tokens[worst])}"
    differ = f"The two differ most on {where}" if len(apart) > 1 else f"Here, on {where}"
    look_for(
        f"An RMS norm subtracts no mean. {differ}: a mean of {mean} and a deviation of "
        f"{found.deviation[worst]:.3f}; the results are up to {apart[worst]:.3f} apart.",
        said,
    )
    stages: dict[str, tuple[np.ndarray, QuantityName]] = {
        OWN[norm.kind]: (values[norm.kind], "stream"),
        DERIVED[other]: (values[other], "stream"),
        "Difference": (values[other] - values[norm.kind], "difference"),
    }
    with picture:
        drawn, key = st.container(), f"layer-norm-beside-{norm.kind}"
        stage = one_of("Stage", list(stages), key, default=DERIVED[other], quiet=True)
    shown, quantity = stages[stage]
    both = np.concatenate(list(values.values())) if quantity == "stream" else shown
    with drawn:
        name = f"layer-norm-beside-{list(stages).index(stage)}"
        norm_rows(look, shown, quantity, name, colour_end(both))
    columns = {
        "mean": found.mean,
        "deviation": found.deviation,
        "root mean square": np.hypot(found.mean, found.deviation),
    }
    with formula:
        st.latex(formulas.ROOT_MEAN_SQUARE)
        here = ", ".join(
            f"{name} {signed(f'{each[look.token]:.4f}')}" for name, each in columns.items()
        )
        st.markdown(
            f"Token {look.chosen}: {here}. The two norms differ by at most **{apart[look.token]:.4f}** here."
        )
        st.caption(
            f"Derived from the recorded input, without {_LEARNED[look.seen.model.config.shifts]} "
            "for the model's own norm. Llama, for instance, uses an RMS norm, which saves "
            "computing the mean."
        )
    norm_check(norm)
    tokens = {"token": [token_label(text) for text in look.tokens]}
    table(tokens | columns | {"largest difference": apart}, "layer-norm-beside")


def where(seen: Look) -> None:
    look, picture, _, words = open_norm(seen)
    norm = look.norm
    place = seen.model.config.norm_place
    apart = float(np.abs(norm_reads(seen.model, seen.trace, norm.name) - norm.input).max())
    with picture:
        chart(norm_orders(place), "layer-norm-orders")
    with words:
        st.markdown(f"**{look.title}.** {_reads(seen, norm.name)}")
        st.markdown(_PLACES[place])
    st.caption(
        "Check: the norm's recorded input differs from that sum, recomputed from the stream and the "
        f"sub-layers, by at most {difference(apart)}."
    )


_USES: dict[NormKind, str] = {
    "layer": ", and so does this model.",
    "rms": ". This model uses neither: its RMS norm subtracts no mean.",
}
_LEARNED = {True: "γ and β, which were learned", False: "γ, which was learned"}
_PLACES = {
    "pre": "This model is **pre-norm**, as GPT-2 is: each sub-layer reads a normalized copy, and "
    "the stream itself is never rescaled. A pre-norm stack therefore ends with one more norm.",
    "post": "This model is **post-norm**, as the 2017 transformer and BERT are: the norm stands "
    "after the sum, so the stream itself is rescaled at every sub-layer. No final norm is needed.",
    "both": "This model norms **what each sub-layer reads and what it writes**, as Gemma 2 does. The norm "
    "after the sub-layer keeps what is added to the stream small; the stream itself is never rescaled.",
    "after": "This model norms **what each sub-layer writes**, before that is added to the stream, as OLMo 2 "
    "does. The sub-layer reads the stream as it is; the stream itself is never rescaled.",
}


def _reads(seen: Look, name: str) -> str:
    """What the norm's input is, in one sentence."""
    config = seen.model.config
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


VIEWS: dict[str, Callable[[Look], None]] = {
    "This norm": _this_norm,
    "Two variances": two_variances,
    "RMS norm beside it": beside,
    "Where it stands": where,
}
