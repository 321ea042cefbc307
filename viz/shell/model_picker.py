"""The model: the registered ones, those of the hub, any other id or folder; what is said of the open one; and
one that can do what it cannot.

What is not on this computer is offered with its size, downloaded in the background, and opened when
it has been loaded and checked. Until then, and where it is refused, the page stays with the model
that it had.
"""

import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import streamlit as st
from cachetools.func import ttl_cache

from model.download.entries import (
    code_named,
    fetched,
    folder_of,
    is_on_disk,
    is_unpacked,
    packed_weights,
)
from model.download.hub import Listing, UnreachableError, arrived, listed
from model.download.hub_folder import Packed
from model.download.wheel import Progress
from model.loading.registry import (
    OWN_BERT,
    RECORDED_RUN,
    Entry,
    hub_models,
    models,
    others_allowed,
    untrained,
    untrained_models,
)
from model.loading.untrained import UNTRAINED_TITLE, untrained_bytes
from model.run.tokenizers import GPT2Subset
from model.system.files import bytes_text
from model.system.settings import settings
from model.trace.uploaded import FORGOTTEN
from viz.elements.one_of import open_one
from viz.notation.markdown import plain
from viz.notation.numbers import counted
from viz.notation.words import sentences_of
from viz.shell.downloads import entry_to_fetch, fetching
from viz.shell.recorded_run import open_trace_file
from viz.state.engine import engine
from viz.state.look import is_loaded
from viz.state.session import (
    called,
    change_view,
    current,
    is_ours,
    opened_here,
    own_files,
    remember,
    switch,
)

if TYPE_CHECKING:
    from model.run.model import Model
    from viz.state.look import Look

say = sentences_of("shell.model_picker")


LOOK_SECONDS = 3  # for which a look at the disk is believed
_OF_A_LAYER = re.compile(r"\.\d+\.")


def say_untrained() -> None:
    """Where the open model has random weights, says so, and what it is."""
    entry = models.found(current().model)
    if entry is not None and entry.untrained:
        st.markdown(
            say("material_casino_open"),
            help=plain(entry.about),
        )


def say_files() -> None:
    """Where the open model's weights were unpacked from few bits, says so: of a copy of the published model,
    and of a model whose own files are quantized. Says too where it comes with code that is not run."""
    if looked_up(current().model)[1]:
        st.caption(
            say("numbers_copy_unpacked"),  # one line on a phone
            help=say("close_published_model"),
        )
    elif (found := quantized(current().model)) is not None:
        st.caption(
            say("weights_dequantized_bits", choice="few" if found.bits is None else found.bits),
            help=plain(say("model_files_hold", found=found.words)),
        )
    if files := code_files(current().model):
        st.caption(
            say("code_comes_model"),
            help=plain(say("config_names_shown", files=", ".join(files))),
        )


def say_unused(model: "Model") -> None:
    """Says which tensors of a model's files the library leaves out. Without one of a layer, what is shown is
    not the pass that the model was trained for."""
    if not model.unused:
        return
    count = counted(len(model.unused), "tensor")
    left_out = say("hugging_face_library", count=count)
    if of_layers := [name for name in model.unused if _OF_A_LAYER.search(name)]:
        st.warning(plain(say("among_layers_may", left_out=left_out, first_of_layers=of_layers[0])))
    else:
        st.caption(
            f"{left_out}.", help=plain(say("nothing_depends", unused=", ".join(model.unused)))
        )


@ttl_cache(maxsize=200, ttl=LOOK_SECONDS)
def looked_up(name: str) -> tuple[bool, bool]:
    """Whether a model is on this computer, and whether its weights were unpacked from few bits.

    To look at the disk for all models in every run of a page would take a third of the run.
    """
    entry = models.found(name)
    return (False, False) if entry is None else (is_on_disk(entry), is_unpacked(entry))


@ttl_cache(maxsize=200, ttl=LOOK_SECONDS)
def quantized(name: str) -> Packed | None:
    """How the weights of a model are quantized in its own files."""
    entry = models.found(name)
    return None if entry is None else packed_weights(entry)


@ttl_cache(maxsize=200, ttl=LOOK_SECONDS)
def code_files(name: str) -> tuple[str, ...]:
    """The files of code that a model's configs name."""
    entry = models.found(name)
    return () if entry is None else code_named(entry)


WAITED, SAID, TOLD = "picker-waited-for", "picker-said", "picker-evictions-told"
TYPED, NAMED = "picker-typed", "picker-named"
SECONDS = 0.5  # between two looks at a download
LISTED_SECONDS = 600  # for which a size told by the hub is believed


def choose_model() -> None:
    """The model of the view, and beside it the way to others."""
    st.selectbox(
        "Model",
        _at_hand(),
        format_func=model_title,
        label_visibility="collapsed",
        width=180,
        **switch("choose-model", current().model, open_model),
    )
    _tell_evictions()
    if others_allowed() or untrained() or settings().trace_files:
        _others()


