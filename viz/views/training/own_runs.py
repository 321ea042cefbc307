"""Records of visitors' own trainings: the box to drop one into, and those that this session may look at."""

import threading
from functools import cache
from io import BytesIO

import streamlit as st

from model.system.fair_cache import FairCache
from model.system.memory import enough_memory
from model.system.settings import MEGABYTE, settings
from model.trace.dropped import ENDING, dropped_name
from model.training.training_file import RecordedTraining, read_training
from viz.notation.labels import token_label
from viz.notation.markdown import plain
from viz.state.engine import visitor
from viz.state.session import let_go

_OWN = "training-files"  # session state: a record's name by content -> its name where it came from
_TURN, _REFUSED = "training-file-turn", "training-file-refused"  # session state
_UPLOAD = "server.maxUploadSize"  # megabytes
LONGEST_NAME = 24  # characters of a file's name beside those of the shipped trainings
HOW = """
```python
from model.training.training_record import TrainingRecord

record = TrainingRecord(
    "run.safetensors", tokenizer=tokenizer,
    probes=["a b c a b c"],
)
for step, batch in enumerate(batches):
    ...
    record.step(model, step, loss=loss)
```
"""


class KeptRecords:
    """Records by the hash of their file, bounded in bytes."""

    def __init__(self, most_bytes: int) -> None:
        self._records: FairCache[str, RecordedTraining] = FairCache(
            most_bytes, lambda record: record.nbytes, visitor=visitor
        )
        self._guard = threading.Lock()

    def keep(self, file: BytesIO, size: int) -> str:
        """The name of a file's record, which is read now. Raises ValueError as `load_training`."""
        name = dropped_name(file)
        with enough_memory("this record"):
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
    return KeptRecords(settings().trace_megabytes * MEGABYTE)


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


def open_record(chosen: str) -> None:
    """The box to drop a record into, where the server's owner allows it. chosen: the widget in which the
    record is chosen, once it is read."""
    if not settings().trace_files:
        return
    with st.popover("Yours", key=f"{chosen}-own"):
        st.markdown(
            "Record a training of your own, in any loop, in Hugging Face's `Trainer` or in Lightning, and "
            "drop the file here, also while it is still training:"
        )
        st.markdown(HOW)
        key = f"{chosen}-file-{st.session_state.get(_TURN, 0)}"
        st.file_uploader(
            "Open the record of a training",
            ENDING,
            key=key,
            max_upload_size=min(st.get_option(_UPLOAD), settings().trace_megabytes),
            on_change=_take,
            args=(key, chosen),
        )
        if refused := st.session_state.pop(_REFUSED, None):
            st.error(plain(refused))


def _take(key: str, chosen: str) -> None:
    """Reads the file that was dropped and chooses it. The box is made anew, so that it does not keep it."""
    file = st.session_state.get(key)
    if file is None:
        return
    st.session_state[_TURN] = st.session_state.get(_TURN, 0) + 1
    try:
        name = kept_records().keep(file, file.size)
    except ValueError as refusal:
        st.session_state[_REFUSED] = str(refusal)
    else:
        st.session_state[_OWN] = {**_own(), name: file.name}
        st.session_state[chosen] = name
    finally:
        let_go(file)


def _own() -> dict[str, str]:
    own: dict[str, str] = st.session_state.get(_OWN, {})
    return own
