"""A norm of the open model: how widely each token's numbers are spread before and after it, and its formula
with the numbers of one."""

from functools import partial

import numpy as np
import streamlit as st

from model.analysis.stream.stream import kernel_check, norm_reads
from model.code.around import norm_file_reads
from model.nn.config import TransformerConfig
from model.nn.norms import NORM_PLACES
from model.nn.places import Place
from model.snippets.layers import norm as norm_code
from model.trace.arrays import Array
from model.trace.records import NormRecord
from viz.elements.one_of import keep_within, one_listed
from viz.figures.bars import VectorSpread, spread_bars
from viz.notation.labels import numbered_labels
from viz.notation.markdown import bold_token
from viz.notation.names import norm_name
from viz.notation.numbers import difference
from viz.notation.words import sentences_of
from viz.shell.controls import LISTED
from viz.shell.panel import Caption, Check, Code, Formula, Panel, Table
from viz.state.look import Look
from viz.views.norms import formulas

say = sentences_of("norms.views")

TOKEN, DIMENSION, NORM = "layer-norm-token", "layer-norm-dimension", "layer-norm-norm"


def choose_norm(look: Look) -> NormRecord:
    """At first the norm whose tokens differ most in deviation: there is most to see in it."""
    norms = {norm.name: norm for norm in look.trace.norms}
    uneven = [
        norm.inverse_deviation.max() / norm.inverse_deviation.min() for norm in norms.values()
    ]
    stacks = len(look.trace.stacks)
    titles = {name: norm_name(name, look.model.config, stacks=stacks) for name in norms}
    name = st.selectbox(
        "Norm",
        list(norms),
        index=int(np.argmax(uneven)),
        format_func=titles.__getitem__,
        key=NORM,
    )
    return norms[name]


def this_norm(look: Look) -> Panel:
    """One norm: what it does to the spread of each token's numbers."""
    norm, config = choose_norm(look), look.model.config
    tokens = [token.text for token in look.trace.tokens_of(Place.named(norm.name).stack)]
    token = one_listed("Token", numbered_labels(tokens, LISTED), TOKEN)
    width = norm.input.shape[1]
    keep_within(DIMENSION, width)
    dimension, shifts = int(st.session_state[DIMENSION]), config.shifts
    columns = {"input": norm.input[token], "normalized": norm.normalized[token]}
    columns |= {"γ": norm.gamma} | ({"β": norm.beta} if shifts else {})
    stages = {
        f"before the norm:<br>{norm.law.around}": norm.input,
        "normalized": norm.normalized,
        f"after {'γ and β' if shifts else 'γ'}": norm.output,
    }
    return Panel(
        "layer-norm-spread",
        look_for=_change_of_size(norm, shifts=shifts),
        picture=spread_bars(
            {title: spread_of(norm, values) for title, values in stages.items()},
            tokens=tokens,
            chosen=token,
        ),
        clicked=_take,
        chosen=token,
        beside=[
            Formula(norm.law.formula(shifts=shifts)),
            partial(_choose_dimension, f"Token {token} {bold_token(tokens[token])}", width),
            Formula(formulas.norm_in_numbers(norm, token, dimension, shifts=shifts)),
            Caption(f"{NORM_PLACES[config.norm_place].words} {_reads(config, norm.name)}"),
        ],
        check=norm_check(look, norm),
        code=Code(
            norm_code(norm, shifts=shifts),
            given={
                "x": f"{norm.input.shape}: the norm's input",
                "gamma": f"({width},)",
                "beta": f"({width},)",
            },
            cell={"query": token, "dimension": dimension},
            value=float(norm.output[token, dimension]),
            reads=norm_file_reads(norm, shifts=shifts),
        ),
        table=Table(columns | {"output": norm.output[token]}, index="dimension"),
    )


def _take(token: int) -> None:
    st.session_state[TOKEN] = token


def _choose_dimension(token: str, width: int) -> None:
    """Above the formula: whose numbers it holds."""
    words, number = st.columns([2, 1], vertical_alignment="bottom")
    words.markdown(f"{token}, with its numbers:")
    number.number_input("Dimension", 0, width - 1, step=1, key=DIMENSION)


def norm_check(look: Look, norm: NormRecord) -> Check:
    """The kernel's own numbers recomputed, and what the norm reads recomputed from the stream."""
    check = kernel_check(norm)
    apart = float(np.abs(norm_reads(look.model, look.trace, norm.name) - norm.input).max())
    words = say(
        "check_recomputed_double",
        compared=norm.law.compared(difference(check.mean)),
        inverse_deviation=check.inverse_deviation,
    )
    if check.output is not None:
        words += say("recorded_output_most", output=check.output)
    words += say("input_differs_should", apart=apart)
    largest = max(check.mean, check.inverse_deviation, check.output or 0.0, apart)
    return Check(f"{words}.", largest)


def spread_of(norm: NormRecord, values: Array) -> VectorSpread:
    """What a norm measures of each token: mean and deviation, or the root mean square around 0."""
    mean, size = norm.law.statistics(values.astype(np.float64))
    return VectorSpread(mean[:, 0], np.sqrt(size[:, 0]))


def _change_of_size(norm: NormRecord, *, shifts: bool) -> str:
    """What the norm does to the tokens' sizes, in the numbers of this sentence."""
    name = norm.law.spread
    before, after = (spread_of(norm, values).reach for values in (norm.input, norm.normalized))
    then = f"{say('both_stretch') if shifts else say('gamma_stretches')} single dimensions"
    if (norm.gamma == 1).all() and not norm.beta.any():  # still what training begins with
        then = "γ = 1 and β = 0 change nothing" if shifts else "γ = 1 changes nothing"
    if len(before) == 1:
        return say("token_before_norm", name=name, first_before=before[0], first_after=after[0])
    return say(
        "before_norm_tokens", name=name, span=_span(before), after_span=_span(after), then=then
    )


def _span(values: np.ndarray) -> str:
    """From the smallest to the largest, or one number where both are printed alike."""
    least, most = f"{values.min():.2f}", f"{values.max():.2f}"
    return f"are all {least}" if least == most else f"range from {least} to {most}"


def _reads(config: TransformerConfig, name: str) -> str:
    """What the norm's input is, in one sentence."""
    if ".embedding." in name:
        added = {"its position's": config.adds_positions, "its segment's": config.segments}
        parts = " and ".join(part for part, is_added in added.items() if is_added)
        vector = say("sum_token_vector", parts=parts) if parts else "token's vector"
        return say("input", vector=vector)
    if ".final." in name:
        return say("input_last_state")
    if name == Place.named(name).after:
        return say("input_f_x_sub_layer")
    if not config.norms_sum:
        return say("input_x_stream_before")
    return say("input_x_f_x_stream")
