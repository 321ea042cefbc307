"""The next token after a chosen position: logits, softmax, temperature, top-k and top-p; and the logit
lens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from model.analysis.heads.statistics import entropy
from model.analysis.run_comparison import rounding
from model.analysis.tokens.prediction import (
    Distribution,
    Sampling,
    lens,
    likeliest,
    probabilities,
    temperature,
    top_k,
)
from model.trace.arrays import Array
from model.trace.trace import Trace
from model.worked.equality import sign
from viz.elements.one_of import one_listed
from viz.figures.bars import Bars, distribution
from viz.figures.cells import lens_table
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import bold_token, plain
from viz.notation.names import state_names
from viz.notation.numbers import (
    counted,
    difference,
    nats,
    probability,
    rounded,
    settled,
    sign_of_sum,
    significant,
)
from viz.shell.pictures import beside_words, chart, table
from viz.state.look import Look

UNCHANGED = Sampling()
_DEFAULTS = {
    "prediction-temperature": UNCHANGED.temperature,
    "prediction-top-k": UNCHANGED.top_k,
    "prediction-top-p": UNCHANGED.top_p,
}


def sampling_controls(vocabulary: int) -> Sampling:
    """The three controls in the order in which they apply, and the way back. The link holds them."""
    divisor = st.slider(
        "Temperature",
        0.1,
        3.0,
        value=1.0,
        step=0.1,
        key="prediction-temperature",
        bind="query-params",
        help="Divides every logit. Below 1 the likely tokens gain, above 1 the unlikely ones.",
    )
    count = st.number_input(
        "Top-k: number of tokens to keep",
        1,
        value=None,
        step=1,
        placeholder="all",
        key="prediction-top-k",
        bind="query-params",
        help="Keeps only the k most likely tokens. Leave it empty to keep all.",
    )
    share = st.slider(
        "Top-p: share to keep",
        0.05,
        1.0,
        value=1.0,
        step=0.05,
        key="prediction-top-p",
        bind="query-params",
        help=(
            "Keeps the smallest set of likely tokens whose probabilities add up to this share. "
            "1 keeps all."
        ),
    )
    chosen = Sampling(divisor, None if count is None else min(int(count), vocabulary), share)
    if chosen != UNCHANGED:
        st.button("Reset to the model's own distribution", key="prediction-back", on_click=_back)
    return chosen


def in_words(chosen: Sampling, logits: Array, error: float) -> list[str]:
    """A sentence for each of the three: what it does to this row of logits, (vocabulary,). error: how
    far rounding may move the logarithm of what is drawn with."""
    warmed = temperature(logits, chosen.temperature)
    cut = warmed if chosen.top_k is None else top_k(warmed, chosen.top_k)
    said = [
        "Temperature 1 leaves the probabilities as they are.",
        "Top-k is off: all tokens are kept.",
        "Top-p is off: no share is cut.",
    ]
    if chosen.temperature != 1:
        divisor, gain = (
            f"{chosen.temperature:g}",
            "Likely" if chosen.temperature < 1 else "Unlikely",
        )
        said[0] = f"Temperature {divisor} divides every logit by {divisor}. {gain} tokens gain."
    if chosen.top_k is not None:
        kept, held = _kept(warmed, cut, error)
        said[1] = (
            f"Top-k keeps {kept} of {len(cut):,} tokens. Together they had a probability of {held}."
        )
    if chosen.top_p != 1:
        kept, held = _kept(cut, chosen.of(logits), error)
        said[2] = (
            f"Top-p keeps the smallest set of likely tokens that has at least {chosen.top_p:g}: "
            f"{kept} of {np.count_nonzero(cut):,}, which have {held}."
        )
    return said


def _kept(before: Distribution, after: Distribution, error: float) -> tuple[str, str]:
    """How many tokens stay, and what they held before."""
    stays = after > 0
    return f"{np.count_nonzero(stays):,}", probability(before[stays].sum(), error)


def _back() -> None:
    st.session_state.update(_DEFAULTS)


SOFTMAX = r"p_i = \frac{e^{\,z_i / T}}{\sum_j e^{\,z_j / T}}"
ENTROPY = r"H = -\sum_i p_i \ln p_i"
LISTED = 10


@dataclass(frozen=True, eq=False)
class Row:
    """One row of logits and what is made of it, over the whole vocabulary."""

    logits: Array  # (vocabulary,)
    sampling: Sampling
    error: float  # how far rounding may move a logit

    @property
    def drawn_error(self) -> float:
        """How far rounding may move the logarithm of what is drawn with."""
        return self.error / self.sampling.temperature

    @property
    def own(self) -> Distribution:
        return probabilities(self.logits)

    @property
    def drawn(self) -> Distribution:
        return self.sampling.of(self.logits)


def row_of(trace: Trace, logits: Array, sampling: Sampling) -> Row:
    return Row(logits, sampling, rounding(trace, logits))


def next_token(seen: Look) -> None:
    """The page's first view: one position, its likeliest next tokens, three ways to change them."""
    prediction = seen.trace.require_prediction()
    earlier = "; or choose an earlier token" * (len(seen.trace.tokens_of("decoder")) > 1)
    picture, choices = beside_words(
        "The first bar is the token that the model thinks most likely. Raise the temperature, and "
        f"that bar shrinks{earlier}."
    )
    with choices:
        position = _position(seen)
        sampling = sampling_controls(prediction.vocabulary)
        row = row_of(seen.trace, prediction.after(position), sampling)
    with picture:
        ids = draw_row(seen, row, "prediction-next")
        st.caption(_sums(row, ids))
        _what_follows(seen, row, position)
    with choices:
        st.latex(SOFTMAX)
        tokens = seen.model.tokenizer.named(ids)
        names = [f"{token_label(one.text, 24)} ({rank})" for rank, one in enumerate(tokens, 1)]
        listed = one_listed("Fill the formula with the numbers of", names, "prediction-filled")
        st.latex(with_numbers(row, ids[listed]))
        for sentence in in_words(sampling, row.logits, row.drawn_error):
            st.caption(plain(sentence))


