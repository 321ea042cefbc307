"""Which profiles there are for this visitor, which are shown, and how one of the visitor's own text is
made."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from model.loading.registry import may_be_linked, models
from model.profile.corpus import cut
from model.profile.corpus_profile import Profile, open_profile
from model.profile.run import WINDOW
from model.profile.shipped import made, model_and_step, profile_of, shipped_profiles
from model.profile.slices import window_by_window
from model.profile.sums import Sums
from model.profile.tables import ProfileScope
from model.profile.window import heads_of_model
from model.run.weights_hash import weights_hash
from model.system.fair_queue import FairQueue, QueueFullError
from model.system.jobs import Jobs
from model.system.settings import settings
from viz.notation.markdown import plain
from viz.notation.numbers import counted
from viz.notation.words import sentences_of
from viz.shell.background import Passes
from viz.state.engine import engine, visitor
from viz.state.look import Look, loaded
from viz.state.session import change_view, current

if TYPE_CHECKING:
    from model.run.model import Model

say = sentences_of("corpus.choice")


MOST = 200_000  # bytes of a text
KEPT = 8  # profiles, of all visitors together; one of 270 heads takes 14 MB
QUEUE_AT_MOST = 30
MEASURED = 3  # windows whose time the estimate is made from
_OWN = "corpus-own-runs"  # session state: titles -> keys of the visitor's own runs

ProfileKey = tuple[str | None, str]  # the session, and the plan's digest


@dataclass(frozen=True)
class Plan:
    """What a profile of a text will take: measured on its first windows."""

    model: str
    windows: tuple[str, ...]
    by_line: bool
    name: str
    tokens: int
    seconds: float  # of all windows, as long as nobody else uses this computer

    @property
    def key(self) -> ProfileKey:
        content = repr((self.model, self.windows, self.by_line))
        return visitor(), hashlib.sha256(content.encode(errors="surrogatepass")).hexdigest()


@dataclass(frozen=True, eq=False)
class SoFar:
    """A profile that grows."""

    done: int  # windows
    total: int
    seconds: float  # of computing, without the waits for a turn
    profile: Profile


class ProfileRun(Passes[SoFar]):
    """A profile under way or ended."""

    @property
    def seconds_left(self) -> float | None:
        """At the pace so far; None before the first window is done."""
        if self.found is None:
            return None
        return self.found.seconds / self.found.done * (self.found.total - self.found.done)


@st.cache_resource
def runs() -> Jobs[ProfileKey, ProfileRun]:
    """The runs of this process. A key begins with its session, so nobody else finds a run."""
    return Jobs(KEPT, FairQueue(1, QUEUE_AT_MOST))


def window_of(model: "Model") -> int:
    """The most tokens of a window."""
    return min(WINDOW, model.config.n_ctx)


def plan_of(model: "Model", text: str, *, by_line: bool, name: str) -> Plan:
    """Cuts a text into windows and runs the first ones. Raises ValueError for what cannot be profiled."""
    if len(text.encode(errors="replace")) > MOST:
        raise ValueError(f"The text has more than {MOST:,} bytes. A longer one is for the command.")
    if not model.runs:
        raise ValueError("A recorded run cannot read another text. Choose a model.")
    most = window_of(model)
    pieces = text.splitlines() if by_line else [text]
    windows = tuple(window for piece in pieces for window in cut(model, piece, most))
    if not windows:
        raise ValueError("There is no text yet.")
    lengths = [len(model.tokens(window)) for window in windows]
    plan = Plan(model.address, windows, by_line, name, sum(lengths), 0.0)
    first = [*islice(_grown(plan, lambda: engine().turn()), MEASURED)][-1]
    pace = first.seconds / sum(lengths[: first.done])
    return replace(plan, seconds=pace * plan.tokens)


def _grown(plan: Plan, turn: Callable[[], AbstractContextManager[None]]) -> Iterator[SoFar]:
    """The profile after each window. Each window takes a turn of its own, so that others come in between."""
    model = loaded(plan.model)
    window = window_of(model)
    content = "\n".join(plan.windows).encode(errors="surrogatepass")
    corpus = hashlib.sha256(content).hexdigest()
    about = ProfileScope(plan.model, weights_hash(model), corpus, plan.name, plan.by_line, window)
    grown, seconds = Profile(about, Sums.none(heads_of_model(model), window), {}), 0.0
    if shipped := profile_of(model):
        grown = replace(grown, asked=shipped.asked)  # labels are the model's, whatever the corpus
    made = window_by_window(model, plan.windows, about, turn=turn)
    for number, (of_window, sums, texts, took) in enumerate(made, 1):
        grown, seconds = grown + Profile(of_window, sums, texts), seconds + took
        yield SoFar(number, len(plan.windows), seconds, grown)


def _own_runs() -> dict[str, ProfileKey]:
    """The keys of this session's runs by their titles."""
    keys: dict[str, ProfileKey] = st.session_state.get(_OWN, {})
    return keys


