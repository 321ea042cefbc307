"""Which tokens made a logit: each left out in turn, beside what gradients say of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from model.analysis.attribution.relevance import Relevance, rank_correlation, relevances
from model.serving.engine import Request
from model.trace.arrays import Wide
from model.trace.trace import Trace
from viz.elements.one_of import one_listed, one_of
from viz.figures.heatmap import Axis, heatmap
from viz.notation.labels import token_label
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import led_by, sign_of_sum, signed
from viz.shell.background import Offer, Passes, PassesOf, run_or_offer
from viz.shell.pictures import chart, look_for, table
from viz.state.look import Look

if TYPE_CHECKING:
    from model.run.model import Model

LEFT_OUT, INTEGRATED, BY_ATTENTION = "left out", "integrated gradients", "weights × gradients"
MEASURED, ESTIMATED = "(measured)", "(estimate)"
WRITTEN = 64  # tokens up to which the cells hold their numbers
FEW_STEPS = 0.1  # of the whole: an error above it asks for more steps
STEPS = (32, 128, 512)
_MORE = "Take more steps above."
_MOST = "On the way from nothing to the text the gradient changes too fast even for so many."
OFFERED = 8  # likeliest next tokens
FORMULA = (
    r"\begin{aligned} \text{left out: } & z(x) - z(x \text{ with } \bar e \text{ for } e_j) \\"
    r" \text{integrated: } & (x_j - b_j) \cdot \tfrac1n \textstyle\sum_k \nabla_{x_j}\, z(x^{(k)}), \\"
    r" & x^{(k)} = b + \tfrac{k - 1/2}{n} (x - b) \\"
    r" \text{weights: } & \textstyle\sum_{l, h, i} a_{ij}\, \partial z / \partial a_{ij} \end{aligned}"
)


@dataclass(frozen=True)
class Asked:
    """One logit at the end of a text."""

    request: Request
    token: int  # id
    steps: int  # of integrated gradients


class RelevanceRun(Passes[Relevance]):
    """Relevances under way or ended."""


@st.cache_resource
def runs() -> PassesOf[Asked, RelevanceRun]:
    """The runs of this process, shared by all visitors."""
    return PassesOf(RelevanceRun)


def relevance(seen: Look) -> None:
    """The three numbers of each token, as far as they are known."""
    picture, words = st.columns([3, 2], gap="large")
    with words:
        above = st.container()
        asked = Asked(seen.request, _token(seen), _steps())
    with picture, st.container():
        found = _found(seen, asked)
    if found is None:
        return
    rows = {
        LEFT_OUT: found.left_out,
        INTEGRATED: found.integrated,
        BY_ATTENTION: found.by_attention,
    }
    texts = [token.text for token in seen.trace.tokens]
    with picture:
        figure = _map(np.array(list(rows.values())).T, list(rows), texts)
        chart(figure, f"prediction-relevance-{asked.token}")
    with above:
        _say(seen, asked, found, texts)
    with words:
        _compare(found, asked.steps)
    columns: dict[str, object] = {"token": [token_label(text) for text in texts]}
    table(columns | rows, "prediction-relevance")


def _map(values: Wide, kinds: list[str], texts: list[str]) -> go.Figure:
    """values (token, kind): a row for each token, so that each has its name and its numbers."""
    how = [MEASURED, ESTIMATED, ESTIMATED]
    cells = [
        [signed(f"{value:z.2f}") if len(texts) <= WRITTEN else "" for value in row]
        for row in values.tolist()
    ]
    figure = heatmap(
        values,
        rows=Axis("", texts),
        columns=Axis("", kinds, tokens=False),
        quantity="difference",
        words=cells,
    )
    figure.layout.xaxis.ticktext = [
        f"{kind.replace(' gradients', '<br>gradients')}<br>{one}"
        for kind, one in zip(kinds, how, strict=True)
    ]
    return figure


def _token(seen: Look) -> int:
    """The id whose logit is explained: the likeliest to begin with."""
    logits = seen.trace.require_prediction().after(-1)
    likely = np.argsort(-logits, kind="stable")[:OFFERED].tolist()
    names = [token_label(token.text, 24) for token in seen.model.tokenizer.named(likely)]
    chosen = one_listed("Logit of", names, f"prediction-relevance-{hash(tuple(likely))}")
    token: int = likely[chosen]
    return token


def _steps() -> int:
    return one_of(f"Steps of {INTEGRATED}", STEPS, "prediction-relevance-steps")


def _found(seen: Look, asked: Asked) -> Relevance | None:
    """What is known, with its progress."""
    length = len(seen.trace.tokens)
    steps = asked.steps
    passes = length + steps
    weights = seen.model.parameter_count
    offer = Offer(
        "prediction-relevance",
        f"The text is run {length} times with one token left out, and {steps} times with gradients.",
        f"Run it {passes} times",
        "passes",
        "done",
        passes,
        (length + 3 * steps) * (length + len(seen.trace.target_tokens)) * weights,
    )
    run = run_or_offer(runs(), asked, partial(_work, seen.model, seen.trace, asked), offer)
    return None if run is None else run.found


def _work(model: "Model", trace: Trace, asked: Asked, run: RelevanceRun) -> Iterator[Relevance]:
    return relevances(model, trace, asked.token, steps=asked.steps, turn=run.turn)


def _say(seen: Look, asked: Asked, found: Relevance, texts: list[str]) -> None:
    """The token that is missed most, and which one the gradients name instead."""
    if np.isnan(found.left_out).any():
        return
    (token,) = seen.model.tokenizer.named([asked.token])
    names = [f"{plain(token_label(text))} (position {at})" for at, text in enumerate(texts)]
    most, _ = led_by(names, found.left_out, decimals=2)
    falls = "falls" if len(names) == 1 else "falls most"
    said = f"The logit of {bold_token(token.text)} is {signed(f'{found.logit:.2f}')}. " + (
        f"It {falls} without {most}: by {found.left_out.max():.2f}."
        if found.left_out.max() > 0
        else "Leaving out any one token does not lower it."
    )
    if len(names) > 1 and np.isfinite(found.integrated).all():
        place = int(found.integrated.argmax())
        same = place == int(found.left_out.argmax())
        said += (
            f" By integrated gradients {'the same token' if same else f'**{names[place]}**'} matters most: "
            f"{signed(f'{found.integrated[place]:+.2f}')}."
        )
    look_for(said)


def _compare(found: Relevance, steps: int) -> None:
    """How each estimate goes with the measurement, and what integrated gradients lack."""
    if np.isnan(found.left_out).any():
        return
    lines = [
        f"{name}: {_correlation(found.left_out, values)}"
        for name, values in ((INTEGRATED, found.integrated), (BY_ATTENTION, found.by_attention))
        if np.isfinite(values).all()
    ]
    st.markdown(f"Rank correlation with **left out** (Spearman): {'; '.join(lines)}.")
    st.caption(
        "“Left out” replaces a token’s vector by the mean vector of the vocabulary and measures how far the "
        "logit falls; its position stays. The two others are estimates from gradients. Where an estimate "
        "differs from the measured one, trust the measured one. What the weights times their gradients say "
        "belongs to the positions that are attended to: after the first layer these hold more than their "
        "own token."
    )
    if np.isfinite(found.integrated).all():
        apart = found.logit - found.baseline
        added, logit, baseline, should = (
            signed(f"{one:.2f}")
            for one in (found.integrated.sum(), found.logit, found.baseline, apart)
        )
        about = "" if sign_of_sum((should, baseline), logit) == "=" else "about "
        st.caption(
            f"Check of completeness: the integrated gradients add up to {added}. They should give "
            f"{about}{should}: the logit, {logit}, minus the one with every token left out, {baseline}. "
            f"With {steps} steps the difference is {found.incomplete:.2g}."
            + (
                f" That is more than a tenth of it. {_MORE if steps < STEPS[-1] else _MOST}"
                if found.incomplete > FEW_STEPS * abs(apart)
                else ""
            )
        )
    with st.expander("The formulas"):
        st.latex(FORMULA)


def _correlation(measured: Wide, estimate: Wide) -> str:
    found = rank_correlation(measured, estimate)
    return (
        "not defined for so few or equal numbers"
        if found is None
        else f"**{signed(f'{found:+.2f}')}**"
    )
