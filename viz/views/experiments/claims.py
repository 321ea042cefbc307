"""Claims about transformers, tried by training small models with a part and without it."""

from collections.abc import Iterator
from functools import partial

import pandas as pd
import streamlit as st

from model.trace.unproven import NotShownError
from model.training import claims
from model.training.claims import ACCURACY, CLAIMS, REPEATED, Claim, Runs
from viz.figures.curves import Seeds, first_drawn, seed_curves
from viz.notation.markdown import plain
from viz.notation.theme import CURVES
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Panel, Table
from viz.shell.pictures import without_sentence

say = sentences_of("experiments.claims")

CLAIM = "claim"  # of the choice, and of the link's parameter
COMMAND = say("python_m_tools_training")
MEASURES = {
    claims.LOSS: say("loss_held_out_rows"),
    ACCURACY: say("share_second_half"),
}
VERDICTS = {
    "supported": say("runs_support_claim"),
    "in part": say("runs_support_claim_only"),
    "contradicted": say("runs_contradict_claim"),
}


def tried() -> Panel:
    """One claim: what the runs say of it, its curves, what was measured, and what is not shown."""
    without_sentence()
    titles = {claim.title: claim for claim in CLAIMS}
    claim = titles[st.selectbox("Claim", list(titles), key=CLAIM, bind="query-params", width=220)]
    try:
        runs, by_processor = claims.shipped_runs(), claims.runs_by_processor()
    except (OSError, ValueError) as error:
        raise NotShownError(
            "The file of the runs is missing or damaged. Reinstall the app to repair it."
        ) from error
    drawn = []
    for name, (colour, dash) in _looks(claim).items():
        curves = claims.curves(runs, claim.variants[name], claim.measure)
        drawn.append(Seeds(name, *curves, colour, dash))
        if claim.beside:
            beside = claims.curves(runs, claim.variants[name], claim.beside)
            drawn.append(Seeds(f"{name}, its own rows", *beside, colour, "dash"))
    columns: dict[str, object] = {}
    for one in drawn:
        columns["step"] = one.steps
        for seed, values in zip(claims.SEEDS, one.values, strict=True):
            columns[f"{one.name}, seed {seed}"] = values
    found = claims.verdict(claim, runs)
    return Panel(
        f"claim-{claim.title}",
        look_for=say(
            "line_mean_seeds", seeds=len(claims.SEEDS), dashes=_dashes(claim), begins=_begins(drawn)
        ),
        picture=seed_curves(
            drawn, measure=say("loss_nats_per_token") if claim.beside else MEASURES[claim.measure]
        ),
        beside=[
            f"**The claim.** {plain(claim.words)}",
            partial(st.html, f'<p class="verdict"><b class="moved">{found.capitalize()}</b></p>'),
            VERDICTS[found],
            say("not_show", limits=claim.limits),
        ],
        below=[
            partial(
                st.table, pd.DataFrame(measured(claim, runs, by_processor)).set_index("variant")
            ),
            Caption(
                say(
                    "steps_sizes_rates",
                    last_steps=drawn[0].steps[-1],
                    repeated=REPEATED,
                    command=COMMAND,
                )
            ),
        ],
        table=Table(columns),
    )


def measured(claim: Claim, runs: Runs, by_processor: Runs) -> list[dict[str, str]]:
    """What was measured: a row for each variant, with each comparison of the claim."""
    rows = []
    for name, variant in claim.variants.items():
        end = claims.ending(claim, name, runs)
        low, high = end.spread
        row = {"variant": plain(name), say("last_step"): f"{end.mean:.3f}"}
        row["seeds"] = f"{low:.3f} to {high:.3f}"
        low, high = claims.ending(claim, name, by_processor).spread
        row[f"seed {REPEATED}, by processor"] = f"{low:.3f} to {high:.3f}"
        if claim.beside:
            own = claims.ending(claim, name, runs, claim.beside).mean
            row[say("rows_learned")] = f"{own:.3f}"
        row["claimed order"] = plain("; ".join(_compared(claim, name, runs, by_processor)) or "–")
        row[say("numbers_learned")] = f"{claims.parameters(runs, variant):,}"
        rows.append(row)
    return rows


def _compared(claim: Claim, name: str, runs: Runs, by_processor: Runs) -> Iterator[str]:
    """How often a variant ended better than those that it should beat."""
    processors = len(by_processor[claim.variants[name]])
    how = "higher" if claim.measure == ACCURACY else "lower"
    for pair in claim.better:
        if pair[0] == name:
            won = claims.wins(claim, pair, runs)
            also = claims.wins(claim, pair, by_processor)
            yield say(
                "ended_seeds_processors",
                how=how,
                pair=pair[1],
                won=won,
                seeds=len(claims.SEEDS),
                also=also,
                processors=processors,
            )


def _begins(drawn: list[Seeds]) -> str:
    begin = first_drawn(drawn)
    if not begin:
        return ""
    step = drawn[0].steps[begin]
    return say("picture_begins_step", step=step)


def _in_pairs(claim: Claim) -> bool:
    """Whether no variant is compared twice, and dashes are free to tell the two of a pair apart."""
    compared = {name for pair in claim.better for name in pair}
    return len(compared) == 2 * len(claim.better) and not claim.beside


def _looks(claim: Claim) -> dict[str, tuple[str, str]]:
    """Colour and dashes of each variant: one colour a pair, or one a variant."""
    if not _in_pairs(claim):
        return {
            name: (colour, "solid") for name, colour in zip(claim.variants, CURVES, strict=False)
        }
    return {
        name: (colour, dash)
        for pair, colour in zip(claim.better, CURVES, strict=False)
        for name, dash in zip(pair, ("solid", "dash"), strict=True)
    }


def _dashes(claim: Claim) -> str:
    if claim.beside:
        return say("solid_loss_held")
    return say("solid_should_better") if _in_pairs(claim) else ""
