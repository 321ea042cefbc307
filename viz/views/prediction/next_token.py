"""The next token after a chosen position: logits, softmax, temperature, top-k and top-p; and the logit
lens."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

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
    top_k,
)
from model.trace.arrays import Array
from model.trace.trace import Trace
from model.worked.equality import sign
from viz.figures.bars import Bars, distribution
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import (
    fixed,
    nats,
    power_of_ten,
    probability,
    rounded,
    settled,
    sign_of_sum,
    significant,
)
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Formula, Panel, Part, Table
from viz.state.look import Look

say = sentences_of("prediction.next_token")

UNCHANGED = Sampling()
_DEFAULTS = {
    "prediction-temperature": UNCHANGED.temperature,
    "prediction-top-k": 0,
    "prediction-top-p": UNCHANGED.top_p,
}
TOP_K = (*range(1, 11), 20, 30, 40, 50, 100, 200, 500, 1_000, 0)  # 0: all tokens


def divisor_control() -> float:
    """The temperature, by which logits are divided first; the link holds it."""
    return st.slider(
        "Temperature",
        0.1,
        3.0,
        value=1.0,
        step=0.1,
        format="%.1f",
        key="prediction-temperature",
        bind="query-params",
    )


def cut_controls() -> tuple[int | None, float]:
    """How many of the likeliest tokens stay, and how probable they must be together; the link holds both."""
    count = st.select_slider(
        "Top-k",
        TOP_K,
        value=0,
        format_func=lambda count: f"{count:,}" if count else "all",
        key="prediction-top-k",
        bind="query-params",
    )
    share = st.slider(
        "Top-p",
        0.05,
        1.0,
        value=1.0,
        step=0.05,
        key="prediction-top-p",
        bind="query-params",
    )
    return count or None, share


def _offer_reset() -> None:
    st.button("Reset", "prediction-back", on_click=st.session_state.update, args=(_DEFAULTS,))


def in_words(chosen: Sampling, logits: Array, error: float) -> list[str]:
    """A sentence for each of the three that is on: what it does to this row of logits, (vocabulary,). error:
    how far rounding may move the logarithm of what is drawn with."""
    warmed = temperature(logits, chosen.temperature)
    cut = warmed if chosen.top_k is None else top_k(warmed, chosen.top_k)
    drawn, divisor, said = chosen.of(logits), f"{chosen.temperature:g}", []
    if chosen.temperature != 1:
        gain = "likely" if chosen.temperature < 1 else "unlikely"
        said.append(say("temperature_divides_every", divisor=divisor, gain=gain))
    if chosen.top_k is not None:
        said.append(
            say(
                "top_k_keeps_tokens",
                count_nonzero=np.count_nonzero(cut),
                cut=len(cut),
                sum_warmed=probability(warmed[cut > 0].sum(), error),
            )
        )
    if chosen.top_p != 1:
        said.append(
            say(
                "top_p_keeps_smallest",
                top_p=chosen.top_p,
                count_nonzero=np.count_nonzero(drawn),
                cut_count_nonzero=np.count_nonzero(cut),
                sum_cut=probability(cut[drawn > 0].sum(), error),
            )
        )
    return said


SOFTMAX = r"p_i = \frac{e^{\,z_i / T}}{\sum_j e^{\,z_j / T}}"
ENTROPY = r"H = -\sum_i p_i \ln p_i"
LISTED = 10
_FILLED = (
    "prediction-filled"  # session state: the id of the token whose numbers stand in the formula
)


@dataclass(frozen=True, eq=False)
class TokenRow:
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


def row_of(trace: Trace, logits: Array, sampling: Sampling) -> TokenRow:
    return TokenRow(logits, sampling, rounding(trace, logits))


def next_token(look: Look) -> Panel:
    """One position, its likeliest next tokens, and three ways to change them."""
    trace, prediction = look.trace, look.trace.require_prediction()
    tokens = trace.tokens_of("decoder")
    key, read = "prediction-position", "prediction-read"
    if st.session_state.get(read) != look.request or key not in st.session_state:
        st.session_state.update({read: look.request, key: len(tokens) - 1, _FILLED: None})
    position: int = st.selectbox(
        "After",
        range(len(tokens) - 1, -1, -1),
        format_func=[
            f"{token_label(token.text, 24)} ({at})" for at, token in enumerate(tokens)
        ].__getitem__,
        key=key,
    )
    divisor = divisor_control()
    with st.popover("Top-k, top-p"):
        sampling = Sampling(divisor, *cut_controls())
    row = row_of(trace, prediction.after(position), sampling)
    ids = listed_ids(row)
    filled = st.session_state.get(_FILLED)
    filled = filled if filled in ids else ids[0]
    following: list[Part] = []
    if position + 1 < len(tokens):
        token, own = tokens[position + 1], row.own
        rank = int((own > own[token.id]).sum()) + 1
        following = [
            say(
                "text_comes_next",
                token=token.text,
                own=probability(own[token.id], row.error),
                rank=rank,
                own_2=len(own),
            )
        ]
    return replace(
        bars_of(look, row, "prediction-next", ids, filled),
        look_for=_two_likeliest(look, row),
        clicked=lambda number: (
            st.session_state.update({_FILLED: ids[number % (len(ids) + 1)]})
            if number % (len(ids) + 1) < len(ids)
            else None
        ),
        chosen=filled,
        beside=[
            Formula(SOFTMAX),
            Formula(with_numbers(row, filled)),
            Caption(say("numbers_click_another", chip=_chip(look, filled))),
            *(Caption(plain(words)) for words in in_words(sampling, row.logits, row.drawn_error)),
            *([_offer_reset] if sampling != UNCHANGED else []),
            partial(_undecided, row),
            Caption(_sums(row, ids)),
            *following,
        ],
    )


def _chip(look: Look, id_: int) -> str:
    """A token as a word of a sentence: what is a sign alone would read as a typing error."""
    (token,) = look.model.tokenizer.named([id_])
    return f"`{token_label(token.text, 24)}`"


def _two_likeliest(look: Look, row: TokenRow) -> str:
    """What the distance of two logits makes of two probabilities."""
    first, second = likeliest(row.drawn, row.drawn, 2).ids
    shares, divisor = row.drawn, row.sampling.temperature
    has = f"{_chip(look, first)} has a probability of {fixed(float(shares[first]), 2)}"
    if not shares[second]:
        return say("every_other_token", has=has)
    gap = float(row.logits[first]) - float(row.logits[second])
    ratio = np.exp(gap / divisor)
    times = power_of_ten(ratio, 2) if ratio >= 1e6 else f"{ratio:,.{0 if ratio >= 100 else 1}f}"
    power = f"{gap:.2f}" if divisor == 1 else f"{gap:.2f} / {divisor:g}"
    return say(
        "logit_above_softmax", has=has, gap=gap, chip=_chip(look, second), power=power, times=times
    )


def listed_ids(row: TokenRow, count: int = LISTED, chosen: int | None = None) -> tuple[int, ...]:
    """A row's likeliest tokens. chosen: the id of a token that is listed in any case."""
    ids = likeliest(row.own, row.drawn, count).ids
    return ids if chosen is None or chosen in ids else (*ids[:-1], chosen)


