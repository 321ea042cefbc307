"""Find out by ablation: each head left out in turn, and what that does."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis.heads.contributions import Ablations, Measure, ablate_each
from model.analysis.run_comparison import divergence_rounding, rounding
from model.nn.intervention import Intervention
from model.trace.trace import Trace
from viz.elements.one_of import one_listed, one_of
from viz.notation.head_formulas import ABLATION
from viz.notation.labels import token_label
from viz.notation.markdown import bold_token
from viz.notation.numbers import led_by, moves, settled, signed
from viz.shell.background import Offer, run_or_offer
from viz.shell.pictures import look_for
from viz.state.look import Look
from viz.state.navigation import view_link
from viz.state.session import current
from viz.views.all_heads.choice import (
    MAP,
    AblationRun,
    AblationRuns,
    beside_chosen_head,
    choose_family,
    list_of_heads,
    map_of_heads,
    map_or_list,
    name_of,
)

if TYPE_CHECKING:
    from model.run.model import Model

WATCHED = 8  # likeliest next tokens that are followed
TITLES: dict[Measure, str] = {
    "probability": "Probability of the next token",
    "logit": "Its logit",
    "divergence": "Divergence of the prediction",
    "loss": "Loss of the text",
    "moved": "How far the final vectors move",
}
_OF_A_TOKEN = (
    "of one token after the end of the text: the value without the head minus the value with it. "
    "Blue: the head makes the token more likely."
)
MEANINGS: dict[Measure, str] = {
    "probability": f"the probability {_OF_A_TOKEN}",
    "logit": f"the logit {_OF_A_TOKEN}",
    "divergence": (
        "how far the prediction after the end of the text moves as a whole, in nats (KL "
        "divergence)."
    ),
    "loss": (
        "the mean −ln p of the text's own tokens, in nats per token: without the head minus "
        "with it. Red: the head helps."
    ),
    "moved": "the mean distance by which the final vectors of all tokens move, as a share of their "
    "length.",
}
UNITS: dict[Measure, str] = {"divergence": "nats", "loss": "change, nats", "moved": "share"}


@st.cache_resource
def runs() -> AblationRuns:
    """The runs of this process, shared by all visitors."""
    return AblationRuns()


def ablation(seen: Look) -> None:
    """The map and the ranking of what each head is needed for."""
    with st.container():  # one place, whether there is something to say or not
        run = _run_or_offer(seen)
    if run is not None and run.found is not None:
        _show(seen, run.found)


def _run_or_offer(seen: Look) -> AblationRun | None:
    """Runs all heads, with progress and a way to stop; asks first where that takes long."""
    heads = sum(attention.heads for attention in seen.trace.attention)
    weights = seen.model.parameter_count
    length = len(seen.trace.tokens) + len(seen.trace.target_tokens)
    offer = Offer(
        "all-heads-ablation",
        f"The text is run once for each of the {heads} heads, with that head left out.",
        f"Leave out each of the {heads} heads in turn",
        "heads",
        "left out",
        heads,
        heads * length * weights,
    )
    return run_or_offer(runs(), seen.request, partial(_work, seen.model, seen.trace), offer)


def _work(model: "Model", trace: Trace, run: AblationRun) -> Iterator[Ablations]:
    watched: list[int] = []  # the likeliest next tokens of the unchanged run
    if trace.prediction is not None:
        watched = np.argsort(-trace.prediction.after(-1), kind="stable")[:WATCHED].tolist()
    return ablate_each(model, trace, tuple(watched), run.turn)


def _show(seen: Look, found: Ablations) -> None:
    with beside_chosen_head(seen):
        picture = st.container()
        measure, watched = _measure(seen, found)
        _effects(seen, found, measure, watched, picture)
        st.latex(ABLATION)
        st.caption(
            "The model runs once for each head, with the output of that head set to zero. The "
            "model was not trained this way. Heads can replace one another, so a small effect does "
            "not mean that a head does nothing."
        )
        head = current().place, current().head
        without = Intervention(ablated=frozenset({head}))
        label = f"Leave out {name_of(seen, head)} in the laboratory, alone or with others →"
        view_link("pages/laboratory.py", label, replace(current(), show="", intervention=without))


def _effects(
    seen: Look, found: Ablations, measure: Measure, watched: int, picture: DeltaGenerator
) -> None:
    """What changes without each head: as a map or as a list, and in words."""
    change, values = found.change(measure, watched), found.measures[measure]
    values = values[:, watched] if values.ndim > 1 else values
    order = np.argsort(-np.abs(change), kind="stable")
    names = [name_of(seen, head) for head in found.heads]
    decimals = _decimals(measure, float(np.abs(change).max()), rounding(seen.trace))
    shown, key = min(decimals, 3), f"{measure}-{watched}"
    said = _largest(seen, found, measure, watched, names, shown)
    family, kind = choose_family(seen), map_or_list("ablation")
    look_for(f"{said} The picture shows {MEANINGS[measure]}")
    with picture:
        if kind == MAP:
            effects = dict(zip(found.heads, change, strict=True))
            map_of_heads(
                seen,
                family,
                np.array([effects.get(head, np.nan) for head in family.heads(seen.trace)]),
                quantity="stream" if measure in ("moved", "divergence") else "difference",
                title=UNITS.get(measure, "change"),
                words=lambda value: (
                    "not run yet" if np.isnan(value) else signed(f"{value:+.{decimals}f}")
                ),
                key=f"all-heads-ablation-{key}",
                alt=f"Effect of leaving out each head; the largest is that of {names[order[0]]}.",
                decimals=min(shown, 3 if measure in ("probability", "moved") else 2),
            )
        else:
            list_of_heads(
                seen,
                [found.heads[place] for place in order],
                {"change": change[order], "without it": values[order]},
                f"all-heads-ablation-list-{key}",
                head="head left out",
                decimals=shown,
            )


def _measure(seen: Look, found: Ablations) -> tuple[Measure, int]:
    present: list[Measure] = list(found.measures)
    key = f"all-heads-measure-{len(present)}"
    chosen = one_of("Measure", present, key, named=TITLES.__getitem__, quiet=True)
    if found.measures[chosen].ndim < 2:
        return chosen, 0
    tokens = seen.model.tokenizer.named(found.watched)
    names = [f"{rank}. {token_label(token.text, 24)}" for rank, token in enumerate(tokens, 1)]
    return chosen, one_listed("Next token", names, "all-heads-ablation-token")


def _largest(
    seen: Look, found: Ablations, measure: Measure, watched: int, names: list[str], decimals: int
) -> str:
    """The head without which the measure changes most, in one sentence with its numbers."""
    values, before = found.measures[measure], found.unchanged[measure]
    sizes = np.abs(found.change(measure, watched))
    place = int(sizes.argmax())
    if values.ndim > 1:
        (token,) = seen.model.tokenizer.named([found.watched[watched]])
        values, before = values[:, watched], before[watched]
        what = f"{measure} of {bold_token(token.text)}"
    else:
        what = measure
    if measure in ("probability", "logit", "loss"):
        said = moves(float(before), float(values[place]), decimals)
        return f"Without **{names[place]}** the {what} {said}."
    most, _ = led_by(names, sizes, decimals=decimals)
    if measure == "divergence":
        return f"The prediction moves most without {most}: {values[place]:.{decimals}f} nats."
    return f"The final vectors move most without {most}: by {values[place]:.1%} of their length."


def _decimals(measure: Measure, largest: float, error: float) -> int:
    """How many decimals hold of changes up to the largest one, where rounding moves the log probabilities
    of both runs by up to `error`."""
    if measure == "divergence":
        return settled(divergence_rounding(largest, 2 * error))
    return settled(error if measure == "probability" else 2 * error)  # p moves by half of that