def _at_hand() -> list[str]:
    """The registered models, those of the hub that are here, and what this session has dropped or opened."""
    here = filter(_is_here, hub_models) if others_allowed() else ()
    if (entry := entry_to_fetch()) is not None and _is_here(entry.name):
        here = (*here, entry.name)
    known = dict.fromkeys([*models, *here, *filter(is_loaded, own_files())])
    return [*known, *opened_here(known)]


def model_title(name: str) -> str:
    """A model's title, and whether it is still to be downloaded."""
    entry = models.found(name)
    if entry is None:
        return name
    if file := called(name):
        return f"{file} ({RECORDED_RUN.lower()})"
    return entry.title if _is_here(name) else f"{entry.title}, to be downloaded"


def _is_here(name: str) -> bool:
    return looked_up(name)[0]


def open_model(name: str) -> None:
    """A model that needs no download is opened at once; another one when it has been loaded and checked."""
    entry = models.found(name)
    if entry is None:  # what comes from a browser need not be on the list
        return
    if name in models or name in untrained() or is_loaded(name):
        open_entry(entry)
    else:
        _start(entry)


def open_entry(entry: Entry) -> None:
    """Opens a model that needs no download. The browser keeps one of the hub for the next visit."""
    change_view(replace(current(), model=entry.name))
    remember(entry)


def _others() -> None:
    state = st.session_state
    waited = state.get(WAITED)
    in_use = waited is not None or any(state.get(key) for key in (SAID, TYPED, NAMED))
    box = st.popover("Other models", key="other-models", on_change="rerun")
    if box.open or in_use:  # not made while it is closed: it is on every page
        with box:
            # The models with random weights, apart from those that have learned something.
            names = untrained()
            if names:
                open_one(
                    "Untrained: random weights",
                    names,
                    "picker-untrained",
                    placeholder=say("notes_classes_caps"),
                    named=_about_untrained,
                    take=open_model,
                )
            if others_allowed():
                _find()
            open_trace_file("picker")
            good = [entry for entry in map(models.found, _at_hand()) if entry and entry.good_for]
            lines = (f"**{entry.short_title}** is good for {entry.good_for}" for entry in good)
            st.caption("\n\n".join(lines))


def _about_untrained(name: str) -> str:
    """What an untrained model is, and its memory."""
    title = untrained_models[name].title.removeprefix(f"{UNTRAINED_TITLE}: ")
    return f"{title[0].upper()}{title[1:]}, {untrained_bytes(name) / 1e6:,.0f} MB"


def _find() -> None:
    """A model of the hub or a folder: named, offered, and followed on its way here."""
    st.selectbox(
        say("hugging_face_hub"),
        list(hub_models),
        index=None,
        format_func=model_title,
        placeholder="Choose a model",
        key=NAMED,
        on_change=_forget_said,
    )
    st.text_input(
        say("enter_any_other"),
        placeholder="organisation/name",
        key=TYPED,
        on_change=_forget_said,
    )
    waited = st.session_state.get(WAITED)
    if waited is not None:
        _under_way(waited)
        return
    if said := st.session_state.get(SAID):
        st.warning(plain(said))
    wanted = _wanted()
    if wanted is None:
        st.caption(say("any_model_hugging"))
    elif (entry := models.found(wanted)) is not None:
        _offer(entry)
    else:
        st.error(plain(say("neither_folder_server", wanted=wanted)))


def _wanted() -> str | None:
    """The id or folder that was typed, or else the model that was chosen from the list."""
    return st.session_state.get(TYPED, "").strip() or st.session_state.get(NAMED)


def _offer(entry: Entry) -> None:
    """What a model is, how large, and the button that brings it."""
    if not is_ours(entry.name):
        st.error(plain(FORGOTTEN))
        return
    if entry.about:
        st.caption(plain(entry.about))
    if is_on_disk(entry):
        folder = folder_of(entry)
        files = [folder] if folder.is_file() else filter(Path.is_file, folder.glob("*"))
        size = sum(file.stat().st_size for file in files)  # one file: a recorded run
        st.caption(f"On this computer: {bytes_text(size)}.")
        st.button("Open it", key="picker-open", type="primary", on_click=_start_wanted)
        return
    try:
        listing = _listed(entry.hub or "")
    except UnreachableError as refusal:
        if entry.wheel is None:
            st.error(plain(str(refusal)))
            return
        st.caption(say("hub_cannot_reached"))
    except ValueError as refusal:
        st.error(plain(str(refusal)))
        return
    else:
        here = arrived(listing)
        st.caption(
            say("downloaded_hub", bytes_text=bytes_text(listing.size - here))
            + (f"; {bytes_text(here)} have already arrived." if here else ".")
        )
    st.button("Download and open", key="picker-download", type="primary", on_click=_start_wanted)


@st.cache_resource(ttl=LISTED_SECONDS, max_entries=50, show_spinner="Asking the hub")
def _listed(repository: str) -> Listing:
    return listed(repository)


