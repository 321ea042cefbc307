"""A model that can do what the open one cannot: know the words of a text, or predict the next token."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from model.loading.registry import models
from model.loading.word_pieces import WORD_PIECES, word_pieces
from model.run.tokenizers import GPT2Subset
from viz.notation.markdown import plain
from viz.shell.model_picker import model_title, open_model
from viz.state.engine import engine

if TYPE_CHECKING:
    from model.run.model import Model
    from viz.state.look import Look

LANGUAGE_MODELS = ("house-gpt", "smollm2-135m-instruct")  # that are offered, the best first
ANY_MODELS = (*LANGUAGE_MODELS, WORD_PIECES)  # the last one predicts nothing


def warn_of_new_words(model: "Model", text: str, offers: Sequence[str]) -> None:
    """Says which words are not in the model's vocabulary, and offers one of some models that has them."""
    words = model.new_words(text)
    if not words:
        return
    listed = ", ".join(f"“{word}”" for word in words[:6]) + (" and more" if len(words) > 6 else "")
    spelled = f"{'it' if len(words) == 1 else 'them'} byte by byte"
    read = (
        spelled if isinstance(model.tokenizer, GPT2Subset) else "a token for unknown text instead"
    )
    st.info(plain(f"This model does not know {listed}. It reads {read}."))
    offer_knowing(text, offers)


def offer_knowing(text: str, offers: Sequence[str]) -> None:
    """A button that opens the first of some models that knows every word of a text."""
    name = _knowing(text, offers)
    if name is not None:
        offer_model(name)


def say_encoder(seen: "Look", words: str) -> None:
    """Says what an encoder cannot do, and offers a model that predicts the next token: one that knows
    the text's words, else one that spells them."""
    st.info(plain(f"{seen.title} is an encoder: it {words}"))
    text = seen.request.text
    here = (name for name in LANGUAGE_MODELS if models.found(name) is not None)
    name = _knowing(text, LANGUAGE_MODELS) or next(here, None)
    if name is not None:
        offer_model(name, "predicts")


def offer_model(name: str, why: str = "offer") -> None:
    """A button that opens the same sentence in another model, on the whole page. why: part of its key."""
    if st.button(f"Read it with {plain(model_title(name))}", key=f"{why}-{name}"):
        open_model(name)
        st.rerun()


def _knowing(text: str, names: Sequence[str]) -> str | None:
    """The first of some models that can be had here and has no new word in a text."""
    return next((name for name in names if _knows(name, text)), None)


def _knows(name: str, text: str) -> bool:
    entry = models.found(name)
    if entry is None or entry.reads_all:
        return entry is not None
    if name == WORD_PIECES:
        pieces = word_pieces()
        return pieces is not None and not pieces.new_words(text)
    try:
        return not engine().model(name, lambda sentence, share: None).new_words(text)
    except ValueError:  # its files are damaged
        return False
