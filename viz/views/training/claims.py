"""Claims about transformers, tried by training: the curves of the runs that ship, and what they say."""

import streamlit as st

from model.training import claims, experiments, variants
from model.training.claims import ACCURACY, CLAIMS, Claim
from model.training.experiments import Runs
from viz.elements.one_of import one_of
from viz.figures.curves import COLOURS, Seeds, seed_curves
from viz.notation.markdown import plain
from viz.shell.pictures import chart, look_for, table

KEY = "claim"  # of the choice, and of the link's parameter
COMMAND = f"python -m model.training {experiments.NAME}"
MEASURES = {
    claims.LOSS: "loss on held-out rows, nats per token",
    ACCURACY: "share of the second half of lists that is predicted",
}
VERDICTS = {
    "supported": "**These runs support the claim**: every seed has its order.",
    "in part": "**These runs support the claim only in part**, as the counts above say.",
    "contradicted": "**These runs contradict the claim**: no seed has its order.",
}


def tried() -> None:
    """One claim: its curves, what was measured, the verdict, and what is not shown."""
    picture = st.container()
    titles = {claim.title: claim for claim in CLAIMS}
    title = one_of("Which claim", list(titles), KEY, bind="query-params")
    claim = titles[title]
    try:
        runs = experiments.shipped_runs()
    except (OSError, ValueError):
        st.error("The file of the runs is missing or damaged. Reinstall the app to repair it.")
        return
    with picture:
        measure = "loss, nats per token" if claim.beside else MEASURES[claim.measure]
        chart(seed_curves(_drawn(claim, runs), measure=measure), f"claim-{title}")
    look_for(
        f"The claim: {plain(claim.words)} A line is the mean of {len(experiments.SEEDS)} seeds; its band "
        "reaches from the lowest to the highest seed."
        + (
            " Solid: the loss on held-out rows; dashed: on the rows it learns from."
            if claim.beside
            else ""
        )
    )
    st.markdown("\n".join(f"- {sentence}" for sentence in measured(claim, runs)))
    st.markdown(VERDICTS[claims.verdict(claim, runs)])
    st.caption(f"What it does not show: {plain(claim.limits)}")
    _how(claim)
    _numbers(claim, runs)


def measured(claim: Claim, runs: Runs) -> list[str]:
    """What was measured, a sentence for each variant and each comparison of the claim."""
    said = []
    for name in claim.variants:
        end = claims.ending(claim, name, runs)
        low, high = end.spread
        line = f"{name}: {end.mean:.3f} at the last step (seeds {low:.3f} to {high:.3f})"
        if claim.beside:
            rows = claims.ending(claim, name, runs, claim.beside).mean
            line += f", {rows:.3f} on the rows it learned from"
        said.append(plain(f"{line}."))
    for pair in claim.better:
        won = claims.wins(claim, pair, runs)
        said.append(
            plain(
                f"{pair[0]} ends better than {pair[1]} in {won} of {len(experiments.SEEDS)} seeds."
            )
        )
    return said


def _drawn(claim: Claim, runs: Runs) -> list[Seeds]:
    drawn = []
    for (name, variant), colour in zip(claim.variants.items(), COLOURS, strict=False):
        drawn.append(Seeds(name, *experiments.curves(runs, variant, claim.measure), colour))
        if claim.beside:
            beside = experiments.curves(runs, variant, claim.beside)
            drawn.append(Seeds(f"{name}, its own rows", *beside, colour, "dash"))
    return drawn


def _how(claim: Claim) -> None:
    """What was trained, and the command that does it again."""
    sizes = ", ".join(
        f"{name}: {experiments.parameters(variant):,}" for name, variant in claim.variants.items()
    )
    first = variants.recipes()[next(iter(claim.variants.values()))]
    st.caption(
        plain(
            f"{first.steps} steps each. Numbers that are learned – {sizes}. This command makes all "
            "runs anew, in about a quarter of an hour on a free core:"
        )
    )
    st.code(COMMAND, language="bash")


def _numbers(claim: Claim, runs: Runs) -> None:
    columns: dict[str, object] = {}
    for drawn in _drawn(claim, runs):
        columns["step"] = drawn.steps
        for seed, values in zip(experiments.SEEDS, drawn.values, strict=True):
            columns[f"{drawn.name}, seed {seed}"] = values
    table(columns, f"claim-{claim.title}")
