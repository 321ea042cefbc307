"""Token vector plus position vector: what the first layer starts from."""

import numpy as np

from model.analysis.stream.stream import summed
from viz.figures.vectors import NAMES, summands
from viz.notation.numbers import difference
from viz.shell.controls import pick_token
from viz.shell.panel import Caption, Check, Formula, Panel, Table
from viz.state.look import Look

_WORDS = {
    "tokens": "the token's vector",
    "positions": "its position's",
    "segments": "segment's",
}


def position_sum(look: Look) -> Panel:
    """One token's vector, its position's, and their sum, checked against the recorded state."""
    whole, config = summed(look.trace), look.model.config
    token = pick_token(look.trace.tokens, "positions-sum")
    parts, total = {name: rows[token] for name, rows in whole.parts.items()}, whole.total[token]
    lengths = ", ".join(
        f"{_WORDS[name]} {np.linalg.norm(vector):.3f}" for name, vector in parts.items()
    )
    words = config.position_law.without
    if "positions" in parts:
        words = (
            "The same token at another position gets a different sum, because a different row is "
            "added. From here on word and position are one vector."
        )
        if "segments" in parts:
            words += " The segment tells the two sentences of a pair apart; here there is only one."
    where = "what the norm after the embeddings reads" if whole.into else "the first state"
    return Panel(
        "positions-sum-picture",
        look_for=words,
        picture=summands(parts, total),
        beside=[
            Formula(sum_of(tuple(parts), scaled=config.scaled_embedding)),
            Caption(f"Lengths: {lengths}, the sum {np.linalg.norm(total):.3f}."),
        ],
        check=Check(
            "Check: over all tokens and dimensions the recomputed sum differs from "
            f"{where}, as recorded in this pass, by at most {difference(whole.check())}.",
            whole.check(),
        ),
        table=Table(
            {NAMES[name]: vector for name, vector in parts.items()} | {"= sum": total},
            index="dimension",
        ),
    )


def sum_of(parts: tuple[str, ...], *, scaled: bool = False) -> str:
    """What is added up before the first layer, in LaTeX, by the names of the parts in a trace.

    scaled: whether rows of the table are multiplied by √d first.
    """
    token = r"E_{\mathrm{id}_p}"
    symbols = {
        "tokens": rf"\sqrt{{d}}\, {token}" if scaled else token,
        "positions": "PE_p",
        "segments": "S_0",
    }
    return "x_p = " + " + ".join(symbols[part] for part in parts)
