"""What is mended in Streamlit, each held against Streamlit's own classes."""

import asyncio
from collections.abc import Iterator
from unittest import mock

import pytest
from streamlit.runtime import app_session, memory_media_file_storage
from streamlit.runtime.media_file_storage import MediaFileKind
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.scriptrunner import script_runner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.runtime.state import SessionState

from model import Intervention, load_model
from model.trace.trace import Trace
from viz.saving.offline_page import head_picture, picture_figures, standalone
from viz.shell.streamlit_patches import mend_streamlit

WORDS = (
    "the cat saw the dog and the cat ran to the river and the dog sat on the mat with a red ball "
)
EDGES = [(149, key) for key in range(3, 43)]


@pytest.fixture(scope="module", autouse=True)
def mended() -> Iterator[None]:
    before = memory_media_file_storage._calculate_file_id
    mend_streamlit()
    yield
    app_session.ScriptRunner = script_runner.ScriptRunner
    memory_media_file_storage._calculate_file_id = before


@pytest.fixture(scope="module")
def cut() -> list[Trace]:
    """Forty runs of one long sentence; in each another edge of the last token is cut."""
    model = load_model("house-gpt", device="cpu")
    text = model.tokenizer.decode(model.tokenizer.encode(WORDS * 12)[:150])
    place = frozenset({"decoder.0.self"})
    return [
        model.trace(text, intervention=Intervention(blocked=frozenset({edge}), only=place))
        for edge in EDGES
    ]


def page(trace: Trace) -> bytes:
    """What “Picture as a page” makes."""
    tokens = [token.text for token in trace.tokens]
    attention = trace.find("decoder.0.self")
    picture = head_picture(attention, None, head=0, stage="weights", queries=tokens, keys=tokens)
    return standalone(picture.title, "", picture_figures(picture))


def test_forty_visitors_get_forty_files(cut: list[Trace]) -> None:
    storage = MemoryMediaFileStorage("/media")
    files = [page(trace) for trace in cut]
    names = [
        storage.load_and_get_id(file, "text/html", MediaFileKind.DOWNLOADABLE, "picture")
        for file in files
    ]
    assert len(set(files)) == len(set(names)) == len(EDGES)
    assert [storage.get_file(name).content for name in names] == files


def test_a_byte_anywhere_in_a_large_file_gives_it_another_name() -> None:
    storage = MemoryMediaFileStorage("/media")
    plain = bytearray(3_000_000)
    names = set()
    for place in range(0, len(plain), 100_000):
        plain[place] ^= 1
        names.add(storage.load_and_get_id(bytes(plain), "a/b", MediaFileKind.DOWNLOADABLE, "c"))
        plain[place] ^= 1
    assert len(names) == 30


def waits(session: str, request: RerunData) -> bool:
    """Whether the run that waits in a new runner of a session is one of Back or Forward."""
    loop = asyncio.new_event_loop()
    runner = app_session.ScriptRunner(
        session_id=session,
        main_script_path="app.py",
        session_state=SessionState(),
        uploaded_file_mgr=mock.Mock(),
        script_cache=ScriptCache(),
        initial_rerun_data=request,
        user_info={},
        fragment_storage=mock.Mock(),
        pages_manager=mock.Mock(),
        event_loop=loop,
    )
    loop.close()
    return runner._requests.on_scriptrunner_ready().rerun_data.is_history_navigation


def test_a_runner_that_takes_the_place_of_backs_own_knows_that_it_came_back() -> None:
    assert not waits("mine", RerunData(query_string="head=2"))
    assert waits("mine", RerunData(query_string="head=2", is_history_navigation=True))
    assert waits("mine", RerunData(query_string="head=2"))
