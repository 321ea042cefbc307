"""Token vector plus position vector: what the first layer starts from."""

import numpy as np

from model.analysis.stream.stream import summed
from viz.figures.vectors import summands
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.shell.controls import pick_token
from viz.shell.panel import Caption, Check, Formula, Panel, Table
from viz.state.look import Look

say = sentences_of("positions.sum")


def position_sum(look: Look) -> Panel:
    """One token's vector, its position's, and their sum, checked against the recorded state."""
    whole, config = summed(look.trace), look.model.config
    token = pick_token(look.trace.tokens, "positions-sum")
    total = whole.total[token]
    names = {
        "tokens": token_label(look.trace.tokens[token].text),
        "positions": f"+ position {token}",
        "segments": "+ segment",
    }
    parts = {names[name]: rows[token] for name, rows in whole.parts.items()}
    size = {
        name: float(np.linalg.norm(vector)) for name, vector in (parts | {"sum": total}).items()
    }
    lengths = ", ".join(f"{name.removeprefix('+ ')} {length:.2f}" for name, length in size.items())
    words = say("position_starts_sum", text=look.trace.tokens[token].text, token=token)
    if "segments" in whole.parts:
        words += say("segment_tells_sentences")
    where = say("norm_after_embeddings") if whole.into else "the first state"
    return Panel(
        "positions-sum-picture",
        look_for=words,
        picture=summands(parts, total),
        beside=[
            Formula(sum_of(tuple(whole.parts), scaled=config.scaled_embedding)),
            Caption(f"Lengths: {plain(lengths)}."),
        ],
        check=Check(
            say("check_over_tokens", where=where, check=whole.check()),
            whole.check(),
        ),
        table=Table(parts | {"= sum": total}, index="dimension"),
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