PROFILE = "profile"  # key of a widget, and the link's parameter
OVER, OWN = "Over a corpus", "Your corpus"  # the names that links say
_FOLDERS, _TYPED = "corpus-folders", "corpus-folder"  # session state: opened ones; what is typed
_REFUSED = "corpus-folder-refused"
FOLDERS_KEPT = 8
COMMAND = Profile.__module__.rpartition(".")[0]  # as this package is called here


@dataclass(frozen=True)
class Source:
    """A profile that this visitor may see. model: that it is of."""

    title: str
    model: str
    folder: Path | None = None
    own: Profile | None = None

    @property
    def text(self) -> str:
        """What it was made over, in words where that is known."""
        with suppress(OSError, ValueError):
            if self.folder is not None:
                return made(self.folder).text
        return self.profile.about.corpus_name

    @property
    def profile(self) -> Profile:
        """Raises ValueError for a folder that cannot be read any more."""
        return self.own or _open(self.folder or Path())


def sources(name: str) -> Mapping[str, Source]:
    """Those of a model by their titles: they ship, are the visitor's own, or lie in an opened folder."""
    found = []
    for file, folder in shipped_profiles().items():
        model, step = model_and_step(file)
        title = models.short_title(model) + ("" if step is None else f" after {step} steps")
        found.append(Source(title, model, folder))
    for title, key in _own_runs().items():  # those that are still kept and have a window at least
        run = runs().known(key)
        if run is not None and run.found is not None and run.ended.is_set():
            profile = run.found.profile
            found.append(Source(title, profile.about.model, own=profile))
    if settings().folders:  # for somebody at this computer
        for folder in map(Path, st.session_state.get(_FOLDERS, ())):
            found.append(Source(f"folder {folder.name}", _open(folder).about.model, folder))
    return {one.title: one for one in found if one.model == name}


def choose(known: Mapping[str, Source]) -> Source:
    """The profile that is shown; a choice only where there are several."""
    titles, state = list(known), st.session_state
    chosen = state.get(PROFILE, titles[0])
    # Set each time: a link within the app has no profile, which Streamlit reads as the first one.
    state[PROFILE] = chosen if chosen in known else titles[0]
    if len(titles) == 1:
        return known[titles[0]]
    return known[st.selectbox("Profile", titles, key=PROFILE, bind="query-params")]


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
    model = _open(Path(folder)).about.model
    view = replace(current(), show=OVER)
    change_view(replace(view, model=model) if may_be_linked(model) else view)


def _open(folder: Path) -> Profile:
    try:
        changed = folder.stat().st_mtime_ns  # each file of a profile is exchanged as a whole
    except (OSError, ValueError):
        raise ValueError(f"There is no folder {folder.name} here.") from None
    return _opened(folder, changed)


@lru_cache(maxsize=8)
def _opened(folder: Path, changed: int) -> Profile:
    return open_profile(folder)


PLAN, REFUSAL = "corpus-plan", "corpus-refusal"  # session state
_SHOWS, _LOOKS = "corpus-shows", "corpus-looks"  # whether the profile is to be shown; is looked at
TEXT, FILE, LINES = "corpus-text", "corpus-file", "corpus-lines"  # keys of widgets
EVERY = 0.5  # seconds between two looks at a run
MINUTE = 60.0


def own_text(look: Look) -> None:
    """A text of the visitor's, of which a profile is made: how long that takes, and the run; and the box for
    a folder on this computer, where its owner sits before it."""
    dropped = say("drop_small_file") if settings().trace_files else ""
    st.markdown(
        say(
            "type_paste_text",
            dropped=dropped,
            most=MOST // 1000,
            look=look.title,
            window_of=window_of(look.model),
        )
    )
    st.text_area("Your text", key=TEXT, height=140, max_chars=MOST, persist_state="session")
    if settings().trace_files:
        st.file_uploader(say("file_text_utf_8"), ["txt", "md"], key=FILE, max_upload_size=1)
    st.toggle(say("line_text_own"), key=LINES)
    st.button(say("long_take"), key="corpus-measure", on_click=_measure, args=(look,))
    if refusal := st.session_state.pop(REFUSAL, None):
        st.markdown(plain(refusal))
    plan: Plan | None = st.session_state.get(PLAN)
    if plan is not None:
        st.fragment(_run, run_every=EVERY if _is_under_way(plan) else None)(plan)
    if not settings().folders:  # somebody at this computer has them
        return
    st.markdown(say("longer_text_command", command=COMMAND))
    st.text_input(say("open_folder_command"), key=_TYPED, on_change=_take_folder)
    if refused := st.session_state.pop(_REFUSED, None):
        st.markdown(plain(refused))


