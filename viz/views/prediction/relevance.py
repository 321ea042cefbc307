"""Which tokens made a logit: each left out in turn, beside what gradients say of them."""

from functools import partial

import numpy as np
import streamlit as st

from model.analysis.attribution.head_matrices import table_factor
from model.analysis.attribution.relevance import Relevance, rank_correlation, relevances
from model.trace.arrays import Wide
from viz.elements.one_of import one_listed
from viz.figures.heatmap import Axis, heatmap, numbers_in_cells
from viz.notation.labels import token_label
from viz.notation.markdown import bold_token, plain
from viz.notation.numbers import led_by, sign_of_sum, signed
from viz.notation.words import sentences_of
from viz.shell.background import Offer, passes_or_offer
from viz.shell.panel import Caption, Formula, Panel, Part, Table
from viz.state.look import Look

say = sentences_of("prediction.relevance")

LEFT_OUT, INTEGRATED, BY_ATTENTION = "left out", "integrated gradients", "weights × gradients"
WRITTEN = 64  # tokens up to which the cells hold their numbers
FEW_STEPS = 0.1  # of the whole: an error above it asks for more steps
STEPS = (32, 128, 512)
_STEPS = (
    "prediction-relevance-steps"  # session state: the steps that were asked for, and of which run
)
OFFERED = 8  # likeliest next tokens
FORMULA = (
    r"\begin{aligned} \text{left out: } & z(x) - z(x \text{ with } \bar e \text{ for } e_j) \\"
    r" \text{integrated: } & (x_j - b_j) \cdot \tfrac1n \textstyle\sum_k \nabla_{x_j}\, z(x^{(k)}), \\"
    r" & x^{(k)} = b + \tfrac{k - 1/2}{n} (x - b) \\"
    r" \text{weights: } & \textstyle\sum_{l, h, i} a_{ij}\, \partial z / \partial a_{ij} \end{aligned}"
)


def tells_relevance(look: Look) -> bool:
    """Whether a token can be left out here: the model runs, and its token vectors are rows of one table."""
    if not look.model.runs or look.trace.intervention.patch is not None:
        return False
    try:
        table_factor(
            look.model, look.trace.summands[look.trace.source]["tokens"], look.trace.tokens
        )
    except (KeyError, ValueError):
        return False
    return True


def relevance(look: Look) -> Panel:
    """The three numbers of each token, as far as they are known."""
    model, trace = look.model, look.trace
    logits = trace.require_prediction().after(-1)
    likely = np.argsort(-logits, kind="stable")[:OFFERED].tolist()
    named = model.tokenizer.named(likely)
    chosen = one_listed(
        "Logit of",
        [token_label(token.text, 24) for token in named],
        f"prediction-relevance-{hash(tuple(likely))}",
    )
    others = [at for at in range(len(named)) if at != chosen]
    rival = one_listed(
        "Against",
        ["no other", *(token_label(named[at].text, 24) for at in others)],
        f"prediction-relevance-against-{hash(tuple(likely))}-{chosen}",
    )
    against = likely[others[rival - 1]] if rival else None
    more, steps = st.session_state.get(_STEPS, (None, STEPS[0]))
    if more != look.request:
        steps = STEPS[0]
    length = len(trace.tokens)
    offer = Offer(
        "prediction-relevance",
        say("text_run_times_token", length=length, steps=steps),
        f"Run it {length + steps} times",
        "passes",
        "done",
        length + steps,
        (length + 3 * steps) * (length + len(trace.target_tokens)) * model.parameter_count,
    )
    run = passes_or_offer(
        ("relevance", look.request, likely[chosen], against, steps),
        lambda run: relevances(
            model, trace, likely[chosen], against=against, steps=steps, turn=run.turn
        ),
        offer,
    )
    if run is None or (shares := run.found) is None:
        return Panel("prediction-relevance")
    texts = [token.text for token in trace.tokens]
    kinds = {
        LEFT_OUT: shares.left_out,
        INTEGRATED: shares.integrated,
        BY_ATTENTION: shares.by_attention,
    }
    values = np.array(list(kinds.values())).T
    figure = heatmap(
        values,
        rows=Axis("", texts),
        columns=Axis("", list(kinds), tokens=False),
        quantity="difference",
        words=numbers_in_cells(values, 2) if length <= WRITTEN else (),
    )
    figure.layout.xaxis.ticktext = [
        f"<b>{kind.replace(' gradients', '<br>gradients')}</b><br>{how}"
        for kind, how in zip(kinds, ("measured", "estimate", "estimate"), strict=True)
    ]
    logit = f"The logit of {bold_token(named[chosen].text)}"
    if rival:
        logit += f" minus that of {bold_token(named[others[rival - 1]].text)}"
    is_measured = not np.isnan(shares.left_out).any()
    return Panel(
        "prediction-relevance",
        look_for=_most(logit, shares, texts) if is_measured else "",
        picture=figure,
        chosen=likely[chosen],
        beside=_compared(shares, steps, rival > 0) if is_measured else [],
        below=[partial(_offer_steps, look, steps)] if steps < STEPS[-1] else [],
        table=Table({"token": [token_label(text) for text in texts], **kinds}),
    )


