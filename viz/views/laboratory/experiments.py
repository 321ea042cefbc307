"""Five points of attention, measured live, each with its picture and its check: why scores are divided, what
comes through the softmax, how and with what they are masked, and windows and biases of distances."""

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.distance_masks import Preview, alibi, chunked, windowed
from model.analysis.distance_masks import slopes as head_slopes
from model.analysis.heads.statistics import distance
from model.analysis.softmax_experiments import (
    ScorePrecision,
    mask_value_effect,
    routes,
    slopes,
    slopes_by_spread,
    spread,
)
from model.nn.stages import STAGES
from model.trace.arrays import Array, BoolArray
from model.trace.unproven import NotShownError
from model.worked.notes import TWO_LAYERS
from model.worked.self_attention import CLAIM
from viz.elements.one_of import one_of
from viz.figures.curves import PLAIN, SCALED, MeasuredCurve, curves
from viz.figures.heatmap import Axis, heatmap
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import counted, difference, power_of_ten
from viz.notation.theme import WEIGHT, QuantityName
from viz.shell.panel import Caption, Check, Columns, Formula, Panel, Part, Table
from viz.shell.pictures import of_all_pairs
from viz.state.intervention_words import MASK_VALUES, mask_value_name
from viz.state.look import Look
from viz.state.session import current, intervene

VARIANCE = (
    r"\begin{aligned} \mathrm{Var}(q \cdot k) &= \sum_{c=1}^{d_k} \mathrm{Var}(q_c k_c) = d_k \\"
    r" \mathrm{Var}\!\left(\tfrac{q \cdot k}{\sqrt{d_k}}\right) &= 1 \end{aligned}"
)
SLOPE = (
    r"\frac{\partial p_i}{\partial s_i} = p_i (1 - p_i) \le \tfrac14 \qquad"
    r"\frac{\partial p_i}{\partial s_j} = -p_i\, p_j"
)
WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)
_CLAIMED = f"{CLAIM[0]:g} to {CLAIM[1]:g}"
DEVIATIONS = tuple(float(each) for each in np.geomspace(0.1, 30, 26))
LARGEST_SEED = 999_999_999
_MEASURES: dict[str, tuple[str, str]] = {
    "Variance": ("variance", "variance of the scores"),
    "Entropy": ("entropy", "entropy in nats"),
    "Largest weight": ("largest", "largest weight, mean"),
    "p(1 − p)": ("slope", "p(1 − p), mean"),
}


ROUTES = (
    r"\text{softmax}(s + M)_{ij} = \frac{m_{ij}\, \text{softmax}(s)_{ij}}"
    r"{\sum_l m_{il}\, \text{softmax}(s)_{il}}"
)
MASK_VALUE = (
    r"w_{ij} = \frac{e^{\,\text{mask value}}}{\sum_l e^{\,\text{masked}_{il}}}"
    r"\qquad e^{-\infty} = 0, \quad e^{0} = 1"
)
ROOMY = 7  # up to so many rows and columns a cell has room for a power of ten
BEFORE, AFTER, APART = "Masked before", "Cut after", "Difference"


WINDOW, CHUNKS, ALIBI = "Window", "Chunks", "ALiBi"
FORMULAS = {
    "causal": r"m_{ij} = \begin{cases} 1 & 0 \le i - j < w \\ 0 & \text{else} \end{cases}",
    WINDOW: r"m_{ij} = \begin{cases} 1 & |i - j| \le \lfloor \tfrac{w - 1}{2} \rfloor \\ 0 & \text{else} "
    r"\end{cases}",
    CHUNKS: r"m_{ij} = \begin{cases} 1 & \lfloor i / w \rfloor = \lfloor j / w \rfloor \\ 0 & \text{else} "
    r"\end{cases}",
    ALIBI: r"\begin{aligned} s'_{ij} &= s_{ij} - m_h \cdot |i - j| \\ m_h &= 2^{-8 (h + 1) / H} "
    r"\end{aligned}",
}
_FIRST = 4  # the width at the start


def measured_points(look: Look) -> Panel:
    """One point at a time; the first is sampled, the last three are of the shown head."""
    points: dict[str, Callable[[Look], Panel]] = {
        "Why √dₖ": why_scale,
        "Gradient through softmax": gradient,
        "Two routes to a mask": two_routes,
        "Which mask value": mask_values_compared,
        "Windows and distances": distance_masks,
    }
    return points[one_of("Experiment", list(points), "laboratory-point")](look)


_spread = lru_cache(maxsize=64)(spread)


def _keys() -> int:
    return int(st.number_input("Keys in a row", 2, 64, 16, key="laboratory-keys"))


