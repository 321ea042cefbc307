"""The next token after a chosen position: logits, the softmax, and what is drawn from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from model.analysis.heads.statistics import entropy
from model.analysis.run_comparison import rounding
from model.analysis.tokens.prediction import (
    Distribution,
    Sampling,
    likeliest,
    probabilities,
    temperature,
)
from model.trace.arrays import Array
from model.trace.trace import Trace
from model.worked.equality import sign
from viz.elements.one_of import one_listed
from viz.figures.bars import Bars, distribution
from viz.notation.labels import token_label
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import nats, probability, rounded, settled, sign_of_sum, significant
from viz.shell.pictures import beside_words, chart, table
from viz.state.look import Look
from viz.views.prediction.sampling import UNCHANGED, in_words, sampling_controls

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
