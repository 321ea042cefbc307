"""The run that the view asks for. What the model or the text does not have is left out, with a sentence."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from model.analysis.run_comparison import is_word, most_gained
from model.loading.registry import models
from model.nn.intervention import Intervention
from model.serving.engine import Request
from model.trace.blocks import of_query
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.shell import controls, model_picker
from viz.shell.recorded_run import show_as_recorded
from viz.state.intervention_words import fitting_text
from viz.state.link import View
from viz.state.look import Look
from viz.state.session import change_view, current, take_cell_choice, write_link

if TYPE_CHECKING:
    from model.run.model import Model

say = sentences_of("shell.request")

_SETTLED = "settled-model"  # the model whose layers the view was last brought to


def settle(model: "Model") -> None:
    """Fits the view to this model. Says so where a link asked for something that the model does not have."""
    if show_as_recorded(model):  # the sentence box was drawn before the file had been read
        write_link()
        st.rerun()
    view, names = current(), model.attention_names
    switched = st.session_state.get(_SETTLED) not in (None, model.address)
    st.session_state[_SETTLED] = model.address
    if view.place not in names:
        if view.place != View().place and not switched:
            st.warning(plain(say("layer_first_shown", model=model.name, place=view.place)))
        view = replace(view, place=names[0])
    view = replace(view, head=min(view.head, model.config.heads - 1))
    change_view(replace(view, intervention=controls.fitting(view.intervention, model)))


def run_of(model: "Model", text: str, changed: bool, full: bool) -> Request:
    """The run of a text that the view asks for."""
    if changed:
        fit_intervention(model, len(model.tokens(text)))
    view = current()
    return Request(
        model.address,
        text,
        target=_target(model),
        intervention=view.intervention if changed else Intervention(),
        full=full,
        changed=model.changed,
        languages=_languages(model),
    )


def in_languages(model: "Model") -> "Model":
    """The model between the languages of the view, where it has such languages."""
    try:
        return model.translating(*current().languages.split())
    except (TypeError, ValueError):  # another number of languages than two, or others
        change_view(replace(current(), languages=""))
        return model


def _languages(model: "Model") -> tuple[str, ...]:
    """Those that were chosen; none where the model has none."""
    return tuple(current().languages.split()) if model.languages else ()


def _target(model: "Model") -> str | None:
    """What the decoder is to read; None: its own output, or there is no second text."""
    return current().target if model.config.shape == "encoder-decoder" else None


def fit_intervention(model: "Model", length: int) -> None:
    """Removes from the intervention what this model or a text of so many tokens lacks, and says so."""
    view = current()
    intervention = fitting_text(view.intervention, model, length)
    if intervention != view.intervention:
        change_view(replace(view, intervention=intervention))
        st.info(say("parts_change_not", length=length))


def readable(model: "Model", offers: Sequence[str]) -> str:
    """As much of the text as the model can read; says so where that is not all."""
    text = current().text
    kept = model.truncate(text)
    if kept != text:
        length, context = len(model.tokens(text)), model.config.n_ctx
        title = plain(models[model.address].title)
        st.warning(say("text_long_reads", length=length, title=title, context=context))
    model_picker.warn_of_new_words(model, kept, offers)
    return kept


def settle_cell(seen: Look) -> None:
    """Chooses the cell where the reader has chosen none in this sentence, or has just changed the mechanism
    by a card: then what the change is about, else the largest one of the last word."""
    choice = take_cell_choice()
    if choice is None:
        return
    attention, head = seen.attention, seen.head
    if choice == "difference":
        found = seen.baseline and most_gained(seen.baseline, seen.trace, (seen.place, head))
        query, key = found or current().cell
    else:
        tokens = seen.trace.queries_of(attention)
        words = [at for at, token in enumerate(tokens) if is_word(token)]
        query = words[-1] if words else len(tokens) - 1
        key = int(of_query(attention, query).weights(head)[0].argmax())
    change_view(replace(current(), query=query, key=key))


def still_asked(seen: Look) -> bool:
    """Whether the view is still of this model (or file), text and target, whatever it changes in the run, and
    its layer one of this model's."""
    view, request = current(), seen.request
    model = seen.model
    same_text = view.text == request.text or model.truncate(view.text) == request.text
    asked = view.model, _target(model), model.changed, _languages(model)
    same_run = same_text and asked == (
        request.model,
        request.target,
        request.changed,
        request.languages,
    )
    return same_run and view.place in model.attention_names


def still_shown(seen: Look) -> bool:
    """Whether the view still asks for this very run. The browser sends what was turned beside a picture with
    what happened in it, as of the picture alone."""
    return still_asked(seen) and current().intervention == seen.request.intervention
