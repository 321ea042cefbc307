"""The tokens of the sentence with ids and bytes, and the same text cut by another tokenizer."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from model.loading.registry import models
from model.loading.word_pieces import WORD_PIECES, word_pieces
from model.run.token_bytes import Piece, gpt2_tokens, pieces
from model.run.tokenizers import GPT2Subset, gpt2
from viz.elements.one_of import one_of
from viz.notation.labels import token_label
from viz.notation.numbers import counted
from viz.shell.pictures import table
from viz.state.look import Look
from viz.views.tokens.strip import token_strip

UNKNOWN = "[UNK]"  # of word pieces
MANY = 90  # tokens; a longer row scrolls
GPT2_NAME = "GPT-2, all its byte pairs"


def token_list(seen: Look) -> None:
    """The model's own tokens, in boxes."""
    found = pieces(seen.trace.tokens)
    st.markdown(f"**What to look for.** {_surprise(seen, found)}")
    _strip(found, "tokens-own", "Tokens of your sentence")
    st.caption(_legend(found))
    table(_frame(found), "tokens-own")


def two_tokenizers(seen: Look) -> None:
    """GPT-2's cut of the text above another's."""
    st.markdown(
        "**What to look for.** Each tokenizer has its own list of pieces, so the same text gets "
        "other ids and often other tokens. Rare words often fall into more pieces than common ones."
    )
    text = seen.request.text
    offered = {"own": f"{seen.model.name}, the chosen model"}
    others = word_pieces()
    if others is not None and seen.model.name != WORD_PIECES:
        offered[WORD_PIECES] = f"{models[WORD_PIECES].title}: word pieces"
    chosen = "own"
    if len(offered) > 1:
        chosen = one_of(
            "Beside GPT-2's",
            list(offered),
            "tokens-beside",
            default="own",
            named=offered.__getitem__,
        )
    tokens = seen.trace.tokens
    size = seen.model.tokenizer.size
    if chosen == WORD_PIECES and others is not None:
        tokens, size = others.tokens(text), others.size
    full, other = pieces(gpt2_tokens(text)), pieces(tokens)
    left, right = st.columns(2, gap="medium")
    with left:
        _side(GPT2_NAME, gpt2().n_vocab, full, text, "tokens-gpt2")
    with right:
        _side(offered[chosen], size, other, text, "tokens-other")
    if chosen == "own" and isinstance(seen.model.tokenizer, GPT2Subset):
        st.caption(
            f"{seen.model.name} keeps {size:,} of GPT-2's tokens and numbers them anew. A token "
            "that it does not keep is spelled in its bytes: type a rare word to see it."
        )


def _side(name: str, vocabulary: int, found: Sequence[Piece], text: str, key: str) -> None:
    typed = sum(not piece.token.special for piece in found)
    share = f", {len(text) / typed:.2f} characters each on average" if typed else ""
    st.markdown(f"**{name}**")
    st.caption(
        f"{counted(typed, 'token')} for {counted(len(text), 'character')}{share}. "
        f"The vocabulary has {vocabulary:,} tokens."
    )
    _strip(found, key, name)
    table(_frame(found), key)


def _strip(found: Sequence[Piece], key: str, name: str) -> None:
    many = len(found) > MANY
    with st.container(key=key, height=340 if many else "content", border=False):
        st.html(token_strip(found, name))


def _surprise(seen: Look, found: Sequence[Piece]) -> str:
    """What is worth noticing in this sentence's tokens."""
    if any(piece.part_of for piece in found):
        return (
            "The framed boxes hold bytes that are no whole character. Together with their "
            "neighbours they make one; alone they have no text, so their bytes are written out."
        )
    unknown = seen.model.new_words(seen.request.text)
    if unknown and any(piece.token.text == UNKNOWN for piece in found):
        return (
            f"{UNKNOWN} stands for what this vocabulary cannot write. Whatever it was, the model "
            "reads the same."
        )
    if any(piece.token.text.startswith("##") for piece in found):
        return "A piece that begins with ## continues the word before it."
    if isinstance(seen.model.tokenizer, GPT2Subset):
        return (
            "A word's space belongs to its token, drawn as a dot. So a word at the start of the "
            "text is another token, with another id, than the same word later."
        )
    return "Each box is one token: what the model reads as one unit. The number is its id."


def _legend(found: Sequence[Piece]) -> str:
    lines = ["Each box: the token's text, its id, and its bytes in hexadecimal."]
    if not any(piece.hexadecimal for piece in found):
        lines = [
            "Each box: the token's text and its id. This tokenizer works on characters, not bytes."
        ]
    if any(piece.token.special for piece in found):
        lines.append("Dashed: added by the tokenizer, not typed.")
    return " ".join(lines)


def _frame(found: Sequence[Piece]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "token": [token_label(piece.spelled) for piece in found],
            "id": [str(piece.token.id) for piece in found],
            "bytes": [piece.hexadecimal or "—" for piece in found],
            "part of": [token_label(piece.part_of) if piece.part_of else "" for piece in found],
            "added": ["yes" if piece.token.special else "" for piece in found],
        }
    ).rename_axis("position")