def _most(logit: str, shares: Relevance, texts: list[str]) -> str:
    """The token that is missed most, and which one the gradients name instead. logit: whose, in Markdown."""
    names = [f"{plain(token_label(text))} (position {at})" for at, text in enumerate(texts)]
    most, _ = led_by(names, shares.left_out, decimals=2)
    falls = "falls" if len(names) == 1 else "falls most"
    sentence = f"{logit} is {signed(f'{shares.logit:.2f}')}. " + (
        f"It {falls} without {most}: by {shares.left_out.max():.2f}."
        if round(float(shares.left_out.max()), 2) > 0
        else say("leaving_out_any")
    )
    if len(names) > 1 and np.isfinite(shares.integrated).all():
        place = int(shares.integrated.argmax())
        same = place == int(shares.left_out.argmax())
        sentence += say(
            "integrated_gradients_matters",
            choice="the same token" if same else f"**{names[place]}**",
            place_integrated=shares.integrated[place],
        )
    return sentence


def _compared(shares: Relevance, steps: int, is_contrast: bool) -> list[Part]:
    """How each estimate goes with the measurement, and what integrated gradients lack."""
    logit = say("difference_logits") if is_contrast else "the logit"
    lines = [
        f"{name}: {_correlation(shares.left_out, values)}"
        for name, values in ((INTEGRATED, shares.integrated), (BY_ATTENTION, shares.by_attention))
        if np.isfinite(values).all()
    ]
    parts: list[Part] = [
        say("rank_correlation_left", lines="; ".join(lines)),
        Caption(say("left_out_puts_mean", logit=logit)),
    ]
    if np.isfinite(shares.integrated).all():
        apart = shares.logit - shares.baseline
        added, whole, baseline, should = (
            signed(f"{one:.2f}")
            for one in (shares.integrated.sum(), shares.logit, shares.baseline, apart)
        )
        about = "" if sign_of_sum((should, baseline), whole) == "=" else "about "
        remark = say(
            "check_completeness_integrated",
            added=added,
            about=about,
            should=should,
            logit=logit,
            whole=whole,
            baseline=baseline,
            steps=steps,
            incomplete=shares.incomplete,
        )
        if shares.incomplete > FEW_STEPS * abs(apart):
            remark += say("more_tenth") + (say("way_nothing_text") * (steps == STEPS[-1]))
        parts.append(Caption(remark))
    return [Formula(FORMULA), *parts]


def _offer_steps(look: Look, steps: int) -> None:
    more = STEPS[STEPS.index(steps) + 1]
    st.button(
        f"Integrate in {more} steps",
        "prediction-relevance-more",
        on_click=st.session_state.update,
        args=({_STEPS: (look.request, more)},),
    )


def _correlation(measured: Wide, estimate: Wide) -> str:
    correlation = rank_correlation(measured, estimate)
    if correlation is None:
        return say("not_defined_few")
    return f"**{signed(f'{correlation:+.2f}')}**"
