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
from viz.shell.panel import Caption, Panel, Table
from viz.shell.pictures import without_sentence

CLAIM = "claim"  # of the choice, and of the link's parameter
COMMAND = "python -m tools.training experiments"
MEASURES = {
    claims.LOSS: "loss on held-out rows, nats per token",
    ACCURACY: "share of the second half of lists that is predicted",
}
VERDICTS = {
    "supported": "These runs support the claim: in every seed the claimed order held.",
    "in part": "These runs support the claim only in part, as the table says.",
    "contradicted": "These runs contradict the claim: in no seed did the claimed order hold.",
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
    drawn = _drawn(claim, runs)
    columns: dict[str, object] = {}
    for one in drawn:
        columns["step"] = one.steps
        for seed, values in zip(claims.SEEDS, one.values, strict=True):
            columns[f"{one.name}, seed {seed}"] = values
    found = claims.verdict(claim, runs)
    return Panel(
        f"claim-{claim.title}",
        look_for=f"A line is the mean of {len(claims.SEEDS)} seeds; its band reaches from the lowest to "
        f"the highest seed. {_dashes(claim)}{_begins(drawn)}",
        picture=seed_curves(
            drawn, measure="loss, nats per token" if claim.beside else MEASURES[claim.measure]
        ),
        beside=[
            f"**The claim.** {plain(claim.words)}",
            partial(st.html, f'<p class="verdict"><b class="moved">{found.capitalize()}</b></p>'),
            VERDICTS[found],
            f"What they do not show: {plain(claim.limits)}",
        ],
        below=[
            partial(
                st.table, pd.DataFrame(measured(claim, runs, by_processor)).set_index("variant")
            ),
            Caption(
                f"{drawn[0].steps[-1]} steps each. Sizes and rates were chosen after trials with one seed at "
                "other settings. Processors round in different ways, and some runs magnify that. To show how "
                f"much, seed {REPEATED} was also trained without AVX instructions and with AVX-512. In the "
                f"repository `{COMMAND}` makes all runs anew, in about 20 minutes on a free core; with "
                "`ATEN_CPU_CAPABILITY=default` before it and `--resume` after it, those without AVX."
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
        row = {"variant": plain(name), "at the last step": f"{end.mean:.3f}"}
        row["seeds"] = f"{low:.3f} to {high:.3f}"
        low, high = claims.ending(claim, name, by_processor).spread
        row[f"seed {REPEATED}, by processor"] = f"{low:.3f} to {high:.3f}"
        if claim.beside:
            own = claims.ending(claim, name, runs, claim.beside).mean
            row["on the rows it learned from"] = f"{own:.3f}"
        row["claimed order"] = plain("; ".join(_compared(claim, name, runs, by_processor)) or "–")
        row["numbers that are learned"] = f"{claims.parameters(runs, variant):,}"
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
            yield (
                f"ended {how} than “{pair[1]}” in {won} of {len(claims.SEEDS)} seeds "
                f"and on {also} of {processors} processors"
            )


def _drawn(claim: Claim, runs: Runs) -> list[Seeds]:
    drawn = []
    for name, (colour, dash) in _looks(claim).items():
        curves = claims.curves(runs, claim.variants[name], claim.measure)
        drawn.append(Seeds(name, *curves, colour, dash))
        if claim.beside:
            beside = claims.curves(runs, claim.variants[name], claim.beside)
            drawn.append(Seeds(f"{name}, its own rows", *beside, colour, "dash"))
    return drawn


def _begins(drawn: list[Seeds]) -> str:
    begin = first_drawn(drawn)
    if not begin:
        return ""
    step = drawn[0].steps[begin]
    return f"The picture begins at step {step}; earlier numbers are in “The numbers as a table”."


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
        return "Solid: the loss on held-out rows; dashed: on the rows it learns from. "
    return (
        "Solid: what should be better; dashed: what it is compared with. "
        if _in_pairs(claim)
        else ""
    )
