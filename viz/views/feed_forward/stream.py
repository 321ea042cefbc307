"""What each sub-layer adds to the stream, and the gradient through a deep stack."""

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from model.analysis.stream.stream import Contribution, contribution_check, contributions, lengths
from model.nn.config import Stack
from model.trace.unproven import NotShownError
from viz.elements.error_boundary import error_boundary
from viz.elements.one_of import one_listed, one_of
from viz.figures.bars import contribution_lengths, contribution_rows
from viz.figures.curves import gradient_by_depth
from viz.notation.labels import numbered_labels
from viz.notation.markdown import plain
from viz.notation.names import state_names
from viz.notation.numbers import difference, power_of_ten
from viz.shell.pictures import chart, look_for, table, without_sentence
from viz.state.look import Look
from viz.views.feed_forward import formulas

if TYPE_CHECKING:
    from model.analysis.stream.stream import Norms

WHOSE = "feed-forward-whose"
BARS, EVERY = "Sub-layers", "Every token"
NORMS: dict["Norms", str] = {"none": "none", "pre": "pre-norm", "post": "post-norm"}


@st.fragment
@error_boundary()
def contributions_view(seen: Look) -> None:
    """The length of what attention and feed-forward add, beside the length of the stream."""
    picture, words = st.columns([2, 1], gap="large")
    said = words.container()
    stacks: list[Stack] = list(seen.trace.stacks)
    stack = stacks[0]
    if len(stacks) > 1:
        key = "feed-forward-stack"
        stack = one_of("Stream", stacks, key, named=lambda stack: f"of the {stack}", box=words)
    tokens = [token.text for token in seen.trace.tokens_of(stack)]
    place = seen.model.config.norm_place
    parts = contributions(seen.model, seen.trace, stack)
    names = list(state_names(seen.trace, stack)[1:])
    added = np.stack([lengths(part.added) for part in parts])  # (sub-layer, token)
    found = np.stack([lengths(part.before) for part in parts])
    shown = one_of("Picture", (BARS, EVERY), "feed-forward-contributions", box=words)
    whose = ["The mean of all tokens", *numbered_labels(tokens, 24)]
    token = one_listed("Lengths for", whose, WHOSE, box=words, disabled=shown == EVERY) - 1
    largest = int(added.mean(1).argmax())
    look_for(
        f"{names[largest]} adds most: on average a vector of length {added[largest].mean():.1f}, "
        f"to a stream of length {found[largest].mean():.1f}. The lengths of vectors that point in "
        "different directions do not add up.",
        said,
    )
    with picture:
        if shown == BARS:
            figure = contribution_lengths(names, added, found, token=token if token >= 0 else None)
        else:
            figure = contribution_rows(names, added, tokens)
        chart(figure, f"feed-forward-contributions-{shown}")
    with words:
        st.latex(formulas.STREAM[place])
        st.markdown(_HOW["post" if place == "post" else "pre"])
    _contribution_check(seen, stack, parts)
    columns = {f"{name} adds": each for name, each in zip(names, added, strict=True)}
    end = {"stream at the end": lengths(seen.trace.residual[stack][-1])}
    table({"token": numbered_labels(tokens)} | columns | end, "feed-forward-contributions")


_HOW = {
    "pre": (
        "What a sub-layer adds is the stream after it minus the stream before it. The first "
        "state plus all contributions is the last state."
    ),
    "post": "What a sub-layer adds is the norm's input minus the stream before it. The norm then "
    "rescales the sum, so the contributions do not sum to the last state.",
}


def _contribution_check(seen: Look, stack: Stack, parts: tuple[Contribution, ...]) -> None:
    states, said = seen.trace.residual[stack], []
    if not seen.model.config.norms_sum:
        total = states[0] + sum(part.added for part in parts)
        whole = difference(float(np.abs(total - states[-1]).max()))
        said.append(
            f"the first state and all contributions differ from the last state by at most {whole}"
        )
    try:
        apart = contribution_check(seen.model, seen.trace, parts)
        said.insert(
            0,
            "what the stream received differs from what the sub-layers wrote, recomputed through their "
            f"own last maps, by at most {difference(apart)}",
        )
    except NotShownError as refusal:
        st.caption(plain(f"What the sub-layers wrote cannot be recomputed here. {refusal}"))
    if said:
        st.caption(f"Check: {'; '.join(said)}.")


@st.fragment
def gradient_view() -> None:
    """The gradient through a deep random stack of our own blocks, measured when it is asked for."""
    from model.analysis.stream.stream import (  # torch: the page is drawn first
        DEEPEST,
        DeepStack,
        gradient_sizes,
    )

    without_sentence()
    picture, words = st.columns([2, 1], gap="large")
    said = words.container()
    depth = words.slider("Blocks", 2, DEEPEST, 24, key="feed-forward-depth")
    norms = one_of("Norms", list(NORMS), "feed-forward-norms", named=NORMS.__getitem__, box=words)
    seed = words.number_input("Seed", 0, 999, step=1, key="feed-forward-gradient-seed")
    stack = DeepStack(depth=depth, norms=norms, seed=seed)
    with_them = gradient_sizes(stack, shortcuts=True)
    without = gradient_sizes(stack, shortcuts=False)
    look_for(
        "Look at the left end of the curves. At the input of the stack the gradient has size "
        f"{_power(with_them[0])} with shortcuts and {_power(without[0])} without, for a size of 1 "
        "at the output.",
        said,
    )
    with picture:
        chart(gradient_by_depth(with_them, without), "feed-forward-gradient")
    with words:
        st.latex(formulas.CHAIN)
        st.markdown(_NORMS_DO[norms])
    st.caption(
        f"Measured now with PyTorch's autograd, in double precision, on {depth} blocks of this "
        f"app's own code with random weights (width {stack.width}, {stack.heads} heads, "
        f"{stack.tokens} tokens, Xavier), not on the model above. Both runs have the same weights. "
        "The loss is the output times a fixed random direction."
    )
    columns: dict[str, object] = {"blocks passed": range(len(without))}
    for name, sizes in (("with shortcuts", with_them), ("without", without)):
        columns[name] = [power_of_ten(size, 4) for size in sizes]
    table(columns, "feed-forward-gradient")


_NORMS_DO: dict["Norms", str] = {
    "none": (
        "Without shortcuts the gradient passes every sub-layer and loses a little in each, "
        "until nearly nothing is left. With shortcuts it does not vanish, but without norms it "
        "grows, as the stream does. Choose pre-norm to see how norms prevent this."
    ),
    "pre": "Norms rescale what each sub-layer reads, so the gradient neither vanishes nor explodes. "
    "With shortcuts it keeps its size almost to the first block, and grows a little there.",
    "post": (
        "Here the norm stands on the shortcut too and rescales the gradient at every "
        "sub-layer. With norms in this position, shortcuts make less difference to the size of "
        "the gradient."
    ),
}


def _power(size: float) -> str:
    """A size as a formula in a sentence: 8.9e6 as 8.9 times ten to the sixth."""
    mantissa, exponent = f"{size:.1e}".split("e")
    power = int(exponent)
    return f"${size:.2g}$" if -2 <= power <= 1 else rf"${mantissa} \times 10^{{{power}}}$"
