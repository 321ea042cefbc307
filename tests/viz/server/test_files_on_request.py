"""Files that are asked for are made one at a time, and nobody has many made at once."""

import asyncio
import threading
from types import SimpleNamespace

import pytest
from streamlit.proto.BackMsg_pb2 import BackendOperationRequest
from streamlit.runtime import app_session

from viz.server.files_on_request import FULL, MOST, MadeInTurn, make_files_in_turn


class Making:
    """Makes files when it is told to, and notes how many it made at once."""

    def __init__(self) -> None:
        self.under_way, self.most, self.go_on = 0, 0, threading.Event()

    def execute_deferred(self, name: str) -> str:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self.go_on.wait()
        self.under_way -= 1
        return f"/media/{name}"


def asked(number: int) -> BackendOperationRequest:
    request = BackendOperationRequest(request_id=str(number))
    request.deferred_file.file_id = f"file {number}"
    return request


def answers(making: Making, sessions: int, each: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The address of each file, or why there is none, when all sessions ask at once."""

    async def ask() -> list[str]:
        monkeypatch.setattr(MadeInTurn, "free", asyncio.Semaphore(1))
        handlers = [MadeInTurn(lambda: making) for _ in range(sessions)]
        asking = [
            asyncio.create_task(handler.handle(asked(number), "session"))
            for handler in handlers
            for number in range(each)
        ]
        while making.under_way == 0:
            await asyncio.sleep(0.001)
        making.go_on.set()
        found = await asyncio.gather(*asking)
        return [one.error_msg or one.deferred_file.url for one in found]

    return asyncio.run(ask())


def test_files_of_all_sessions_are_made_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    making = Making()
    assert answers(making, 4, 1, monkeypatch) == ["/media/file 0"] * 4
    assert making.most == 1


def test_a_session_that_asks_for_many_is_refused_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    made = answers(Making(), 1, MOST + 2, monkeypatch)
    assert made == [f"/media/file {number}" for number in range(MOST)] + [FULL] * 2


def test_streamlit_gives_the_bound_to_its_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_session, "DeferredFileHandler", SimpleNamespace)
    make_files_in_turn()
    assert app_session.DeferredFileHandler is MadeInTurn