def bars_of(
    look: Look, row: TokenRow, name: str, ids: Sequence[int], chosen: int | None = None
) -> Panel:
    """Bars of a row's tokens, with the table behind them.

    Args:
        look: whose tokenizer names the tokens.
        row: their logits and probabilities.
        name: of the panel.
        ids: the tokens.
        chosen: the id of the one that was chosen, which is marked.
    """
    texts = [token.text for token in look.model.tokenizer.named(ids)]
    logits = [float(row.logits[id_]) for id_ in ids]
    own, drawn = _bars(row.own, ids, row.error), _bars(row.drawn, ids, row.drawn_error)
    changed = row.sampling != UNCHANGED
    columns: dict[str, object] = {
        "token": [*map(token_label, texts), "all others"],
        "id": [*map(str, ids), "—"],
        "logit": [*logits, None],
        "probability": own.all,
    }
    if changed:
        columns["drawing probability"] = drawn.all
    shares = f"%.{significant(max(row.error, row.drawn_error))}g"
    return Panel(
        name,
        picture=distribution(
            texts,
            logits,
            own,
            drawn if changed else None,
            others=len(row.logits) - len(ids),
            divisor=row.sampling.temperature,
            chosen=None if chosen is None else ids.index(chosen),
        ),
        table=Table(
            columns,
            decimals=settled(row.error),
            formats={"probability": shares, "drawing probability": shares},
        ),
    )


def _bars(shares: Distribution, ids: Sequence[int], error: float) -> Bars:
    listed = shares[list(ids)]
    unlisted = np.delete(shares, list(ids))
    return Bars([float(share) for share in listed], float(unlisted.sum()), error)


def _undecided(row: TokenRow) -> None:
    """The entropy of what is drawn with, as the number of equally likely tokens that has the same one."""
    own, drawn = float(entropy(row.own)), float(entropy(row.drawn))
    alike, blur = np.exp(drawn), row.drawn_error
    st.metric(say("undecided_among"), f"{rounded(alike, alike * drawn * blur, 1)} equal tokens")
    without = say("model_own", own=nats(own, own * row.error)) * (row.sampling != UNCHANGED)
    st.caption(f"Entropy {nats(drawn, drawn * blur)} nats.{without}")


def _sums(row: TokenRow, ids: Sequence[int]) -> str:
    """What the bars add up to, and how many tokens stay."""
    drawn = row.drawn
    bars = _bars(drawn, ids, row.drawn_error)
    parts = [probability(share, row.drawn_error) for share in (sum(bars.shares), bars.others)]
    whole = probability(sum(bars.all), 0.0)
    return say(
        "listed_others_tokens",
        first_parts=parts[0],
        parts=parts[1],
        sign_of_sum=sign_of_sum(parts, whole),
        whole=whole,
        count_nonzero=np.count_nonzero(drawn),
        drawn=len(drawn),
    )


def with_numbers(row: TokenRow, id_: int) -> str:
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
