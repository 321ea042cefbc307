"""The one seam with Streamlit: menu, sentence box, choices, the link, and the way to a trace.

A page calls `open_page`, then `look` for what the visitor wants to see. The state is one `View` a
session; every control shows a part of it and writes it back, and the link always says the whole.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from model.loading.registry import models
from model.nn.intervention import Intervention
from model.trace.uploaded import is_uploaded
from viz.explorer.component import asks_for_check, explorer
from viz.explorer.message import LIGHT, Hero, bytes_of
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.names import kinds_of_layers, modules_of
from viz.notation.words import sentences_of
from viz.questions.claims import claims
from viz.saving.save import picture_facts, save_view
from viz.shell import controls, model_picker
from viz.shell.controls import PageSwitch
from viz.shell.frame import beats as beats
from viz.shell.frame import frame
from viz.shell.frame import open_page as open_page
from viz.shell.head_picker import head_picker
from viz.shell.panel import PanelView, draw_view
from viz.shell.recorded_run import open_trace_file, say_recorded
from viz.shell.request import (
    fit_intervention,
    in_languages,
    readable,
    run_of,
    settle,
    settle_cell,
    still_asked,
)
from viz.state.engine import engine
from viz.state.intervention_words import parts
from viz.state.look import Look, is_loaded, loaded, traced
from viz.state.navigation import HOME, page_link
from viz.state.session import (
    arrived,
    carried_link,
    change_view,
    choose_detail,
    current,
    opens_with,
    set_intervention,
    shown,
    write_link,
)
from viz.tour import card as tour

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.run.model import Model

phrase = sentences_of("shell.page")

LISTED = 190  # pixels of a list of views
# Holds the place of the first picture while the model runs: viz/shell/style.css.
_HELD = '<div class="held"><span>The model reads the sentence.</span></div>'
# Attention weights of a run that is checked before its picture is sent: 0.1 s.
CHECKED_AT_ONCE = 2**23
AHEAD = 2e9  # tokens × weights of a pass that is run before its switch is turned: 0.1 s


def look(
    *,
    changed: bool = False,
    head: bool = False,
    full: bool = False,
    offers: Sequence[str] = model_picker.ANY_MODELS,
) -> Look:
    """The sentence box and the choices, then the run they ask for.

    changed: whether the intervention of the view is run. head: whether the page shows one head, which is
    chosen in the work bar. full: whether the trace holds feed-forward activations and norm outputs too.
    offers: the models that can do what the page asks; one of them is offered where words are new to the open
    one.
    Stops the page with a sentence where there is nothing to run; what was typed stays.
    """
    around = frame()
    around.draw_controls()
    model: Model | None = None
    picture = st.empty()
    if arrived():
        picture.html(_HELD)
    try:
        with around.said:
            controls.say_link()
            model_picker.say_files()
            model = in_languages(_loaded(current().model))
            settle(model)
            say_recorded(model)
            model_picker.say_unused(model)
            controls.choose_languages(model)
            around.draw_map(model)
            around.light_layer(current().place)
            seen = Look(run_of(model, readable(model, offers), changed, full))
            with _queue_line() as say:  # the traces are made here, where a refusal has its place
                for request in seen.requests:
                    traced(request, say)
            settle_cell(seen)
            if head or changed:
                controls.offer_reference()
            if not changed:
                _say_unchanged(seen)
        picture.empty()
    except ValueError as refusal:
        picture.empty()
        _refuse(refusal, model, offers)
        with around.card:
            tour.card(None)
        st.stop()
    write_link()
    with around.card:
        tour.card(seen)
    if head and not tour.is_asking():
        with around.bar:
            head_picker(seen.request)
    return seen


@st.fragment
def views(options: Mapping[str, PanelView], *arguments: object, listed: str = "") -> None:
    """`chosen_view` as a fragment: a click inside it leaves the rest of the page and the arguments as they
    were. A click that opens another text or model draws the whole page."""
    if not all(still_asked(one) for one in arguments if isinstance(one, Look)):
        st.rerun()
    frame().follow_way()
    chosen_view(options, *arguments, listed=listed)


def chosen_view(options: Mapping[str, PanelView], *arguments: object, listed: str = "") -> None:
    """The choice of a view of the page; calls the chosen view with the arguments.

    The choice joins the link; only the chosen view is drawn. listed: the label of a list in which all of them
    stand, in place of a row.
    """
    # Where a picture is drawn: below the choices, but in a frame of another page first of all.
    picture = st.container() if frame().is_embedded else nullcontext()
    said = st.container(key="look-for")
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="controls")
    with row:
        frame().draw_ways()
        choose_view(list(options), listed)
    with picture:
        draw_view(options[current().show], *arguments, beside=row, said=said)
    write_link()
    tour.notice()
    frame().follow_head()


def choose_view(names: Sequence[str], listed: str = "") -> None:
    """The views of the page side by side, where it has several. The first one opens by itself, also where the
    link names one that is not offered here. listed: as `chosen_view` takes it."""
    opens_with(names[0])
    if current().show not in names:
        change_view(replace(current(), show=names[0]))
    if len(names) == 1:
        return
    # One widget for as long as the page is open: where another took its place before the browser had drawn
    # this one, both would stay.
    chosen = shown(
        "choose-show", current().show, lambda show: change_view(replace(current(), show=show))
    )
    if listed:
        st.selectbox(listed, names, width=LISTED, **chosen)
    else:
        st.segmented_control("Show", names, required=True, label_visibility="collapsed", **chosen)


def switched(look: Look) -> Look | None:
    """The run of a part of the page with what was switched in it; None where it is refused, in a sentence.
    Where another text or model is already asked for, the whole page is drawn."""
    if not still_asked(look):
        st.rerun()
    try:
        with _queue_line() as say:
            unchanged = traced(look.requests[-1], say)
            fit_intervention(look.model, len(unchanged.tokens))
            changed = Look(replace(look.request, intervention=current().intervention))
            traced(changed.request, say)
    except ValueError as refusal:
        _refuse(refusal, look.model)
        return None
    return changed


def explored(
    seen: Look, hero_of: Callable[[Look], Hero], turns: Callable[[Look], Mapping[str, PageSwitch]]
) -> None:
    """The explorer on the chosen layer; layer, head, stage and cell join the link when they change.

    hero_of: what stands around the map of a run. turns: of the switches of the page in a run, by their names.
    The browser has the runs to which they lead ahead, where those are cheap to run and to send.
    """
    cheap = _is_cheap(seen)

    def facts(run: Look) -> dict[str, Any]:
        turned = turns(run) if cheap else {}
        said = {name: {"on": turn.on, "run": turn.leads_to.run} for name, turn in turned.items()}
        return _facts(run, hero_of(run)) | {"turns": said}

    chosen = explorer(
        **facts(seen),
        selection=current().selection,
        layers=seen.model.attention_names,
        modules=modules_of(seen.trace),
        select=lambda selection: change_view(current().at(selection)),
        open_layer=lambda name: change_view(replace(current(), place=name)),
        set_detail=choose_detail,
        ahead=lambda: [
            facts(turn.leads_to) for turn in turns(seen).values() if _can_run(turn.leads_to)
        ],
    )
    change_view(current().at(chosen))
    write_link()
    if kinds := kinds_of_layers(seen.trace):
        st.caption(phrase("layers_model_different", kinds=kinds))
    save_view(seen)
    tour.notice(seen.request)


def _facts(seen: Look, hero: Hero) -> dict[str, Any]:
    """What `explorer` takes of a run."""
    from model.analysis.stream.around_heads import (
        AroundHeads,
    )  # these import torch: pages are drawn first
    from model.code.origin import origin

    baseline, (queries, keys) = seen.baseline, seen.labels
    runs = [run for run in (seen.trace, baseline) if run is not None]
    return {
        "attention": seen.attention,
        "queries": queries,
        "keys": keys,
        "check": _check_of(seen),
        "baseline": None if baseline is None else baseline.find(seen.place),
        "claims": ()
        if seen.request.continued  # no example speaks of a text that was written on
        else claims(current(), baseline or seen.trace, seen.trace, seen.request.intervention),
        "run": seen.run,
        "device": seen.trace.device,
        "origin": origin(seen.model, seen.trace, seen.attention),
        "around": [AroundHeads(seen.model, run, run.find(seen.place)) for run in runs],
        "hero": hero,
        "certificate": picture_facts(seen.request, seen.model),
    }


def _is_cheap(seen: Look) -> bool:
    """Whether a run like this one, beside the unchanged one, is little work and few bytes. A recorded run
    leads to no other."""
    if not seen.model.runs:
        return False
    work = len(seen.trace.tokens) * seen.model.parameter_count
    return work <= AHEAD and 2 * bytes_of(seen.attention, complete=True) <= LIGHT


def _can_run(turned: Look) -> bool:
    """Whether there is room for a pass that nobody waits for."""
    try:
        return traced(turned.request) is not None
    except ValueError:
        return False


def _check_of(seen: Look) -> float | None:
    """The check of a run. None for a long one: the browser asks for it when its picture is drawn. A trace
    that is not kept until then is checked at once."""
    trace = seen.trace
    weights = sum(math.prod(one.sizes) for one in trace.attention)
    waits = weights > CHECKED_AT_ONCE and engine().can_keep(trace)
    return (
        None if waits and not trace.is_checked and not asks_for_check(seen.run) else trace.check()
    )


def _loaded(name: str) -> "Model":
    """The model, with its progress on the page while it loads."""
    if is_loaded(name):
        return loaded(name)
    place = st.empty()
    with place.container():
        bar = st.progress(0.0, text=plain(f"Loading {models[name].title}"))
        model = loaded(
            name, lambda sentence, share: bar.progress(share or 0.0, text=plain(sentence))
        )
    place.empty()
    return model


@contextmanager
def _queue_line() -> Iterator[Callable[[int], None]]:
    """What says, while a pass waits, what place it has in the queue."""
    places: list[DeltaGenerator] = []  # none where nobody waits: the page need not make room

    def say(ahead: int) -> None:
        if not places:
            places.append(st.empty())
        places[0].caption(phrase("queue_model_place", ahead=ahead))

    yield say
    for place in places:
        place.empty()


def _refuse(
    refusal: ValueError, model: "Model | None", offers: Sequence[str] = model_picker.ANY_MODELS
) -> None:
    """Says why there is nothing to show, and offers a way on. The link keeps what was asked for."""
    st.error(plain(str(refusal)))
    if model is not None:
        controls.offer_alternatives(model, offers)
    elif is_uploaded(current().model):
        open_trace_file("page")
    write_link()


def _say_unchanged(seen: Look) -> None:
    """Where the view carries an intervention, says that this page shows the unchanged model, and
    where to look."""
    intervention = current().intervention
    if not intervention.changes:
        return
    tokens = tuple(token_label(token.text) for token in seen.trace.tokens)
    words = ", ".join(part.words for part in parts(intervention, tokens))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            phrase("page_shows_unchanged", words=words),
            width="content",
        )
        with st.container(width="content"):
            page_link(HOME, "See the change →", **carried_link())
        st.button(
            "Undo the change",
            key="take-change-back",
            type="tertiary",
            on_click=set_intervention,
            args=(Intervention(),),
        )
