"""Windows over the sentence's own tokens: length, stride, and the target moved on by one."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from model.analysis.tokens.windows import Window, windows
from model.run.token_bytes import Piece, pieces
from model.run.tokenizers import Tokenizer, spelled
from viz.figures.diagrams import sliding_windows
from viz.notation.csv_safe import sheltered_table
from viz.notation.labels import token_label, visible
from viz.notation.numbers import counted
from viz.shell.pictures import beside_words, chart, table
from viz.state.look import Look

INPUTS = (
    r"\begin{aligned} x_k &= (t_{sk}, \ldots, t_{sk+n-1}) \\"
    r" y_k &= (t_{sk+1}, \ldots, t_{sk+n}) \end{aligned}"
)
DRAWN = 8  # windows at most
LONGEST, WIDEST_STEP = 16, 16


def token_windows(seen: Look) -> None:
    """Sliders for length and stride, the windows, and what each position is to predict."""
    typed = [piece for piece in pieces(seen.trace.tokens) if not piece.token.special]
    texts = [piece.spelled for piece in typed]
    if len(texts) < 2:
        st.info(
            "A window needs at least two tokens: one to read and the next one to predict. "
            "Type a longer sentence."
        )
        return
    picture, choices = beside_words(
        "Below each window is its target: the same tokens shifted by one. The stride is something "
        "else: the distance from one window to the next. If it is smaller than the length, windows "
        "overlap."
    )
    with choices:
        length, stride = _sliders(len(texts))
        found = windows(range(len(texts)), length, stride)
        st.latex(INPUTS)
        st.latex(number_of_windows(len(texts), length, stride, len(found)))
        chosen: int = st.selectbox("Window", range(len(found)), key=f"tokens-window-{len(found)}")
        _pairs(seen.model.tokenizer, found[chosen], typed)
    shown = found[:DRAWN]
    with picture:
        figure = sliding_windows(shown, texts, chosen=chosen if chosen < len(shown) else None)
        chart(figure, "tokens-windows-picture")
        st.caption(_caption(seen, found, len(texts), stride))
    labels = list(map(token_label, texts))
    columns = {
        "starts at": [str(window.start) for window in found],
        "input": [" ".join(labels[place] for place in window.inputs) for window in found],
        "target": [" ".join(labels[place] for place in window.target) for window in found],
    }
    table(columns, "tokens-windows", index="window")


def number_of_windows(tokens: int, length: int, stride: int, found: int) -> str:
    """How many windows fit, in general and with the numbers of one text."""
    return (
        r"\begin{aligned} \#\text{windows} &= \left\lceil \frac{N - n}{s} \right\rceil \\ &="
        rf" \left\lceil \frac{{{tokens} - {length}}}{{{stride}}} \right\rceil = {found}"
        r" \end{aligned}"
    )


def _sliders(count: int) -> tuple[int, int]:
    """Window length and stride; where only one is possible it is said, not offered."""
    longest = min(LONGEST, count - 1)
    if longest == 1:
        st.caption("Two tokens make one window of length 1.")
        return 1, 1
    length = st.slider("Length", 1, longest, min(4, longest), key=f"tokens-length-{longest}")
    widest = min(WIDEST_STEP, count - 1)
    stride = st.slider("Stride", 1, widest, min(2, widest), key=f"tokens-stride-{widest}")
    return length, stride


def _pairs(tokenizer: Tokenizer, window: Window[int], typed: Sequence[Piece]) -> None:
    read = (read_as(tokenizer, typed[window.start : place + 1]) for place in window.inputs)
    frame = pd.DataFrame(
        {
            "after reading": list(map(visible, read)),
            "predict": [token_label(typed[place].spelled) for place in window.target],
        }
    )
    height = min(36 * (len(window.inputs) + 1), 190)
    st.dataframe(sheltered_table(frame), hide_index=True, key="tokens-pairs", height=height)


def read_as(tokenizer: Tokenizer, tokens: Sequence[Piece]) -> str:
    """Tokens as the text that they stand for. Bytes are joined as they are; what has none, a word or a
    part of one, as the tokenizer writes it."""
    if all(piece.token.raw for piece in tokens):
        return spelled(b"".join(piece.token.raw for piece in tokens))
    return tokenizer.decode([piece.token.id for piece in tokens])


def _caption(seen: Look, found: Sequence[Window[int]], count: int, stride: int) -> str:
    length = len(found[0].inputs)
    words = [
        f"Windows of {counted(length, 'token')}, {stride} apart. Neighbouring windows share "
        f"{counted(max(length - stride, 0), 'token')}."
    ]
    if len(found) > DRAWN:
        words.append(f"The picture shows the first {DRAWN} of {len(found):,}; the table has all.")
    unread = count - 1 - (found[-1].start + length)
    if unread:
        words.append(
            "The last token is not a target here: no whole window reaches it."
            if unread == 1
            else f"The last {unread} tokens are not targets here: no whole window reaches them."
        )
    if seen.model.config.shape == "encoder":
        words.append(
            "This model is an encoder, which is not trained to predict next tokens; a GPT is. Its "
            "tokens are used here as an illustration."
        )
    return " ".join(words)