def _measure(look: Look) -> None:
    """Makes the plan, with the first windows' times."""
    st.session_state.pop(PLAN, None)
    file = st.session_state.get(FILE)
    try:
        text, name = st.session_state.get(TEXT, ""), "your text"
        if file is not None:
            if file.size > MOST:
                raise ValueError(f"The file has more than {MOST:,} bytes.")
            try:
                text, name = file.getvalue().decode("utf-8-sig"), file.name
            except UnicodeDecodeError as error:
                raise ValueError(f"The file is not text in UTF-8: {error.reason}.") from None
        st.session_state[PLAN] = plan_of(
            look.model, text, by_line=bool(st.session_state.get(LINES)), name=name
        )
    except ValueError as refusal:
        st.session_state[REFUSAL] = str(refusal)


def _is_under_way(plan: Plan) -> bool:
    run = runs().known(plan.key)
    return run is not None and not run.ended.is_set()


def _run(plan: Plan) -> None:
    """The estimate before the run, its progress while it goes on, and what it led to."""
    if st.session_state.pop(_SHOWS, False):
        st.rerun()  # the whole page: its other view
    run = runs().known(plan.key)
    with st.container():
        if run is None or (run.ended.is_set() and run.found is None):
            _offer(plan, run)
        elif run.ended.is_set():
            _ended(plan, run)
        else:
            _progress(plan, run)
    if st.session_state.get(_LOOKS, False) != (looks := _is_under_way(plan)):
        st.session_state[_LOOKS] = looks
        st.rerun()


def _offer(plan: Plan, run: ProfileRun | None) -> None:
    if run is not None and run.refusal:
        st.markdown(plain(run.refusal))
    windows, tokens = counted(len(plan.windows), "window"), counted(plan.tokens, "token")
    st.markdown(
        say("about_measured_first", windows=windows, tokens=tokens, time=_time(plan.seconds))
    )
    st.button("Make the profile", type="primary", key="corpus-start", on_click=_start, args=(plan,))


def _progress(plan: Plan, run: ProfileRun) -> None:
    run.look()
    bar, stop = st.columns([6, 1], vertical_alignment="center")
    done, left = 0 if run.found is None else run.found.done, run.seconds_left
    said = f"{done} of {counted(len(plan.windows), 'window')}."
    if place := runs().place(run) or run.ahead:
        said += say("queue_place", place=place)
    elif left is not None:
        said += f" About {_time(left)} left."
    bar.progress(done / len(plan.windows), text=said)
    stop.button("Stop", key="corpus-stop", on_click=runs().stop, args=(plan.key,))


def _ended(plan: Plan, run: ProfileRun) -> None:
    found = run.found
    title = next((title for title, key in _own_runs().items() if key == plan.key), None)
    if found is None or title is None:
        return
    skipped = len(found.profile.about.skipped)
    left_out = say("could_not_read", skipped=skipped) if skipped else ""
    if run.state == "done":
        st.markdown(f"Done: {counted(found.done, 'window')}.{left_out}")
    else:
        st.markdown(
            say("stopped_profile_windows", done=found.done, total=found.total, left_out=left_out)
        )
    if run.refusal:
        st.markdown(plain(run.refusal))
    with st.container(horizontal=True):
        st.button(
            "Show its heads", type="primary", key="corpus-show", on_click=_show, args=(title,)
        )
        if run.state != "done":
            st.button("Start over", key="corpus-again", on_click=_start, args=(plan,))


def _start(plan: Plan) -> None:
    """Begins the visitor's run, or puts it in the queue; the session notes it by its title."""

    def work(run: ProfileRun) -> None:
        for grown in _grown(plan, run.turn):
            run.found = grown
            run.still_wanted()

    try:
        runs().start(plan.key, ProfileRun(visitor()), work)
    except QueueFullError as error:
        many = "of your profiles" if error.own else "visitors"
        st.session_state[REFUSAL] = say("too_many_waiting", many=many)
        return
    title = f"{plan.name} ({models.short_title(plan.model)})"
    others = {name: key for name, key in _own_runs().items() if name != title}
    st.session_state[_OWN] = others | {title: plan.key}


def _show(title: str) -> None:
    st.session_state.update({PROFILE: title, _SHOWS: True})
    change_view(replace(current(), show=OVER))


def _time(seconds: float) -> str:
    if seconds < 1:
        return "a second"
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} seconds"
    return f"{seconds / MINUTE:.0f} minutes"
