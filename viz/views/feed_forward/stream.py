"""What each state of the stream would predict, what each sub-layer adds to it, and the gradient through a
deep stack."""

import html
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from model.analysis.run_comparison import rounding
from model.analysis.stream.stream import Contribution, contribution_check, contributions, lengths
from model.analysis.tokens.prediction import lens
from model.nn.config import Stack
from model.trace.unproven import NotShownError
from viz.elements.one_of import one_listed, one_of
from viz.figures.bars import contribution_lengths, contribution_rows
from viz.figures.cells import lens_table
from viz.notation.labels import numbered_labels, token_label
from viz.notation.markdown import plain
from viz.notation.names import state_names
from viz.notation.numbers import difference, probability, significant
from viz.notation.words import sentences_of
from viz.shell.controls import LISTED
from viz.shell.panel import Caption, Check, Formula, Panel, Part, Table
from viz.state.look import Look
from viz.views.feed_forward import formulas

say = sentences_of("feed_forward.stream")

WHOSE = (say("mean_tokens"), "Every token")  # then each token alone
SHARES = ("the token shown", "the final token")
COLUMNS = 16  # tokens side by side
LENS = r"p = \text{softmax}\bigl(\text{norm}(x_{\text{state}})\, W_{\text{out}}\bigr)"
LENS_WITHOUT_NORM = r"p = \text{softmax}\bigl(x_{\text{state}}\, W_{\text{out}}\bigr)"
STYLE = f"<style>{Path(__file__).with_name('lens.css').read_text(encoding='utf-8')}</style>"


def logit_lens(look: Look) -> Panel:
    """State by token, what each would predict and how surely."""
    trace, prediction = look.trace, look.trace.require_prediction()
    look.model.require("unembedding")
    tokens = [token.text for token in trace.tokens_of("decoder")]
    is_final = one_listed("Probability of", SHARES, "prediction-lens") == 1
    first, last = 0, len(tokens)  # the end of a long text
    if last > COLUMNS:
        key, end = f"prediction-window-{last}", last - 1
        last = st.slider("Last token shown", COLUMNS - 1, end, value=end, key=key) + 1
        first = last - COLUMNS
    states = [state[first:last] for state in trace.residual["decoder"]]
    logits = prediction.rows(first, last)
    read, error = lens(look.model.unembed, states, logits), rounding(trace, logits)
    names, named = state_names(trace, "decoder"), look.model.tokenizer.named
    predicted = [[token.text for token in named(row.tolist())] for row in read.ids]
    shares = read.final if is_final else read.shares
    found, width = settled_at(read.ids[:, -1].tolist()), last - first
    final = probability(float(read.shares[-1, -1]), error)
    where = say("only_last_state") if found == len(names) - 1 else f"from {names[found]} on"
    decimals = f"%.{significant(error)}g"
    return Panel(
        "prediction-lens-table",
        look_for=say(
            "go_down_last_column",
            tokens=tokens[last - 1],
            last_last_predicted=predicted[-1][-1],
            final=final,
            where=where,
        ),
        picture=partial(
            st.html,
            lens_rows(
                shares,
                predicted,
                states=names,
                tokens=tokens[first:last],
                error=error,
                found=found,
            ),
        ),
        saved=lambda: lens_table(
            shares, predicted, states=names, tokens=tokens[first:last], error=error
        ),
        below=[
            Formula(LENS if not look.model.config.norms_sum else LENS_WITHOUT_NORM),
            Caption(say("state_stream_turned")),
        ],
        check=Check(
            say("check_logits_read", difference=read.difference, width=width),
            read.difference,
        ),
        table=Table(
            {
                "state": np.repeat(names, width),
                "after": numbered_labels(tokens)[first:last] * len(names),
                "predicts": [token_label(text) for row in predicted for text in row],
                "its probability": read.shares.ravel(),
                "the final token's": read.final.ravel(),
            },
            formats={"its probability": decimals, "the final token's": decimals},
        ),
    )


