"""The tokens of the sentence as boxes with ids and bytes, and the same text cut by another tokenizer."""

import html
from collections.abc import Sequence

import streamlit as st

from model.loading.registry import models
from model.loading.word_pieces import WORD_PIECES, word_pieces
from model.run.tokenizers import GPT2Subset, Piece, gpt2, gpt2_tokens, pieces
from viz.elements.one_of import one_of
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.numbers import counted
from viz.notation.theme import KEY, MASKED, STREAM, rgba
from viz.shell.pictures import look_for, table
from viz.state.look import Look

UNKNOWN = "[UNK]"  # of word pieces
MANY = 90  # tokens; a longer row scrolls
GPT2_NAME = "GPT-2, its whole vocabulary"
_ROW = "display:flex;flex-wrap:wrap;gap:4px;padding:0;margin:0;list-style:none"
_BOX = (
    "display:flex;flex-direction:column;align-items:center;padding:4px 7px;margin:0;"
    "border-radius:4px;font-family:monospace;max-width:13rem;min-width:2.2rem"
)
_SMALL = "font-size:0.8rem;opacity:0.8;text-align:center;overflow-wrap:anywhere"
_TINTS = (rgba(STREAM, 0.20), rgba(STREAM, 0.09))


def token_list(seen: Look) -> None:
    found = pieces(seen.trace.tokens)
    strip(found, "tokens-own", "Tokens of your sentence")
    look_for(_surprise(seen, found))
    legend = "Each box shows the token's text, its id, and its bytes in hexadecimal."
    if not any(piece.hexadecimal for piece in found):
        legend = (
            "Each box shows the token's text and its id. This tokenizer works on characters, not "
            "bytes."
        )
    if any(piece.token.special for piece in found):
        legend += " Dashed boxes are tokens that the tokenizer added."
    if separator := seen.model.config.separator:
        (between,) = seen.model.tokenizer.named([separator])
        legend += f" Write {between.text} between two sentences to read them as a pair."
    st.caption(plain(legend))
    _table(found, "tokens-own")


def two_tokenizers(seen: Look) -> None:
    pictures = st.container()
    look_for(
        "Each tokenizer has its own list of pieces, so the same text gets different ids and often "
        "different tokens. Rare words are usually split into more pieces than common ones."
    )
    text = seen.request.text
    offered = {"own": f"{seen.title}, the chosen model"}
    others = word_pieces()
    if others is not None and seen.model.name != WORD_PIECES:
        offered[WORD_PIECES] = f"{models[WORD_PIECES].title}, word pieces"
    chosen = "own"
    if len(offered) > 1:
        names = list(offered)
        chosen = one_of(
            "Compare GPT-2's tokenizer with that of",
            names,
            "tokens-beside",
            named=offered.__getitem__,
        )
    tokens, size = seen.trace.tokens, seen.model.tokenizer.size
    if chosen == WORD_PIECES and others is not None:
        tokens, size = others.tokens(text), others.size
    full, other = pieces(gpt2_tokens(text)), pieces(tokens)
    left, right = pictures.columns(2, gap="medium")
    with left:
        _side(GPT2_NAME, gpt2().n_vocab, full, text, "tokens-gpt2")
    with right:
        _side(offered[chosen], size, other, text, "tokens-other")
    if chosen == "own" and isinstance(seen.model.tokenizer, GPT2Subset):
        st.caption(
            f"{plain(seen.title)} keeps {size:,} of GPT-2's tokens and renumbers them. Any other "
            "token is spelled out in bytes: type a rare word to see this."
        )


def _side(name: str, vocabulary: int, found: Sequence[Piece], text: str, key: str) -> None:
    typed = sum(not piece.token.special for piece in found)
    share = f", {len(text) / typed:.2f} characters each on average" if typed else ""
    st.markdown(f"**{plain(name)}**")
    strip(found, key, name)
    st.caption(
        f"{counted(typed, 'token')} for {counted(len(text), 'character')}{share}. "
        f"The vocabulary has {vocabulary:,} tokens."
    )
    _table(found, key)


def strip(found: Sequence[Piece], key: str, name: str) -> None:
    many = len(found) > MANY
    with st.container(key=key, height=340 if many else "content", border=False):
        st.html(token_strip(found, name))


def _surprise(seen: Look, found: Sequence[Piece]) -> str:
    if any(piece.part_of for piece in found):
        return (
            "The framed boxes hold only part of a character. Together with their neighbours they "
            "make a whole one; alone they have no text, so their bytes are shown."
        )
    unknown = seen.model.new_words(seen.request.text)
    if unknown and any(piece.token.text == UNKNOWN for piece in found):
        return (
            f"{UNKNOWN} stands for anything that this vocabulary cannot write. The model cannot "
            "tell what it was."
        )
    if any(piece.token.text.startswith("##") for piece in found):
        return "A piece that begins with ## continues the word before it."
    if isinstance(seen.model.tokenizer, GPT2Subset):
        return (
            "The space before a word, drawn as a dot, belongs to its token. So a word at the start "
            "of the text is a different token, with a different id, from the same word later."
        )
    return "Each box is one token: what the model reads as one unit. The number is its id."


def _table(found: Sequence[Piece], key: str) -> None:
    columns = {
        "token": [token_label(piece.spelled) for piece in found],
        "id": [str(piece.token.id) for piece in found],
        "bytes": [piece.hexadecimal or "—" for piece in found],
        "part of": [token_label(piece.part_of) if piece.part_of else "" for piece in found],
        "added": ["yes" if piece.token.special else "" for piece in found],
    }
    table(columns, key, index="position")


def token_strip(pieces: Sequence[Piece], name: str) -> str:
    """One box for each token, in order. Torn characters are framed, added tokens dashed. name: what a
    screen reader calls the row."""
    boxes = "".join(_box(piece, number) for number, piece in enumerate(pieces))
    return f'<ol style="{_ROW}" aria-label="{html.escape(name)}">{boxes}</ol>'


def _box(piece: Piece, number: int) -> str:
    lines = [
        f'<span style="font-size:0.95rem">{html.escape(token_label(piece.spelled))}</span>',
        f'<span style="{_SMALL}">{piece.token.id}</span>',
    ]
    if piece.hexadecimal:
        lines.append(f'<span style="{_SMALL};font-size:0.75rem">{piece.hexadecimal}</span>')
    if piece.part_of:
        part = html.escape(token_label(piece.part_of))
        lines.append(f'<span style="{_SMALL}">part of {part}</span>')
    return f'<li style="{_BOX};{_paint(piece, number)}">{"".join(lines)}</li>'


def _paint(piece: Piece, number: int) -> str:
    if piece.token.special:
        return f"border:1px dashed {MASKED}"
    if piece.part_of:
        return f"border:1px solid {KEY};background:{rgba(KEY, 0.12)}"
    return f"border:1px solid transparent;background:{_TINTS[number % 2]}"
