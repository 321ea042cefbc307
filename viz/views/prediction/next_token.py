"""The next token after a chosen position: logits, softmax, temperature, top-k and top-p; and the logit
lens."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

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
from viz.elements.one_of import one_listed
from viz.figures.bars import Bars, distribution
from viz.notation.labels import token_label
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import (
    nats,
    probability,
    rounded,
    settled,
    sign_of_sum,
    significant,
)
from viz.shell.panel import Caption, Formula, Panel, Part, Table
from viz.state.look import Look

UNCHANGED = Sampling()
_DEFAULTS = {
    "prediction-temperature": UNCHANGED.temperature,
    "prediction-top-k": UNCHANGED.top_k,
    "prediction-top-p": UNCHANGED.top_p,
}
WHOLE = "%g"  # of a number that a link may fill: with “inf” in it, a box of ints would end the page


def sampling_controls(vocabulary: int) -> tuple[Sampling, DeltaGenerator]:
    """The three controls in the order in which they apply, and the way back; the link holds them. Also the
    box in which further settings have room."""
    divisor = st.slider(
        "Temperature",
        0.1,
        3.0,
        value=1.0,
        step=0.1,
        key="prediction-temperature",
        bind="query-params",
    )
    more = st.popover("More settings")
    with more:
        count = st.number_input(
            "Top-k: number of tokens to keep",
            1.0,
            value=None,
            step=1.0,
            format=WHOLE,
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
        st.button(
            "Reset to the model's own distribution",
            key="prediction-back",
            on_click=st.session_state.update,
            args=(_DEFAULTS,),
        )
    return chosen, more


def in_words(chosen: Sampling, logits: Array, error: float) -> list[str]:
    """A sentence for each of the three: what it does to this row of logits, (vocabulary,). error: how
    far rounding may move the logarithm of what is drawn with."""
    warmed = temperature(logits, chosen.temperature)
    cut = warmed if chosen.top_k is None else top_k(warmed, chosen.top_k)
    drawn, divisor = chosen.of(logits), f"{chosen.temperature:g}"
    gain = "Likely" if chosen.temperature < 1 else "Unlikely"
    return [
        "Temperature 1 leaves the probabilities as they are: below 1 the likely tokens gain, above 1 the "
        "unlikely ones."
        if chosen.temperature == 1
        else f"Temperature {divisor} divides every logit by {divisor}. {gain} tokens gain.",
        "Top-k is off: all tokens are kept."
        if chosen.top_k is None
        else f"Top-k keeps {np.count_nonzero(cut):,} of {len(cut):,} tokens. Together they had a "
        f"probability of {probability(warmed[cut > 0].sum(), error)}.",
        "Top-p is off: no share is cut."
        if chosen.top_p == 1
        else f"Top-p keeps the smallest set of likely tokens that has at least {chosen.top_p:g}: "
        f"{np.count_nonzero(drawn):,} of {np.count_nonzero(cut):,}, which have "
        f"{probability(cut[drawn > 0].sum(), error)}.",
    ]


SOFTMAX = r"p_i = \frac{e^{\,z_i / T}}{\sum_j e^{\,z_j / T}}"
ENTROPY = r"H = -\sum_i p_i \ln p_i"
LISTED = 10


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
        st.session_state.update({read: look.request, key: len(tokens) - 1})
    position: int = st.selectbox(
        "After which token",
        range(len(tokens) - 1, -1, -1),
        format_func=[
            f"{token_label(token.text, 24)} ({at})" for at, token in enumerate(tokens)
        ].__getitem__,
        key=key,
    )
    sampling, more = sampling_controls(prediction.vocabulary)
    row = row_of(trace, prediction.after(position), sampling)
    ids = listed_ids(row)
    named = look.model.tokenizer.named(ids)
    names = [f"{token_label(token.text, 24)} ({rank})" for rank, token in enumerate(named, 1)]
    with more:
        filled = one_listed("Fill the formula with the numbers of", names, "prediction-filled")
    following: list[Part] = []
    if position + 1 < len(tokens):
        token, own = tokens[position + 1], row.own
        rank = int((own > own[token.id]).sum()) + 1
        following = [
            f"In your text {bold_token(token.text)} comes next. The model gave it "
            f"{probability(own[token.id], row.error)}, rank {rank:,} of {len(own):,}."
        ]
    earlier = "; or choose an earlier token" * (len(tokens) > 1)
    return replace(
        bars_of(look, row, "prediction-next", ids),
        look_for="The first bar is the token that the model thinks most likely. Raise the temperature, and "
        f"that bar shrinks{earlier}.",
        beside=[
            Formula(SOFTMAX),
            Formula(with_numbers(row, ids[filled])),
            *(Caption(plain(words)) for words in in_words(sampling, row.logits, row.drawn_error)),
        ],
        below=[Caption(_sums(row, ids)), *following],
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


def _sums(row: TokenRow, ids: Sequence[int]) -> str:
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
