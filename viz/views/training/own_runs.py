"""Records of visitors' own trainings: the box to drop one into, and those that this session may look at."""

import threading
from functools import cache
from io import BytesIO

import streamlit as st

from model.system.fair_cache import FairCache
from model.system.memory import enough_memory
from model.system.settings import settings
from model.trace.uploaded import ENDING, uploaded_name
from model.training.training_file import RecordedTraining, read_training
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.notation.words import sentences_of
from viz.state.engine import engine, visitor
from viz.state.session import free_upload

say = sentences_of("training.own_runs")

_OWN = "training-files"  # session state: a record's name by content -> its name where it came from
_TURN, _REFUSED = "training-file-turn", "training-file-refused"  # session state
_READ = "training-file-read"  # session state: the name of a record to be chosen
_UPLOAD = "server.maxUploadSize"  # megabytes
LONGEST_NAME = 24  # characters of a file's name beside those of the shipped trainings
HOW = say("python_model_training")


class KeptRecords:
    """Records by the hash of their file, bounded in bytes."""

    def __init__(self, most_bytes: int) -> None:
        self._records: FairCache[str, RecordedTraining] = FairCache(
            most_bytes, lambda record: record.nbytes, visitor=visitor
        )
        self._guard = threading.Lock()

    def keep(self, file: BytesIO, size: int) -> str:
        """The name of a file's record, which is read now, in a turn of the queue. Raises ValueError as
        `load_training` and `Engine.turn`."""
        name = uploaded_name(file)
        with engine().turn(), enough_memory("this record"):
            record = read_training(file, size)
        with self._guard:
            self._records[name] = record
        return name

    def get(self, name: str) -> RecordedTraining | None:
        """None where it was let go to make room for others."""
        with self._guard:
            return self._records.get(name)


@cache
def kept_records() -> KeptRecords:
    """Those of this process."""
    return KeptRecords(settings().trace_bytes)


def own_runs() -> dict[str, RecordedTraining]:
    """The records of this session that are kept, by name."""
    records = {name: kept_records().get(name) for name in _own()}
    return {name: record for name, record in records.items() if record is not None}


def called(name: str) -> str:
    """What a record of this session is called on the page; no two are called the same."""
    names = {other: token_label(file, LONGEST_NAME) for other, file in _own().items()}
    alike = [other for other in names if names[other] == names[name]]
    place = alike.index(name)
    return names[name] if not place else f"{names[name]} ({place + 1})"


def choose_uploaded(chosen: str) -> None:
    """Chooses the record that has just been read, before its widget is drawn."""
    if name := st.session_state.pop(_READ, None):
        st.session_state[chosen] = name


def open_record(place: str) -> None:
    """The box to drop a record into, where the server's owner allows it. place: where on the page it
    stands."""
    if not settings().trace_files:
        return
    with st.popover("Yours", key=f"{place}-own"):
        st.markdown(say("record_training_own"))
        st.markdown(HOW)
        turn = st.session_state.get(_TURN, 0)
        file = st.file_uploader(
            say("open_record_training"),
            ENDING,
            key=f"{place}-file-{turn}",
            max_upload_size=min(st.get_option(_UPLOAD), settings().trace_megabytes),
        )
        if refused := st.session_state.pop(_REFUSED, None):
            st.error(plain(refused))
    if file is None:
        return
    try:  # a run that ends while it waits for its turn leaves the file to the next one
        name = kept_records().keep(file, file.size)
    except ValueError as refusal:
        st.session_state[_REFUSED] = str(refusal)
    else:
        st.session_state[_OWN] = {**_own(), name: file.name}
        st.session_state[_READ] = name
    st.session_state[_TURN] = turn + 1  # the box is made anew, so that it does not keep the file
    free_upload(file)
    st.rerun()


def _own() -> dict[str, str]:
    own: dict[str, str] = st.session_state.get(_OWN, {})
    return own