def settled_at(ids: Sequence[int]) -> int:
    """From which state on the last state's token is predicted without a break."""
    others = [at for at, id_ in enumerate(ids) if id_ != ids[-1]]
    return others[-1] + 1 if others else 0


def lens_rows(
    shares: NDArray[np.float64],
    predicted: Sequence[Sequence[str]],
    *,
    states: Sequence[str],
    tokens: Sequence[str],
    error: float,
    found: int,
) -> str:
    """The same as `lens_table`, as a table of HTML whose words are whole. found: the state whose cell in the
    last column is framed."""
    rows = []
    for at, (state, row, given) in enumerate(zip(states, predicted, shares, strict=True)):
        cells = []
        for column, (text, final, share) in enumerate(zip(row, predicted[-1], given, strict=True)):
            is_first = at == found and column == len(tokens) - 1
            look = "first" if is_first else ""
            said = html.escape(token_label(text, LISTED))
            word = f"<b>{said}</b>" if text == final else said
            cells.append(
                f'<td class="{look}" style="--share:{share:.3f}" title="{probability(share, error)}">{word}'
            )
        rows.append(f'<tr><th scope="row">{html.escape(state)}</th>{"</td>".join(cells)}</td></tr>')
    read = "".join(
        f'<th scope="col">{html.escape(token_label(one, LISTED))}</th>' for one in tokens
    )
    return (
        f'{STYLE}<div class="lens" role="region" tabindex="0" aria-label="What each state would predict">'
        f'<table><thead><tr><th scope="col">after</th>{read}</tr></thead><tbody>{"".join(rows)}</tbody>'
        '</table></div><p class="lens-scale">probability 0 <i></i> 1</p>'
    )


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
    whose = [*WHOSE, *numbered_labels(tokens, LISTED)]
    token = one_listed("Lengths for", whose, "feed-forward-whose") - len(WHOSE)
    largest = int(added.mean(1).argmax())
    check, refused = _check(look, stack, parts)
    end = {say("stream_end"): lengths(look.trace.residual[stack][-1])}
    return Panel(
        "feed-forward-added",
        look_for=say(
            "adds_most_average",
            largest_names=names[largest],
            mean_largest_added=added[largest].mean(),
            mean_largest_before=before[largest].mean(),
        ),
        picture=contribution_rows(names, added, tokens)
        if token == -1
        else contribution_lengths(names, added, before, token=token if token >= 0 else None),
        beside=[
            Formula(formulas.STREAM[order]),
            _HOW["post" if order == "post" else "pre"],
            Caption(say("lengths_vectors_point")),
        ],
        below=refused,
        check=check,
        table=Table(
            {"token": numbered_labels(tokens)}
            | {f"{name} adds": each for name, each in zip(names, added, strict=True)}
            | end
        ),
    )


_HOW = {
    "pre": say("sub_layer_adds_stream"),
    "post": say("sub_layer_adds_norm"),
}


def _check(
    look: Look, stack: Stack, parts: tuple[Contribution, ...]
) -> tuple[Check | None, list[Part]]:
    """The comparisons of the contributions, and what cannot be compared."""
    states, compared, refused = look.trace.residual[stack], dict[str, float](), list[Part]()
    try:
        apart = contribution_check(look.model, look.trace, parts)
        compared[say("stream_received_differs")] = apart
    except NotShownError as refusal:
        words = say("sub_layers_wrote", refusal=refusal)
        refused.append(Caption(plain(words)))
    if not look.model.config.norms_sum:
        total = states[0] + sum(part.added for part in parts)
        compared[say("first_state_contributions")] = float(np.abs(total - states[-1]).max())
    if not compared:
        return None, refused
    words = "; ".join(f"{what} {difference(apart)}" for what, apart in compared.items())
    return Check(f"Check: {words}.", max(compared.values())), refused