def why_scale(look: Look) -> Panel:
    """A measure of sampled scores at every width of a head, as they are and divided."""
    name, unit = _MEASURES[one_of("Measure", list(_MEASURES), "laboratory-measure")]
    keys = _keys()
    seed = int(st.number_input("Seed", 0, LARGEST_SEED, 0, key="laboratory-draw"))
    own = look.attention.query.shape[-1]
    spreads = [_spread(width, keys=keys, seed=seed) for width in WIDTHS]
    law = name == "variance"  # drawn beside its law
    columns: dict[str, list[float]] = {}
    for measure in dict.fromkeys(("variance", "entropy", "largest", name)):
        columns[measure] = [getattr(one.plain, measure) for one in spreads]
        columns[f"{measure}, scaled"] = [getattr(one.scaled, measure) for one in spreads]
    ones = [1.0] * len(WIDTHS)
    drawn = (
        MeasuredCurve("not scaled", columns[name], PLAIN, WIDTHS if law else None),
        MeasuredCurve("divided by √dₖ", columns[f"{name}, scaled"], SCALED, ones if law else None),
    )
    off = max(abs(one.scaled.variance - 1) for one in spreads)
    return Panel(
        f"laboratory-spread-{name}",
        look_for="A sum of dₖ products of variance 1 has variance dₖ. After division by √dₖ the "
        "variance is 1 again at every width, so the weights stay as even as before. Without "
        "the division one key takes nearly everything, and no gradient gets through.",
        picture=curves(
            WIDTHS, drawn, axis="width of a head, dₖ", unit=unit, logarithmic=law, mark=own
        ),
        beside=[Formula(VARIANCE)],
        below=[
            Caption(
                f"Sampled: 400 rows of {keys} keys at each width, independent standard normal numbers, "
                f"seed {seed}. Dotted line: dₖ = {own}, the width of this model's heads."
            )
        ],
        check=Check(
            f"Check: the scaled variance differs from 1 by at most {off:.1%}, by chance.",
            f"largest difference {off:.1%}",
        ),
        table=Table({"dₖ": WIDTHS, **columns}),
    )


def gradient(look: Look) -> Panel:
    """The slopes of the softmax: their mean by the spread of the scores, or those of one row."""
    shown = one_of("Show", ("By spread of the scores", "One row"), "laboratory-gradient")
    return _one_row() if shown == "One row" else _by_spread()


def _by_spread() -> Panel:
    """Mean p(1 - p) of normal scores, from nearly equal ones to far apart ones."""
    keys, unit = _keys(), "p(1 − p), mean"
    means = slopes_by_spread(DEVIATIONS, keys=keys)
    low, high = CLAIM
    inside = [at for at, value in zip(DEVIATIONS, means, strict=True) if low <= value <= high]
    holds = (
        f"for scores with a standard deviation from {inside[0]:.2g} to {inside[-1]:.2g}."
        if inside
        else f"for no spread, and equal scores give {(1 - 1 / keys) / keys:.3f}."
    )
    return Panel(
        "laboratory-slopes",
        picture=curves(
            DEVIATIONS,
            (MeasuredCurve(f"{keys} keys", means.tolist(), WEIGHT),),
            axis="standard deviation of the scores",
            unit=unit,
            band=CLAIM,
        ),
        beside=[
            Formula(SLOPE),
            "The slope of each weight with respect to its own score is p(1 − p). "
            f"The notes call a mean of {_CLAIMED} frequent. With {keys} keys that holds {holds} "
            "Where scores are far apart the slope is nearly 0: the softmax is saturated.",
        ],
        below=[
            Caption(
                f"The exact mean for {keys} independent normal scores with each standard deviation. Blue "
                f"band: {_CLAIMED}, which “{TWO_LAYERS.title}” calls frequent."
            )
        ],
        table=Table({"standard deviation": DEVIATIONS, unit: means}),
    )


def _one_row() -> Panel:
    """All derivatives of one row, by the formula and by autograd."""
    written = st.text_input("Scores of one row", "2, 4, 1", key="laboratory-scores")
    try:
        row = slopes(_numbers(written))
    except ValueError as refusal:
        words = f"{refusal} Separate the numbers with commas."
        return Panel("laboratory-jacobian", beside=[Formula(SLOPE), partial(st.warning, words)])
    names = [str(at) for at in range(len(row.weights))]
    weights = ", ".join(f"{weight:.4f}" for weight in row.weights)
    return Panel(
        "laboratory-jacobian",
        picture=heatmap(
            row.jacobian,
            rows=Axis("weight of key", names, tokens=False),
            columns=Axis("score of key", names, tokens=False),
            quantity="difference",
            limit=0.25,
            decimals=4 if len(names) <= ROOMY else 2,
            square=True,
        ),
        beside=[
            Formula(SLOPE),
            Caption(
                f"Weights {weights}. A row of derivatives adds up to 0: what one key gains the others lose."
            ),
        ],
        check=Check(
            f"Check: PyTorch's autograd differs by at most {difference(row.check)}.", row.check
        ),
        table=Table({f"score {name}": row.jacobian[:, int(name)] for name in names}),
    )


