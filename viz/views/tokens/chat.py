"""The sentence as it is typed, and as the chat template of an instruct model wraps it."""

from dataclasses import replace

import streamlit as st

from model.hub.tokenizer import HubTokenizer
from model.run.token_bytes import pieces
from viz.notation.markdown import plain
from viz.notation.numbers import counted
from viz.shell.pictures import look_for
from viz.state.look import Look
from viz.state.session import current, open_view
from viz.views.tokens.listing import strip

INSTRUCT = "SmolLM2-135M-Instruct"


def as_a_chat(seen: Look) -> None:
    """Typed and wrapped side by side, with the roles and special tokens of the template."""
    typed, as_chat = st.columns(2, gap="medium")
    tokenizer, tokens = seen.model.tokenizer, seen.trace.tokens
    text, refusal = None, ""
    if isinstance(tokenizer, HubTokenizer):
        try:
            text = tokenizer.wrapped(seen.request.text)
        except ValueError as error:
            refusal = str(error)
        tokens = tokenizer.marked(tokens)
    with typed:
        st.markdown(
            f"**As it is typed**: {counted(len(tokens), 'token')}. This is fed to the model."
        )
        strip(pieces(tokens), "tokens-typed", "Tokens of the sentence as it is typed")
    with as_chat:
        if text is None or not isinstance(tokenizer, HubTokenizer):
            _tell_none(seen, refusal)
            return
        wrapped = tokenizer.marked(tokenizer.tokens(text))
        st.markdown(f"**As the chat template wraps it**: {counted(len(wrapped), 'token')}.")
        strip(pieces(wrapped), "tokens-wrapped", "Tokens of the sentence as a chat")
        st.code(text, language=None, wrap_lines=True)
        st.button(
            "Feed it to the model so",
            key="tokens-as-chat",
            help="The wrapped text takes the place of your sentence, on every page.",
            on_click=_feed,
            args=(text,),
        )
    marks = sum(token.special for token in wrapped)
    look_for(
        f"{plain(seen.model.name)} was trained to answer on chats written in this form: the role of who "
        f"speaks, then the message, between {counted(marks, 'token')} that stand for no text (dashed). The "
        "text ends where the assistant begins to write. Without the template the model only goes on with "
        "your sentence."
    )


def _tell_none(seen: Look, refusal: str) -> None:
    """Why nothing is wrapped."""
    if refusal:
        st.warning(plain(refusal))
    look_for(
        f"{plain(seen.model.name)} has no chat template that can be shown: it goes on with a text, or reads "
        f"one. A model trained to answer has one: open {INSTRUCT} under *Other models*."
    )


def _feed(text: str) -> None:
    open_view(replace(current(), text=text))
