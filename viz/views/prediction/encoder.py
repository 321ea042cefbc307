"""Where the chosen model is an encoder, a GPT reads the same text in its place, and the page says so."""

from dataclasses import replace

import streamlit as st

from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.shell.model_picker import language_model_for, model_title, open_model
from viz.state.look import Look, traced

say = sentences_of("prediction.encoder")


def read_by_a_gpt(look: Look, words: str) -> Look | None:
    """The look of a GPT at the text of an encoder, and a way to it. None where no GPT here can read it.

    words: what the encoder cannot do.
    """
    name = language_model_for(look.request.text)
    said = say("encoder_reads_text", look=look.title, words=words)
    if name is None:
        st.markdown(plain(said))
        return None
    title, instead = model_title(name), None
    try:
        seen = Look(replace(look.request, model=name, target=None, languages=()))
        traced(seen.request)
        instead, said = seen, say("below_reads_same", said=said, title=title)
    except ValueError:  # the text is longer than its context
        pass
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(plain(said), width="content")
        st.button(f"Use {plain(title)}", "use-a-gpt", on_click=open_model, args=(name,))
    return instead