def _numbers(written: str) -> list[float]:
    """Up to twelve numbers between commas. Raises ValueError for anything else."""
    try:
        values = [float(part) for part in written.split(",") if part.strip()]
    except ValueError:
        raise ValueError("This is not a list of numbers.") from None
    if not 1 <= len(values) <= 12 or not all(abs(each) <= 1e6 for each in values):
        raise ValueError("Enter 1 to 12 numbers, none larger than a million.")
    return values


def _masked_head(look: Look) -> tuple[Array, BoolArray, list[Part]]:
    """Raw scores of the shown head and a mask that leaves each row a key: the model's own, or a
    causal one where it hides nothing; and remarks on them."""
    attention, remarks = look.attention, list[Part]()
    scores, own = attention.scores(look.head), attention.mask_of(look.head)
    if own is None or own.all() or not own.any(-1).all():
        remarks.append(
            Caption(
                "This head's own mask hides nothing, or hides a whole row, so a causal mask is used "
                "here."
            )
        )
        own = np.tri(*scores.shape, dtype=np.bool_)
    if any(stage.is_in(attention) for stage in STAGES):
        remarks.append(Caption("This head’s cap, bias and sink play no part here."))
    return scores, own, remarks


@of_all_pairs
def two_routes(look: Look) -> Panel:
    """The future masked before the softmax, or cut away after it and the rows renormalized."""
    kind = one_of("Picture", (BEFORE, AFTER, APART), "laboratory-route", default=APART)
    factors = (1, 2, 5, 10, 20, 50, 100)
    factor = st.select_slider("Scores times", factors, key="laboratory-stretch")
    scores, mask, remarks = _masked_head(look)
    both = routes(scores * np.float32(look.attention.scale * factor), mask)
    apart, lost = both.after - both.before, int(both.lost.sum())
    drawn = {BEFORE: both.before, AFTER: both.after, APART: apart}[kind]
    queries, keys = look.labels
    # very small numbers as words for the cells; nothing where there are too many for them
    words = [
        [power_of_ten(value, 1) for value in row]
        for row in (drawn.tolist() if max(drawn.shape) <= ROOMY else [])
    ]
    figure = heatmap(
        drawn,
        rows=Axis("query", queries),
        columns=Axis("key", keys),
        square=True,
        quantity="difference" if kind == APART else "weight",
        blocked=~mask,
        limit=max(float(np.abs(drawn).max()), 1e-7),
        words=words if kind == APART else None,
    )
    if kind == APART:
        figure.data[-1].colorbar.tickformat = ".0e"
    meaning = "They are equal up to rounding. Multiply the scores to see which one breaks down."
    if lost:
        meaning = (
            f"{lost} of {counted(len(mask), 'row')} {'is' if lost == 1 else 'are'} lost on "
            "the second one: in float32 all allowed weights of such a row became 0, and "
            "nothing is left to renormalize. The first route does not have this problem, which "
            "is why models use it."
        )
    return Panel(
        f"laboratory-routes-{kind == APART}",
        picture=figure,
        beside=[
            *remarks,
            Formula(ROUTES),
            f"Largest difference between the two routes: **{difference(both.difference)}**. {meaning}",
        ],
        table=Table(
            {
                "query": [str(at) for at in range(len(mask))],
                "largest difference": np.abs(apart).max(-1),
                "row lost": both.lost,
            },
            decimals=9,
        ),
    )


@of_all_pairs
def mask_values_compared(look: Look) -> Panel:
    """−∞, −1e9, −1e20 and 0, before and after scaling, in two precisions."""
    precision: ScorePrecision = one_of(
        "Computed in", ("float32", "float16"), "laboratory-precision"
    )
    scores, mask, remarks = _masked_head(look)
    rows = []
    for mask_value in MASK_VALUES:
        for early in (False, True):
            effect = mask_value_effect(
                scores,
                mask,
                look.attention.scale,
                mask_value,
                precision=precision,
                before_scaling=early,
            )
            refused = ", masked_fill refuses it" if effect.refused else ""
            rows.append(
                {
                    "mask value": mask_value_name(mask_value),
                    "written": "before scaling" if early else "after scaling",
                    f"as {precision}": f"{mask_value_name(effect.stored)}{refused}",
                    "largest weight on a masked key": f"{effect.leaked:.4f}",
                    "largest difference from −∞": difference(effect.difference),
                    "a row with every key masked": (
                        "0/0, undefined" if effect.empty is None else f"{effect.empty:.4f} each"
                    ),
                }
            )
    return Panel(
        "laboratory-mask-values",
        look_for="A mask value of 0 hides nothing, because e⁰ = 1. In float32 all large negative mask "
        "values give the same weights as −∞, whether they are set before or after scaling. "
        "They differ only in a row with every key masked: −∞ gives 0/0, a finite mask value "
        "gives a uniform row. float16 cannot represent −1e9.",
        picture=partial(st.dataframe, pd.DataFrame(rows), hide_index=True),
        below=[
            *remarks,
            Formula(MASK_VALUE),
            Caption(
                "Computed now by PyTorch on this head's scores. The app itself sets a row with every key "
                "masked to 0 and never divides 0 by 0."
            ),
        ],
    )


