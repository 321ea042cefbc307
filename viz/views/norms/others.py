"""What other norms would do to the same input: unbiased variance, RMS norm, the other place."""

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.stream.norms import layer_normalized, rms_normalized, token_statistics
from model.analysis.stream.stream import norm_reads
from model.nn.config import NormKind
from viz.elements.one_of import one_of
from viz.figures.norm_order import norm_orders
from viz.figures.token_rows import colour_end
from viz.figures.variance_gap import variance_gap
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import difference
from viz.notation.theme import QuantityName
from viz.shell.pictures import chart, table
from viz.state.look import Look
from viz.views.norms import formulas as norm_formulas
from viz.views.norms.look import NormLook, norm_check, norm_rows

OWN: dict[NormKind, str] = {"layer": "The model's layer norm", "rms": "The model's RMS norm"}
DERIVED: dict[NormKind, str] = {
    "layer": "What a layer norm would make of it",
    "rms": "What an RMS norm would make of it",
}


def two_variances(look: NormLook) -> None:
    norm, token, dimension = look.norm, look.token, look.dimension
    width = norm.input.shape[1]
    biased = layer_normalized(norm.input, norm.epsilon)
    unbiased = layer_normalized(norm.input, norm.epsilon, unbiased=True)
    apart = np.abs(biased - unbiased).max(-1)
    centres = norm.kind == "layer"
    st.markdown(
        f"**What to look for.** {'On' if centres else 'In a layer norm, on'} token {look.chosen} the two "
        f"differ most, of {width} dimensions, by **{apart[token]:.5f}**. At width 4 they are "
        "13.4 % apart."
    )
    picture, formula = st.columns([2, 1], gap="large")
    with picture:
        chart(variance_gap(width), "layer-norm-variances")
    with formula:
        st.latex(norm_formulas.TWO_VARIANCES)
        squares = token_statistics(norm.input).variance * width
        units = float(biased[token, dimension]), float(unbiased[token, dimension])
        st.latex(norm_formulas.variances_in_numbers(width, float(squares[token]), units, dimension))
        st.markdown(f"PyTorch, GPT-2 and BERT use the first one{_USES[norm.kind]}")
    norm_check(norm)
    frame = pd.DataFrame(
        {
            "token": [token_label(text) for text in look.tokens],
            "divided by d": squares / width,
            "divided by d − 1": squares / (width - 1),
            "largest difference normalized": apart,
        }
    )
    table(frame, "layer-norm-variances", decimals=5)


def beside(look: NormLook) -> None:
    """The model's norm, the other kind on the same input, and their difference."""
    norm = look.norm
    values: dict[NormKind, np.ndarray] = {
        "layer": layer_normalized(norm.input, norm.epsilon),
        "rms": rms_normalized(norm.input, norm.epsilon),
    }
    other: NormKind = "rms" if norm.kind == "layer" else "layer"
    found = token_statistics(norm.input)
    apart = np.abs(values["rms"] - values["layer"]).max(-1)
    worst = int(apart.argmax())
    st.markdown(
        f"**What to look for.** An RMS norm subtracts no mean. The two differ most on token {worst} "
        f"**{plain(token_label(look.tokens[worst]))}**: mean {found.mean[worst]:.3f} beside "
        f"deviation {found.deviation[worst]:.3f}, and up to {apart[worst]:.3f} apart."
    )
    stages: dict[str, tuple[np.ndarray, QuantityName]] = {
        OWN[norm.kind]: (values[norm.kind], "stream"),
        DERIVED[other]: (values[other], "stream"),
        "Difference": (values[other] - values[norm.kind], "difference"),
    }
    stage = one_of(
        "Stage", list(stages), f"layer-norm-beside-{norm.kind}", default=DERIVED[other], quiet=True
    )
    shown, quantity = stages[stage]
    both = np.concatenate(list(values.values())) if quantity == "stream" else shown
    picture, formula = st.columns([2, 1], gap="large")
    with picture:
        name = f"layer-norm-beside-{list(stages).index(stage)}"
        norm_rows(look, shown, quantity, name, colour_end(both))
    with formula:
        _root_mean_square(look, found.mean, found.deviation, apart)
    norm_check(norm)
    frame = pd.DataFrame(
        {
            "token": [token_label(text) for text in look.tokens],
            "mean": found.mean,
            "deviation": found.deviation,
            "root mean square": np.hypot(found.mean, found.deviation),
            "largest difference": apart,
        }
    )
    table(frame, "layer-norm-beside")


def _root_mean_square(
    look: NormLook, mean: np.ndarray, deviation: np.ndarray, apart: np.ndarray
) -> None:
    token = look.token
    st.latex(norm_formulas.ROOT_MEAN_SQUARE)
    st.markdown(
        f"Token {look.chosen}: mean {mean[token]:.4f}, deviation {deviation[token]:.4f}, root mean "
        f"square {np.hypot(mean[token], deviation[token]):.4f}. The two norms differ most by "
        f"**{apart[token]:.4f}** here."
    )
    st.caption(
        f"Derived from the recorded input, before {_LEARNED[look.seen.model.config.shifts]} for the "
        "model's own norm. Llama, for instance, has an RMS norm, because it saves the mean."
    )


def where(look: NormLook) -> None:
    seen, norm = look.seen, look.norm
    place = seen.model.config.norm_place
    apart = float(np.abs(norm_reads(seen.model, seen.trace, norm.name) - norm.input).max())
    picture, words = st.columns([3, 2], gap="large")
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
    "rms": ". This model uses neither: its RMS norm takes no mean away.",
}
_LEARNED = {True: "γ and β: those were learned", False: "γ: that was learned"}
_PLACES = {
    "pre": "This model is **pre-norm**, as GPT-2 is: each sub-layer reads a normalized copy, and "
    "the stream itself is never rescaled. A pre-norm stack therefore ends with one more norm.",
    "post": "This model is **post-norm**, as the 2017 transformer and BERT are: the norm stands "
    "after the sum, so the stream itself is rescaled at every sub-layer. No final norm is needed.",
}


def _reads(seen: Look, name: str) -> str:
    """What the norm's input is, in one sentence."""
    config = seen.model.config
    if ".embedding." in name:
        parts = ["its position's"] * config.adds_positions + ["its segment's"] * bool(
            config.segments
        )
        if not parts:
            return "Its input is the token's vector."
        return f"Its input is the sum of the token's vector and {' and '.join(parts)}."
    if ".final." in name:
        return "Its input is the last state of the stream, after every sub-layer has added to it."
    if config.norm_place == "pre":
        return "Its input is x, the stream as the sub-layer finds it. f reads the norm's output."
    return "Its input is x + f(x): the stream plus what the sub-layer adds to it."
