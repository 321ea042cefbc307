"""The sentence as a chat template wraps it, its own tokens told from those of the template."""

import html
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import streamlit as st

from model.hub.tokenizer import HubTokenizer
from model.run.tokenizers import Piece, pieces
from model.trace.unproven import NotShownError
from viz.notation.labels import token_label
from viz.notation.words import sentences_of
from viz.shell.panel import Caption, Panel
from viz.state.look import Look
from viz.state.session import current, open_view
from viz.views.tokens.listing import STYLE

say = sentences_of("tokens.chat")

_ROLE = re.compile(r"(system|developer|user|assistant|model|tool)\b")


class Chat(NamedTuple):
    """A text in the form of the template. own: where the user's words begin and end in it."""

    text: str
    own: tuple[int, int]
    typed: bool  # whether the sentence of the page already has this form


def has_template(look: Look) -> bool:
    """Whether the open model has a chat template."""
    tokenizer = look.model.tokenizer
    return isinstance(tokenizer, HubTokenizer) and tokenizer.template is not None


def as_a_chat(look: Look) -> Panel:
    """The wrapped text, with the roles and special tokens of the template. Refuses where it has none."""
    chat, refusal = _wrapped(look)
    if chat is None:
        raise NotShownError(refusal or f"{look.title} has no chat template.")
    tokens = _tokens(look, chat)
    return Panel(
        "tokens-as-a-chat",
        look_for=say("framed_text_rest"),
        picture=partial(st.html, chat_lines(tokens, chat)),
        beside=[
            partial(_offer_to_read, look, chat, len(tokens)),
            Caption(say("trained_answer_chats", look=look.title)),
            partial(st.code, chat.text, language=None, wrap_lines=True),
        ],
    )


def offer_chat(look: Look) -> None:
    """Where a model answers chats: the tokens of the chat that it reads, or would read."""
    chat, _ = _wrapped(look)
    if chat is not None:
        tokens = _tokens(look, chat)
        st.markdown("**As a chat**")
        st.html(chat_lines(tokens, chat))
        _offer_to_read(look, chat, len(tokens))


def _wrapped(look: Look) -> tuple[Chat | None, str]:
    """The text in the form of the model's template, or why there is none."""
    tokenizer = look.model.tokenizer
    if not isinstance(tokenizer, HubTokenizer):
        return None, ""
    try:
        wrapped = tokenizer.wrapped(look.request.text)
    except ValueError as error:
        return None, str(error)
    return None if wrapped is None else chat_of(look.request.text, wrapped), ""


def _tokens(look: Look, chat: Chat) -> Sequence[Piece]:
    tokenizer = look.model.tokenizer
    tokens = tokenizer.tokens(chat.text)
    if isinstance(tokenizer, HubTokenizer):
        tokens = tokenizer.marked(tokens)
    return pieces(tokens)


def chat_of(typed: str, wrapped: str) -> Chat:
    """The wrapped text, or the typed one where it begins and ends as the template does."""
    words = typed.strip()
    begins = wrapped.rfind(words)
    if begins < 0:  # the template writes the words in another way
        return Chat(wrapped, (0, 0), typed=False)
    before, after = wrapped[:begins].strip(), wrapped[begins + len(words) :].strip()
    if not before or not (words.startswith(before) and words.endswith(after)):
        return Chat(wrapped, (begins, begins + len(words)), typed=False)
    inner = words[len(before) : len(words) - len(after)]
    start = typed.index(words) + len(before) + len(inner) - len(inner.lstrip())
    return Chat(typed, (start, start + len(inner.strip())), typed=True)


def _offer_to_read(look: Look, chat: Chat, count: int) -> None:
    """What the model reads, and a way to let it read the chat, which has so many tokens."""
    if chat.typed:
        st.markdown(say("model_reads_text", count=count))
        return
    st.markdown(say("model_not_read_yet", tokens=len(look.trace.tokens), count=count))
    st.button(
        say("run_model_text"),
        key="tokens-as-chat",
        help=say("wrapped_text_takes"),
        on_click=lambda: open_view(replace(current(), text=chat.text)),
    )


def chat_lines(tokens: Sequence[Piece], chat: Chat) -> str:
    """The tokens, a new line at each role. The user's are framed, those that stand for no text dashed."""
    lines: list[list[str]] = [[]]
    for token in tokens:
        span = token.token.span
        if token.token.special and span is not None and _ROLE.match(chat.text, span[1]):
            lines.append([])
        lines[-1].append(_chip(token, chat.own))
    rows = "".join(f"<ol>{''.join(line)}</ol>" for line in lines if line)
    name = say("tokens_sentence_chat")
    return f'{STYLE}<div class="tokens chat" role="group" aria-label="{name}">{rows}</div>'


def _chip(piece: Piece, own: tuple[int, int]) -> str:
    span = piece.token.span
    is_own = span is not None and max(span[0], own[0]) < min(span[1], own[1])
    look = "added" if piece.token.special else "named" if is_own else ""
    label = html.escape(token_label(piece.spelled))
    return f'<li class="{look}" title="id {piece.token.id}"><b>{label}</b></li>'
