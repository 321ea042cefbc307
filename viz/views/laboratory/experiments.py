"""Five points of attention, measured live, each with its picture and its check."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from model.analysis.softmax_experiments import Spread, slopes, slopes_by_spread, spread
from model.worked.notes import TWO_LAYERS
from model.worked.self_attention import CLAIM
from viz.elements.one_of import one_of
from viz.figures.curves import PLAIN, SCALED, Measured, curves
from viz.figures.heatmap import Axis, heatmap
from viz.notation.numbers import difference
from viz.notation.theme import WEIGHT
from viz.shell.pictures import chart, look_for, table
from viz.state.look import Look
from viz.views.laboratory.edges import ROOMY, distance_masks, mask_values_compared, two_routes

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


def measured_points(seen: Look) -> None:
    """One point at a time; the first is sampled, the last three are of the shown head."""
    points: dict[str, Callable[[Look], None]] = {
        "Why √dₖ": _why_scale,
        "Gradient through softmax": _gradient,
        "Two routes to a mask": two_routes,
        "Which mask value": mask_values_compared,
        "Windows and distances": distance_masks,
    }
    point = one_of("Experiment", list(points), "laboratory-point")
    points[point](seen)


@lru_cache(maxsize=64)
def _spread(width: int, keys: int, seed: int) -> Spread:
    return spread(width, keys=keys, seed=seed)


def _keys() -> int:
    return int(st.number_input("Keys in a row", 2, 64, 16, key="laboratory-keys"))


def _why_scale(seen: Look) -> None:
    own = seen.attention.query.shape[-1]
    picture, words = st.columns([3, 2], gap="large")
    with words:
        name, unit = _MEASURES[one_of("Measure", list(_MEASURES), "laboratory-measure")]
        left, right = st.columns(2)
        with left:
            keys = _keys()
        seed = int(right.number_input("Seed", 0, LARGEST_SEED, 0, key="laboratory-draw"))
        st.latex(VARIANCE)
        look_for(
            "A sum of dₖ products of variance 1 has variance dₖ. After division by √dₖ the "
            "variance is 1 again at every width, so the weights stay as even as before. Without "
            "the division one key takes nearly everything, and no gradient gets through."
        )
    found = [_spread(width, keys, seed) for width in WIDTHS]
    with picture:
        chart(_by_width(found, name, unit, own), f"laboratory-spread-{name}")
    off = max(abs(one.scaled.variance - 1) for one in found)
    st.caption(
        f"Sampled: 400 rows of {keys} keys at each width, independent standard normal numbers, "
        f"seed {seed}. Dotted line: dₖ = {own}, the width of this model's heads. Check: the scaled "
        f"variance differs from 1 by at most {off:.1%}, by chance."
    )
    columns: dict[str, object] = {"dₖ": WIDTHS}
    for name in ("variance", "entropy", "largest"):
        columns[name] = [getattr(one.plain, name) for one in found]
        columns[f"{name}, scaled"] = [getattr(one.scaled, name) for one in found]
    table(columns, "laboratory-spread")


def _by_width(found: list[Spread], name: str, unit: str, own: int) -> Figure:
    """One measure at every width, of scores as they are and divided; the variance beside its law."""
    plain = [getattr(one.plain, name) for one in found]
    scaled = [getattr(one.scaled, name) for one in found]
    spreads = name == "variance"
    return curves(
        WIDTHS,
        (
            Measured("not scaled", plain, PLAIN, WIDTHS if spreads else None),
            Measured("divided by √dₖ", scaled, SCALED, [1.0] * len(WIDTHS) if spreads else None),
        ),
        axis="width of a head, dₖ",
        unit=unit,
        logarithmic=spreads,
        mark=own,
    )


def _gradient(seen: Look) -> None:
    shown = one_of("Show", ("By spread of the scores", "One row"), "laboratory-gradient")
    (_one_row if shown == "One row" else _by_spread)()


def _by_spread() -> None:
    """Mean p(1 - p) of normal scores, from nearly equal ones to far apart ones."""
    unit = "p(1 − p), mean"
    picture, words = st.columns([3, 2], gap="large")
    with words:
        keys = _keys()
        st.latex(SLOPE)
        found = slopes_by_spread(DEVIATIONS, keys=keys)
        st.markdown(
            "The slope of each weight with respect to its own score is p(1 − p). "
            f"{_band(found, keys)} Where scores are far apart the slope is nearly 0: the softmax "
            "is saturated."
        )
    with picture:
        drawn = Measured(f"{keys} keys", found.tolist(), WEIGHT)
        axis = "standard deviation of the scores"
        chart(curves(DEVIATIONS, (drawn,), axis=axis, unit=unit, band=CLAIM), "laboratory-slopes")
    st.caption(
        f"The exact mean for {keys} independent normal scores with each standard deviation. Blue "
        f"band: {_CLAIMED}, which “{TWO_LAYERS.title}” calls frequent."
    )
    table({"standard deviation": DEVIATIONS, unit: found}, "laboratory-slopes")


def _band(found: np.ndarray, keys: int) -> str:
    """Where the claimed average holds, for so many keys."""
    low, high = CLAIM
    inside = [at for at, value in zip(DEVIATIONS, found, strict=True) if low <= value <= high]
    equal = (1 - 1 / keys) / keys
    holds = (
        f"for scores with a standard deviation from {inside[0]:.2g} to {inside[-1]:.2g}."
        if inside
        else f"for no spread, and equal scores give {equal:.3f}."
    )
    return f"The notes call a mean of {_CLAIMED} frequent. With {keys} keys that holds {holds}"


def _one_row() -> None:
    """All derivatives of one row, by the formula and by autograd."""
    picture, words = st.columns([3, 2], gap="large")
    with words:
        written = st.text_input("Scores of one row", "2, 4, 1", key="laboratory-scores")
        st.latex(SLOPE)
    try:
        found = slopes(_numbers(written))
    except ValueError as refusal:
        st.warning(f"{refusal} Separate the numbers with commas.")
        return
    names = [str(at) for at in range(len(found.weights))]
    with picture:
        figure = heatmap(
            found.jacobian,
            rows=Axis("weight of key", names, tokens=False),
            columns=Axis("score of key", names, tokens=False),
            quantity="difference",
            limit=0.25,
            decimals=4 if len(names) <= ROOMY else 2,
            square=True,
        )
        chart(figure, "laboratory-jacobian")
    weights = ", ".join(f"{weight:.4f}" for weight in found.weights)
    st.caption(
        f"Weights {weights}. A row of derivatives adds up to 0: what one key gains the others lose. "
        f"Check: PyTorch's autograd differs by at most {difference(found.check)}."
    )
    table({f"score {name}": found.jacobian[:, int(name)] for name in names}, "jacobian")


def _numbers(written: str) -> list[float]:
    """Up to twelve numbers between commas. Raises ValueError for anything else."""
    try:
        found = [float(part) for part in written.split(",") if part.strip()]
    except ValueError:
        raise ValueError("This is not a list of numbers.") from None
    if not 1 <= len(found) <= 12 or not all(abs(each) <= 1e6 for each in found):
        raise ValueError("Enter 1 to 12 numbers, none larger than a million.")
    return found
