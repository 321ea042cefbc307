"""What each sub-layer adds to the stream."""

import numpy as np

from model.analysis.stream.stream import Contribution, contribution_check, contributions, lengths
from model.nn.config import Stack
from model.trace.unproven import NotShownError
from viz.elements.one_of import one_listed, one_of
from viz.figures.bars import contribution_lengths, contribution_rows
from viz.notation.labels import numbered_labels
from viz.notation.markdown import plain
from viz.notation.names import state_names
from viz.notation.numbers import difference
from viz.shell.controls import LISTED
from viz.shell.panel import Caption, Check, Formula, Panel, Part, Table
from viz.state.look import Look
from viz.views.feed_forward import formulas

BARS, EVERY = "Sub-layers", "Every token"


def contributions_view(look: Look) -> Panel:
    """The length of what attention and feed-forward add, beside the length of the stream."""
    stacks: list[Stack] = list(look.trace.stacks)
    stack = stacks[0]
    if len(stacks) > 1:
        stack = one_of("Stream", stacks, "feed-forward-stack", named="of the {}".format)
    tokens = [token.text for token in look.trace.tokens_of(stack)]
    order = look.model.config.norm_place
    parts = contributions(look.model, look.trace, stack)
    names = list(state_names(look.trace, stack)[1:])
    added, before = (  # (sub-layer, token)
        np.stack([lengths(vectors) for vectors in all_vectors])
        for all_vectors in ([part.added for part in parts], [part.before for part in parts])
    )
    shown = one_of("Picture", (BARS, EVERY), "feed-forward-contributions")
    whose = ["The mean of all tokens", *numbered_labels(tokens, LISTED)]
    token = one_listed("Lengths for", whose, "feed-forward-whose", disabled=shown == EVERY) - 1
    largest = int(added.mean(1).argmax())
    check, refused = _check(look, stack, parts)
    end = {"stream at the end": lengths(look.trace.residual[stack][-1])}
    return Panel(
        "feed-forward-added",
        look_for=f"{names[largest]} adds most: on average a vector of length {added[largest].mean():.1f}, "
        f"to a stream of length {before[largest].mean():.1f}. The lengths of vectors that point in "
        "different directions do not add up.",
        picture=contribution_lengths(names, added, before, token=token if token >= 0 else None)
        if shown == BARS
        else contribution_rows(names, added, tokens),
        beside=[Formula(formulas.STREAM[order]), _HOW["post" if order == "post" else "pre"]],
        below=refused,
        check=check,
        table=Table(
            {"token": numbered_labels(tokens)}
            | {f"{name} adds": each for name, each in zip(names, added, strict=True)}
            | end
        ),
    )


_HOW = {
    "pre": (
        "What a sub-layer adds is the stream after it minus the stream before it. The first "
        "state plus all contributions is the last state."
    ),
    "post": "What a sub-layer adds is the norm's input minus the stream before it. The norm then "
    "rescales the sum, so the contributions do not sum to the last state.",
}


def _check(
    look: Look, stack: Stack, parts: tuple[Contribution, ...]
) -> tuple[Check | None, list[Part]]:
    """The comparisons of the contributions, and what cannot be compared."""
    states, compared, refused = look.trace.residual[stack], dict[str, float](), list[Part]()
    try:
        apart = contribution_check(look.model, look.trace, parts)
        compared[
            "what the stream received differs from what the sub-layers wrote, recomputed through their "
            "own last maps, by at most"
        ] = apart
    except NotShownError as refusal:
        words = f"What the sub-layers wrote cannot be recomputed here. {refusal}"
        refused.append(Caption(plain(words)))
    if not look.model.config.norms_sum:
        total = states[0] + sum(part.added for part in parts)
        compared["the first state and all contributions differ from the last state by at most"] = (
            float(np.abs(total - states[-1]).max())
        )
    if not compared:
        return None, refused
    words = "; ".join(f"{what} {difference(apart)}" for what, apart in compared.items())
    return Check(f"Check: {words}.", max(compared.values())), refused