def draw_row(
    seen: Look, row: Row, key: str, *, count: int = LISTED, chosen: int | None = None
) -> tuple[int, ...]:
    """Bars of a row's likeliest tokens, with the table behind them; the ids that are listed.

    chosen: the id of a token that was chosen: it is listed and marked in any case.
    """
    ids = likeliest(row.own, row.drawn, count).ids
    if chosen is not None and chosen not in ids:
        ids = (*ids[:-1], chosen)
    texts = [token.text for token in seen.model.tokenizer.named(ids)]
    logits = [float(row.logits[id_]) for id_ in ids]
    own, drawn = _bars(row.own, ids, row.error), _bars(row.drawn, ids, row.drawn_error)
    changed = row.sampling != UNCHANGED
    figure = distribution(
        texts,
        logits,
        own,
        drawn if changed else None,
        chosen=None if chosen is None else ids.index(chosen),
    )
    chart(figure, key)
    shares = f"%.{significant(max(row.error, row.drawn_error))}g"
    columns: dict[str, object] = {
        "token": [*map(token_label, texts), "all others"],
        "id": [*map(str, ids), "—"],
        "logit": [*logits, None],
        "probability": own.all,
    }
    if changed:
        columns["drawing probability"] = drawn.all
    formats = {"probability": shares, "drawing probability": shares}
    table(columns, key, decimals=settled(row.error), formats=formats)
    return ids


def _bars(shares: Distribution, ids: Sequence[int], error: float) -> Bars:
    listed = shares[list(ids)]
    unlisted = np.delete(shares, list(ids))
    return Bars([float(share) for share in listed], float(unlisted.sum()), error)


def _sums(row: Row, ids: Sequence[int]) -> str:
    """What the bars add up to, how many tokens stay, and how undecided the model is."""
    drawn, own = row.drawn, row.own
    bars = _bars(drawn, ids, row.drawn_error)
    undecided, blur = float(entropy(drawn)), row.drawn_error
    alike = np.exp(undecided)
    parts = [probability(share, blur) for share in (sum(bars.shares), bars.others)]
    whole = probability(sum(bars.all), 0.0)
    sentence = (
        f"Listed {parts[0]} + other {parts[1]} {sign_of_sum(parts, whole)} {whole}, over all "
        f"{len(drawn):,} tokens. {np.count_nonzero(drawn):,} of them can come next. Entropy "
        f"{nats(undecided, undecided * blur)} nats: as uncertain as a choice among "
        f"{rounded(alike, alike * undecided * blur, 1)} equally likely tokens"
    )
    if row.sampling == UNCHANGED:
        return f"{sentence}."
    without = float(entropy(own))
    return f"{sentence}; the model's own is {nats(without, without * row.error)}."


def _position(seen: Look) -> int:
    """The position whose next token is looked at; the last one whenever the text is another."""
    tokens = seen.trace.tokens_of("decoder")
    key, read = "prediction-position", "prediction-read"
    if st.session_state.get(read) != seen.request or key not in st.session_state:
        st.session_state[read] = seen.request
        st.session_state[key] = len(tokens) - 1
    position: int = st.selectbox(
        "After which token",
        range(len(tokens) - 1, -1, -1),
        format_func=lambda place: f"{token_label(tokens[place].text, 24)} ({place})",
        key=key,
    )
    return position


def _what_follows(seen: Look, row: Row, position: int) -> None:
    tokens = seen.trace.tokens_of("decoder")
    if position + 1 >= len(tokens):
        return
    following, own = tokens[position + 1], row.own
    rank = int((own > own[following.id]).sum()) + 1
    st.markdown(
        f"In your text {bold_token(following.text)} comes next. The model gave it "
        f"{probability(own[following.id], row.error)}, rank {rank:,} of {len(own):,}."
    )