def _start_wanted() -> None:
    """Opens what the box holds now: a click may come before the button of the new name is drawn."""
    _start(models.found(_wanted() or ""))


def _start(entry: Entry | None) -> None:
    """Begins to fetch and load a model in the background. None: it could not be loaded here."""
    if entry is None:
        return
    _forget_said()
    if not is_ours(entry.name):  # asked here: the thread below works for one who may
        st.session_state[SAID] = FORGOTTEN
        return

    def work(progress: Progress, cancelled: threading.Event) -> object:
        if entry.folder is None:
            fetched(entry, progress, cancelled)
        return engine().model(entry.name, progress)

    fetching().fetch(entry.name, work)
    st.session_state[WAITED] = entry.name


def _forget_said() -> None:
    st.session_state.pop(SAID, None)


@st.fragment(run_every=SECONDS)
def _under_way(name: str) -> None:
    """The progress of a model that the visitor waits for, with a way to stop."""
    job = fetching().known(name)
    if job is None or job.ended.is_set():
        # Opens a model that has come, or says why it has not: the view then stays as it was.
        st.session_state.pop(WAITED, None)
        looked_up.cache_clear()
        if job is None or job.refusal is not None:
            st.session_state[SAID] = say("download_forgotten") if job is None else job.refusal
        elif (entry := models.found(name)) is not None:
            open_entry(entry)
        st.rerun()
    st.progress(job.share or 0.0, text=plain(job.sentence))
    st.button("Stop", key="picker-stop", on_click=fetching().stop, args=(name,))


def _tell_evictions() -> None:
    """Says, once to each visitor, which models were put away to make room."""
    evictions = engine().evictions
    told = st.session_state.setdefault(TOLD, len(evictions))
    for eviction in evictions[told:]:
        st.toast(
            plain(
                say(
                    "unloaded_make_room",
                    public_title=_public_title(eviction.name),
                    eviction_public_title=_public_title(eviction.newcomer),
                )
            )
        )
    st.session_state[TOLD] = len(evictions)


def _public_title(name: str) -> str:
    """A model's title. An id or a folder that another visitor has typed is not shown."""
    known = name in {*models, *hub_models, *untrained_models, current().model}
    return model_title(name) if known else "another visitor's model"


LANGUAGE_MODELS = ("house-gpt", "smollm2-135m-instruct")  # that are offered, the best first
ANY_MODELS = (*LANGUAGE_MODELS, OWN_BERT)  # the last one predicts nothing


def warn_of_new_words(model: "Model", text: str, offers: Sequence[str]) -> None:
    """Says which words are not in the model's vocabulary, and offers one of some models that has them."""
    words = model.new_words(text)
    if not words:
        return
    listed = ", ".join(f"“{word}”" for word in words[:6]) + (" and more" if len(words) > 6 else "")
    spelled = f"{'it' if len(words) == 1 else 'them'} byte by byte"
    read = spelled if isinstance(model.tokenizer, GPT2Subset) else say("token_unknown_text")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(plain(say("model_not_know_reads", listed=listed, read=read)), width="content")
        offer_knowing(text, offers, type="tertiary")


def offer_knowing(
    text: str, offers: Sequence[str], type: Literal["secondary", "tertiary"] = "secondary"
) -> None:
    """A button that opens the first of some models that knows every word of a text."""
    name = _knowing(text, offers)
    if name is not None:
        offer_model(name, type=type)


def say_encoder(seen: "Look", words: str) -> None:
    """Says what an encoder cannot do, and offers a model that predicts the next token."""
    st.info(plain(say("encoder", seen=seen.title, words=words)))
    name = language_model_for(seen.request.text)
    if name is not None:
        offer_model(name, "predicts")


def language_model_for(text: str) -> str | None:
    """A model that predicts the next token: one that knows the text's words, else one that spells them."""
    here = (name for name in LANGUAGE_MODELS if models.found(name) is not None)
    return _knowing(text, LANGUAGE_MODELS) or next(here, None)


def offer_model(
    name: str, why: str = "offer", type: Literal["secondary", "tertiary"] = "secondary"
) -> None:
    """A button that opens the same sentence in another model, on the whole page. why: part of its key."""
    if st.button(f"Read it with {plain(model_title(name))}", key=f"{why}-{name}", type=type):
        open_model(name)
        st.rerun()


def _knowing(text: str, names: Sequence[str]) -> str | None:
    """The first of some models that can be had here and has no new word in a text."""
    return next((name for name in names if _knows(name, text)), None)


def _knows(name: str, text: str) -> bool:
    entry = models.found(name)
    if entry is None or entry.reads_all:
        return entry is not None
    if name == OWN_BERT:
        from model.loading.bert import word_pieces  # torch: pages are drawn first

        pieces = word_pieces()
        return pieces is not None and not pieces.new_words(text)
    try:
        return not engine().model(name, lambda sentence, share: None).new_words(text)
    except ValueError:  # its files are damaged
        return False
