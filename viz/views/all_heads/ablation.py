"""Find out by ablation: each head left out in turn, and what that does."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from model.analysis.heads.contributions import Ablations, Measure, ablate_each
from model.analysis.run_comparison import divergence_rounding, rounding
from model.nn.intervention import Intervention
from model.trace.trace import Trace
from viz.elements.one_of import one_listed
from viz.notation.head_formulas import ABLATION
from viz.notation.labels import token_label
from viz.notation.markdown import bold_token
from viz.notation.numbers import led_by, moves, settled, signed
from viz.notation.words import sentences_of
from viz.shell.background import Offer, Passes, passes_or_offer
from viz.shell.panel import Caption, Formula, Panel, Table
from viz.state.look import Look
from viz.state.navigation import HOME, view_link
from viz.state.session import current
from viz.views.all_heads.choice import choose_family, head_names, name_of, of_heads, table_of

if TYPE_CHECKING:
    from model.run.model import Model

say = sentences_of("all_heads.ablation")

WATCHED = 8  # likeliest next tokens that are followed
TITLES: dict[Measure, str] = {  # in the order of the list
    "loss": say("loss_text"),
    "probability": say("probability_next_token"),
    "logit": "Its logit",
    "divergence": say("divergence_prediction"),
    "moved": say("far_final_vectors"),
}
_OF_A_TOKEN = say("token_after_end")
MEANINGS: dict[Measure, str] = {
    "probability": f"the probability {_OF_A_TOKEN}",
    "logit": f"the logit {_OF_A_TOKEN}",
    "divergence": say("far_prediction_after"),
    "loss": say("mean_ln_p_text_own"),
    "moved": say("mean_distance_final"),
}
UNITS: dict[Measure, str] = {"divergence": "nats", "loss": "change, nats", "moved": "share"}


def ablation(look: Look) -> Panel:
    """What each head is needed for, as far as the passes have come."""
    family = choose_family(look)
    run = _passes(look)
    if run is None or run.found is None:
        return Panel("all-heads-ablation")
    effects = run.found
    present = [one for one in TITLES if one in effects.measures]
    titles = [TITLES[one] for one in present]
    measure = present[one_listed("Measure", titles, f"all-heads-measure-{len(present)}")]
    values, before, watched, what = effects.measures[measure], effects.unchanged[measure], 0, ""
    if values.ndim > 1:
        tokens = look.model.tokenizer.named(effects.watched)
        likely = [f"{rank}. {token_label(token.text, 24)}" for rank, token in enumerate(tokens, 1)]
        watched = one_listed("Next token", likely, "all-heads-ablation-token")
        values, before = values[:, watched], before[watched]
        what = f" of {bold_token(tokens[watched].text)}"
    change = effects.change(measure, watched)
    names = head_names(look, effects.heads)
    decimals = _decimals(measure, float(np.abs(change).max()), rounding(look.trace))
    digits, by_head = min(decimals, 3), dict(zip(effects.heads, change, strict=True))
    most = effects.heads[int(np.abs(change).argmax())]
    without = Intervention(ablated=frozenset({(current().place, current().head)}))
    panel = Panel(
        "all-heads-ablation",
        look_for=_largest(measure, what, names, np.abs(change), values, float(before), digits),
        chosen=f"{measure}-{watched}-{len(names)}-",
        alt=say("effect_leaving_out", name_of=name_of(look, most)),
        beside=[f"The picture shows {MEANINGS[measure]}"],
        below=[
            Formula(ABLATION),
            Caption(say("model_runs_once")),
            partial(
                view_link,
                HOME,
                say("leave_out_explore", name_of=name_of(look, (current().place, current().head))),
                replace(current(), show="", intervention=without),
            ),
        ],
        table=Table(table_of(look, effects.heads, {"change": change, "without it": values})),
    )
    return of_heads(
        panel,
        look,
        family,
        np.array([by_head.get(head, np.nan) for head in family.heads(look.trace)]),
        quantity="stream" if measure in ("moved", "divergence") else "difference",
        title=UNITS.get(measure, "change"),
        words=lambda value: "not run yet" if np.isnan(value) else signed(f"{value:+.{decimals}f}"),
    )


def _passes(look: Look) -> Passes[Ablations] | None:
    """Runs all heads, with progress and a way to stop; asks first where that takes long."""
    heads = sum(attention.heads for attention in look.trace.attention)
    length = len(look.trace.tokens) + len(look.trace.target_tokens)
    offer = Offer(
        "all-heads-ablation",
        say("text_run_once_heads", heads=heads),
        say("leave_out_heads", heads=heads),
        "heads",
        "left out",
        heads,
        heads * length * look.model.parameter_count,
    )
    work = partial(_work, look.model, look.trace)
    return passes_or_offer((offer.name, look.request), work, offer)


def _work(model: "Model", trace: Trace, run: Passes[Ablations]) -> Iterator[Ablations]:
    watched: list[int] = []  # the likeliest next tokens of the unchanged run
    if trace.prediction is not None:
        watched = np.argsort(-trace.prediction.after(-1), kind="stable")[:WATCHED].tolist()
    return ablate_each(model, trace, tuple(watched), run.turn)


def _largest(
    measure: Measure,
    of_token: str,
    names: list[str],
    sizes: np.ndarray,
    values: np.ndarray,
    before: float,
    decimals: int,
) -> str:
    """The head without which the measure changes most, in one sentence with its numbers.

    Args:
        measure: what is measured, and of_token: of which token, in words.
        names: of the heads, with the size of each one's change and the value without it.
        before: the value of the unchanged run.
        decimals: that are certain.
    """
    place = int(sizes.argmax())
    if measure in ("probability", "logit", "loss"):
        change = moves(before, float(values[place]), decimals)
        return f"Without **{names[place]}** the {measure}{of_token} {change}."
    most, _ = led_by(names, sizes, decimals=decimals)
    if measure == "divergence":
        return say("prediction_moves_most", most=most, place_values=f"{values[place]:.{decimals}f}")
    return say("final_vectors_move", most=most, place_values=values[place])


def _decimals(measure: Measure, largest: float, error: float) -> int:
    """How many decimals hold of changes up to the largest one, where rounding moves the log probabilities
    of both runs by up to `error`."""
    if measure == "divergence":
        return settled(divergence_rounding(largest, 2 * error))
    return settled(error if measure == "probability" else 2 * error)  # p moves by half of that
