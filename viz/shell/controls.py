"""What a visitor chooses: the sentence, an example, a token, a layer and a head, an intervention."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from model.loading.registry import models
from model.nn.intervention import Intervention
from model.nn.places import head_label
from model.serving.engine import Request
from model.serving.trace_files import opens_file
from model.trace.blocks import of_query
from model.trace.records import Token
from viz.elements.one_of import one_listed, open_one
from viz.notation.labels import numbered_labels
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.shell.model_picker import looked_up, offer_knowing
from viz.state.intervention_words import hides_future, masks_for, other_mask
from viz.state.link import TEXT_LIMIT, short_link
from viz.state.look import Look, loaded, traced
from viz.state.presets import EXAMPLES, SentenceExample, reference_example
from viz.state.session import (
    change_view,
    current,
    first_text,
    intervene,
    open_view,
    set_intervention,
    shown,
    switch,
)

if TYPE_CHECKING:
    from model.run.model import Model

say = sentences_of("shell.controls")

MASK, SCALING = "hero-mask", "hero-scaled"  # names of switches

# The sentence, in a box of as many lines as it needs, and the examples to start from.
# Enter sends the sentence, Shift and Enter begin a new line: `viz.shell.keys` hears them.

_MODELS = {example.view.model for example in EXAMPLES}


def sentence_box(leads_to: str | None = None) -> None:
    """The sentence of the view. leads_to: the page that a new one opens, where this page reads none."""
    is_recorded = opens_file(current().model)  # it has one text, or none
    st.text_area(
        "Your sentence",
        height="content",
        max_chars=TEXT_LIMIT,
        placeholder="Recorded without a text" if is_recorded else say("type_sentence_press"),
        label_visibility="collapsed",
        disabled=is_recorded,
        **first_text(leads_to),
    )


def choose_example() -> None:
    """The examples of models that can be opened: those of the open model first."""
    here = {name for name in _MODELS if name in models or looked_up(name)[0]}
    listed = [example for example in EXAMPLES if example.view.model in here]
    model = current().model
    open_one(
        "Examples",
        sorted(listed, key=lambda example: example.view.model != model),
        "example",
        named=lambda example: f"{example.title}: {example.view.text}",
        placeholder="Examples",
        take=open_example,
        quiet=True,
        width=120,
    )


def say_link() -> None:
    """Says what a link to this view leaves out, where the sentence is too long for one."""
    if left_out := short_link(current())[1]:
        st.caption(say("too_long_link_leaves", left_out=", ".join(left_out)))


def open_example(example: SentenceExample) -> None:
    """Opens an example where the page stands."""
    open_view(replace(example.view, show=current().show))


def offer_reference() -> None:
    """In a sentence with “it” or “them”, a way to a model on this computer with a head that finds what the
    word stands for."""
    example = reference_example(current())
    if example is None or not looked_up(example.view.model)[0]:
        return
    title = models[example.view.model].short_title
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(
            say("stand_head_looks", refers=example.refers, title=title),
            width="content",
        )
        st.button(
            say("open_sentence", title=title),
            key="offer-reference",
            type="tertiary",
            on_click=_open_reference,
            args=(example,),
        )


def _open_reference(example: SentenceExample) -> None:
    """The visitor's sentence in the example's model and head, at the row of the word."""
    here = current()
    view = replace(example.view, text=here.text, show=here.show)
    try:
        tokens = [token.text.strip().lower() for token in loaded(view.model).tokens(view.text)]
        query = max(at for at, token in enumerate(tokens) if token == example.refers)
        trace = traced(Request(loaded(view.model).address, view.text))
    except ValueError:  # the page says why, or the word is part of a longer token
        change_view(replace(here, model=view.model, place=view.place, head=view.head))
        return
    row = of_query(trace.find(view.place), query).weights(view.head)[0]
    open_view(replace(view, query=query, key=int(row.argmax())))


def choose_languages(model: "Model") -> None:
    """The languages of a multilingual translator: of the text and of its translation."""
    if not model.languages:
        return
    chosen = (model.tokenizer.language, model.target_tokenizer.language)  # type: ignore[attr-defined]
    with st.container(horizontal=True, gap="small"):
        for place, label in enumerate(("From", "Into")):

            def take(code: str, place: int = place) -> None:
                pair = [*chosen]
                pair[place] = code
                change_view(replace(current(), languages=" ".join(pair)))

            st.selectbox(
                label,
                sorted(model.languages),
                help=say("until_languages_chosen"),
                width=220,
                **shown(f"choose-language-{place}", chosen[place], take),
            )


def undo_button() -> None:
    """Leads back to the unchanged model, where it is changed."""
    if current().intervention.changes:
        st.button(
            "Undo",
            key="undo-changes",
            type="tertiary",
            help=say("back_unchanged_model"),
            on_click=set_intervention,
            args=(Intervention(),),
        )


class PageSwitch(NamedTuple):
    """Of a switch: whether it is on in a run, and the run to which it leads from there."""

    on: bool
    leads_to: Look


def turns(look: Look) -> dict[str, PageSwitch]:
    """Of the switches of mask and scaling, by their names, where they change something."""
    now, led = look.request.intervention, dict[str, PageSwitch]()
    if not look.model.runs:
        return led

    def turn(on: bool, **fields: object) -> PageSwitch:
        changed = replace(now, **fields)  # type: ignore[arg-type]
        return PageSwitch(on, Look(replace(look.request, intervention=changed)))

    if other := other_mask(look.model):
        on, own = (hides_future(look.model, mask) for mask in (now.mask, "model"))
        led[MASK] = turn(on, mask=other if on == own else "model")
    if _own_scale(look) != 1:
        led[SCALING] = turn(now.scale is None, scale=1.0 if now.scale is None else None)
    return led


def _own_scale(look: Look) -> float:
    return (look.baseline or look.trace).find(look.place).scale


def choose_parts(look: Look) -> None:
    """The three changes of the main job as switches: mask, scaling, and the chosen head. One that changes
    nothing in this model is off, and says why."""
    model, intervention = look.model, current().intervention
    if not model.runs:
        st.caption(say("recorded_run_nothing"))
        return
    other, hides = other_mask(model), hides_future(model, "model")
    st.toggle(
        "Hide the future",
        disabled=other is None,
        help=None if hides else say("model_hides_nothing"),
        **switch(
            MASK,
            hides_future(model, intervention.mask),
            lambda on: intervene(mask="model" if on == hides else other),
        ),
    )
    divides = _own_scale(look) != 1
    st.toggle(
        "Divide scores by √d",
        disabled=not divides,
        help=None if divides else say("model_not_divide"),
        **switch(
            SCALING,
            divides and intervention.scale is None,
            lambda divided: intervene(scale=None if divided else 1.0),
        ),
    )
    head = look.place, look.head
    st.toggle(
        f"Use head {head_label(head)}",
        **switch(
            "hero-head",
            head not in intervention.ablated,
            lambda on: intervene(ablated=current().intervention.ablated ^ {head}),
        ),
    )


def fitting(intervention: Intervention, model: "Model") -> Intervention:
    """The intervention without masks, layers and heads that this model does not have."""
    names, patch = frozenset(model.attention_names), intervention.patch
    only = None if intervention.only is None else (intervention.only & names) or None
    return replace(
        intervention,
        positions=intervention.positions or "positions" in model.unproven,
        mask=intervention.mask if intervention.mask in masks_for(model) else "model",
        ablated=frozenset(head for head in intervention.ablated if head[0] in names),
        weights=frozenset(cell for cell in intervention.weights if cell[0] in names),
        stream=frozenset(
            cell
            for cell in intervention.stream
            if cell[0] in names and cell[2] < model.config.d_model
        ),
        patch=patch if patch is not None and patch.model == model.name else None,
        only=only,
    )


def offer_alternatives(model: "Model", offers: Sequence[str]) -> None:
    """Buttons that lead back from a text or an intervention that cannot be run. offers: models that know its
    words."""
    if current().target is not None:
        st.button(
            say("let_model_write"),
            on_click=lambda: change_view(replace(current(), target=None)),
        )
    if current().intervention.changes:
        st.button(say("back_unchanged_model_2"), on_click=set_intervention, args=(Intervention(),))
    if model.new_words(current().text):
        offer_knowing(current().text, offers)
    words = getattr(model.tokenizer, "words", ())
    if words:
        with st.expander(say("words_model_knows", words=len(words))):
            st.markdown(plain(" ".join(sorted(words))))
    sample = next((example for example in EXAMPLES if example.view.model == model.address), None)
    if sample and sample.view.text != current().text:
        st.button(
            f"Open “{plain(sample.view.text)}”",
            key="offer-example",
            on_click=open_example,
            args=(sample,),
        )


LISTED = 24  # characters of a token in a list


def pick_token(tokens: Sequence[Token], key: str) -> int:
    """The position of the chosen token; at first the longest typed one of this sentence."""
    longest = max(
        range(len(tokens)),
        key=lambda place: (not tokens[place].special, sum(map(str.isalpha, tokens[place].text))),
    )
    key = f"{key}-{hash(tuple(token.id for token in tokens))}"
    labels = numbered_labels([token.text for token in tokens], LISTED)
    return one_listed("Token", labels, key, first=longest)