def with_numbers(row: Row, id_: int) -> str:
    """The softmax of one token with its own numbers, as it is computed: the largest logit is taken
    off first, so that no exponential overflows. Token text never enters LaTeX."""
    logits, divisor, blur = row.logits.astype(np.float64), row.sampling.temperature, row.drawn_error
    warmed, drawn = temperature(row.logits, divisor), row.drawn
    total = np.exp((logits - logits.max()) / divisor).sum()
    logit, largest = (f"{value:.{settled(row.error)}f}" for value in (logits[id_], logits.max()))
    if largest.startswith("-"):
        largest = f"({largest})"
    summed, result = nats(total, total * blur), probability(warmed[id_], blur)
    share = rf"\frac{{e^{{\,({logit} - {largest}) / {divisor:g}}}}}{{{summed}}}"
    lines = [rf"p_i &= {_equated(share, result)}"]
    kept = warmed[drawn > 0].sum()
    if drawn[id_] == 0:
        lines.append(r"\text{then} &\;\; \text{cut: } \mathbf{0}")
    elif kept < 1 - 1e-12:
        above = "p_i" if result.startswith("<") else result
        share = rf"\frac{{{above}}}{{{probability(kept, blur)}}}"
        lines.append(rf"\text{{then}} &\;\; {_equated(share, probability(drawn[id_], blur))}")
    return r"\begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}"


def _equated(share: str, result: str) -> str:
    if result.startswith("<"):
        return rf"{share} < \mathbf{{{result[1:]}}}"
    return rf"{share} {sign(share, result)} \mathbf{{{result}}}"


LENS = r"p = \text{softmax}\bigl(\text{norm}(x_{\text{state}})\, W_{\text{out}}\bigr)"
LENS_WITHOUT_NORM = r"p = \text{softmax}\bigl(x_{\text{state}}\, W_{\text{out}}\bigr)"
COLUMNS = 12  # tokens side by side: more, and their words no longer fit the cells
SCROLLING = """<style>
.st-key-prediction-lens-scrolls { overflow-x: auto }
.st-key-prediction-lens-scrolls > div:has(.js-plotly-plot) { min-width: %dpx }
</style>"""
OWN, FINAL = "of the token shown", "of the final token"


def logit_lens(seen: Look) -> None:
    """The page's second view: state by token, what each would predict and how surely."""
    trace, prediction = seen.trace, seen.trace.require_prediction()
    seen.model.require("unembedding")
    tokens = [token.text for token in trace.tokens_of("decoder")]
    picture = st.container()
    st.markdown(
        "Each state of the stream is turned into a prediction by the model's own last step, as if "
        "no layer came after it. **What to look for.** Go down a column: where does the model's "
        "final prediction, in bold, appear for the first time?"
    )
    choice, window, formula = st.columns([4, 3, 4], gap="large", vertical_alignment="center")
    shown = choice.radio(
        "Colour: probability", (OWN, FINAL), horizontal=True, key="prediction-lens"
    )
    first, last = 0, len(tokens)  # the end of a long text
    if last > COLUMNS:
        key, end = f"prediction-window-{last}", last - 1
        last = window.slider("Last token shown", COLUMNS - 1, end, value=end, key=key) + 1
        first = last - COLUMNS
    formula.latex(LENS if not seen.model.config.norms_sum else LENS_WITHOUT_NORM)
    states = [state[first:last] for state in trace.residual["decoder"]]
    logits = prediction.rows(first, last)
    found, error = lens(seen.model.unembed, states, logits), rounding(trace, logits)
    names, named = state_names(trace, "decoder"), seen.model.tokenizer.named
    predicted = [[token.text for token in named(row.tolist())] for row in found.ids]
    shares = found.shares if shown == OWN else found.final
    with picture, st.container(key="prediction-lens-scrolls"):
        figure = lens_table(shares, predicted, states=names, tokens=tokens[first:last], error=error)
        st.html(SCROLLING % figure.layout.width)
        chart(figure, "prediction-lens-table")
    share, width = f"%.{significant(error)}g", last - first
    columns = {
        "state": np.repeat(names, width),
        "after": numbered_labels(tokens)[first:last] * len(names),
        "predicts": [token_label(text) for row in predicted for text in row],
        "its probability": found.shares.ravel(),
        "the final token's": found.final.ravel(),
    }
    formats = {"its probability": share, "the final token's": share}
    table(columns, "prediction-lens-rows", formats=formats)
    st.caption(
        "Check: the logits read from the last state differ from the model's own output by at most "
        f"{difference(found.difference)}, over {counted(width, 'position')}."
    )
