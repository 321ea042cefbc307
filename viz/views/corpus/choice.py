"""Which profiles there are for this visitor, and which one or two are shown."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import streamlit as st

from model.loading.registry import may_be_linked, models
from model.profile.profile import Profile, open_profile
from model.profile.shipped import model_and_step, shipped_profiles
from model.system.settings import settings
from viz.notation.markdown import plain
from viz.state.held import loaded
from viz.state.session import change_view, current
from viz.views.corpus.runs import own_profiles

PROFILE, BESIDE = "profile", "beside"  # keys of widgets, and the link's parameters
ALONE = "nothing beside it"
_FOLDERS, _TYPED = "corpus-folders", "corpus-folder"  # session state: opened ones; what is typed
_REFUSED = "corpus-folder-refused"
_FOLLOWED = "corpus-followed-model"  # session state: the model that the choice was last brought to
FOLDERS_KEPT = 8
COMMAND = Profile.__module__.rpartition(".")[0]  # as this package is called here
WIDTH = 260  # pixels of a list of profiles


@dataclass(frozen=True)
class Source:
    """A profile that this visitor may see. model: that it is of."""

    title: str
    model: str
    folder: Path | None = None
    own: Profile | None = None

    @property
    def profile(self) -> Profile:
        """Raises ValueError for a folder that cannot be read any more."""
        return self.own or _open(self.folder or Path())


def sources() -> Mapping[str, Source]:
    """All by their titles: those that ship, the visitor's own, and folders that were opened here."""
    shipped = {}
    for name, folder in shipped_profiles().items():
        model, step = model_and_step(name)
        title = models.short_title(model) + ("" if step is None else f" after {step} steps")
        shipped[title] = Source(title, model, folder)
    own = {
        title: Source(title, profile.about.model, own=profile)
        for title, profile in own_profiles().items()
    }
    opened = {}
    if settings().folders:  # for somebody at this computer
        for folder in st.session_state.get(_FOLDERS, ()):
            title = f"folder {Path(folder).name}"
            opened[title] = Source(title, _open(Path(folder)).about.model, Path(folder))
    return {**shipped, **own, **opened}


def choose(known: Mapping[str, Source]) -> list[Source]:
    """The profile that is shown and the one beside it, if any."""
    titles = list(known)
    _follow_model(known)
    first = st.selectbox(
        "Profile",
        titles,
        key=PROFILE,
        bind="query-params",
        label_visibility="collapsed",
        on_change=_open_model,
        args=(known,),
        width=WIDTH,
    )
    others = [ALONE, *(title for title in titles if title != first)]
    if st.session_state.get(BESIDE, ALONE) not in others:
        st.session_state[BESIDE] = ALONE
    second = st.selectbox(
        "Beside it",
        others,
        key=BESIDE,
        bind="query-params",
        label_visibility="collapsed",
        width=WIDTH,
    )
    return [known[title] for title in (first, second) if title in known]


def _follow_model(known: Mapping[str, Source]) -> None:
    """Where another model was opened, its profile is shown, if there is one."""
    model = current().model
    arrives = PROFILE not in st.session_state and st.query_params.get(PROFILE) not in known
    moved = st.session_state.get(_FOLLOWED, model) != model
    st.session_state[_FOLLOWED] = model
    shown = known.get(st.session_state.get(PROFILE, ""))
    if (arrives or moved) and (shown is None or shown.model != model):
        fitting = [title for title, source in known.items() if source.model == model]
        st.session_state[PROFILE] = fitting[0] if fitting else next(iter(known))
    elif st.session_state.get(PROFILE, next(iter(known))) not in known:
        st.session_state[PROFILE] = next(iter(known))


def _open_model(known: Mapping[str, Source]) -> None:
    """The sentence is read by the model that the profile is of, if that can read it."""
    chosen = known.get(st.session_state[PROFILE])
    if chosen is not None and may_be_linked(chosen.model) and _reads(chosen.model, current().text):
        st.session_state[_FOLLOWED] = chosen.model
        change_view(replace(current(), model=chosen.model))


def _reads(model: str, text: str) -> bool:
    try:
        loaded(model).tokens(text)
    except ValueError:
        return False
    return True


def offer_folder() -> None:
    """The box for a folder on this computer, where its owner sits before it."""
    if not settings().folders:
        return
    st.divider()
    st.markdown(
        "A longer text is for the command, which can share the work among processes or machines: "
        f"`python -m {COMMAND} MODEL TEXT.txt -o FOLDER`"
    )
    st.text_input("Open a folder that the command has written", key=_TYPED, on_change=_take_folder)
    if refused := st.session_state.pop(_REFUSED, None):
        st.error(plain(refused))


def _take_folder() -> None:
    folder = st.session_state[_TYPED].strip()
    if not folder or not settings().folders:
        return
    try:
        _open(Path(folder))
    except ValueError as refusal:
        st.session_state[_REFUSED] = str(refusal)
        return
    opened = [one for one in st.session_state.get(_FOLDERS, ()) if one != folder]
    st.session_state[_FOLDERS] = [*opened, folder][-FOLDERS_KEPT:]
    st.session_state[_TYPED] = ""
    st.session_state[PROFILE] = f"folder {Path(folder).name}"
    change_view(replace(current(), show=""))  # the heads


def _open(folder: Path) -> Profile:
    try:
        changed = folder.stat().st_mtime_ns  # each file of a profile is exchanged as a whole
    except (OSError, ValueError):
        raise ValueError(f"There is no folder {folder.name} here.") from None
    return _opened(folder, changed)


@lru_cache(maxsize=8)
def _opened(folder: Path, changed: int) -> Profile:
    return open_profile(folder)