@of_all_pairs
def distance_masks(look: Look) -> Panel:
    """A mask or bias of distances, and the shown head's weights with it."""
    attention = look.attention
    if attention.kind == "cross":
        raise NotShownError(
            "Windows and biases of distances belong to self-attention: choose a layer of that kind."
        )
    kind = one_of("Mask", (WINDOW, CHUNKS, ALIBI), "laboratory-distances")
    preview, words = (_biased if kind == ALIBI else _narrowed)(look, kind)
    queries, keys = (
        Axis(name, texts) for name, texts in zip(("query", "key"), look.labels, strict=True)
    )
    added = preview.added if kind == ALIBI else preview.allowed
    pair: list[tuple[Array | BoolArray, QuantityName | None]] = [
        (added, "score" if kind == ALIBI else None),
        (preview.weights, "weight"),
    ]
    pictures = [
        Panel(
            f"laboratory-distances-{kind}-{quantity == 'weight'}",
            picture=heatmap(
                drawn.astype(np.float32),
                rows=queries,
                columns=keys,
                square=True,
                quantity=quantity,
                blocked=~preview.allowed,
                decimals=2 if quantity else 0,
            ),
        )
        for drawn, quantity in pair
    ]
    causal = kind == WINDOW and attention.kind == "causal"
    return Panel(
        f"laboratory-distances-{kind}",
        look_for=words,
        below=[
            Columns(pictures),
            Caption(
                "Left: what joins the head's own mask and scores; hatched = masked. Right: the weights that "
                "follow from the head's scores of this run, as if this layer alone were changed."
            ),
            Formula(FORMULAS["causal" if causal else kind]),
        ],
        table=Table(
            {
                "query": [token_label(text) for text in look.labels[0]],
                "keys that it reads": preview.allowed.sum(-1),
                "own weight cut off": preview.lost,
                "largest weight then": preview.weights.max(-1),
            }
        ),
    )


def _narrowed(look: Look, kind: str) -> tuple[Preview, str]:
    """A window or chunks of a chosen width."""
    attention, most = look.attention, look.attention.key.shape[1]
    width = 1
    if most > 1:
        start = min(current().intervention.window or _FIRST, most)
        width = st.slider("Keys", 1, most, start, key=f"laboratory-width-{most}")
    preview = (windowed if kind == WINDOW else chunked)(attention, look.head, width)
    if kind == WINDOW:
        st.button(
            "Run the model with this window",
            key="laboratory-window-run",
            on_click=intervene,
            kwargs={"window": width},
            disabled=current().intervention.window == width,
        )
    most_lost = int(preview.lost.argmax())
    row = plain(token_label(look.labels[0][most_lost]))
    again = " What lies outside can still come in through earlier layers." * (kind == WINDOW)
    within = "a window" if kind == WINDOW else "chunks"
    return preview, (
        f"Through {within} of {counted(width, 'token')} this head loses {preview.lost.mean():.0%} of its "
        f"weight on average, most in the row of **{row}**: {preview.lost[most_lost]:.0%}.{again}"
        if preview.lost.max() > 0
        else f"All of this head's weight lies within {within} of {counted(width, 'token')}."
    )


def _biased(look: Look, kind: str) -> tuple[Preview, str]:
    """ALiBi with the slope of a chosen head."""
    attention = look.attention
    known = head_slopes(attention.heads)
    at = 0
    if len(known) > 1:
        at = st.select_slider(
            "Slope of head", range(len(known)), key=f"laboratory-slope-{len(known)}"
        )
    preview = alibi(attention, look.head, known[at])
    before, after = map(distance, (attention.weights(look.head), preview.weights))
    own = (
        " The model adds numbers of its own already; these come on top."
        if attention.bias is not None
        else ""
    )
    return preview, (
        f"With slope {known[at]:.4g} a key at distance 4 loses {4 * known[at]:.3g} of its score. On average "
        f"this head looked {before:.2f} tokens away, and would look {after:.2f}.{own}"
    )
