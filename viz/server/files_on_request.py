"""Files that are made when somebody asks for them: one at a time, and a few for each session.

Streamlit makes as many at once as are asked for, on the threads that also read files for the server.
"""

import asyncio
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackendOperationRequest
from streamlit.proto.ForwardMsg_pb2 import BackendOperationResponse
from streamlit.runtime import app_session
from streamlit.runtime.backend_operation_handler import DeferredFileHandler

from viz.notation.words import sentences_of

say = sentences_of("server.files_on_request")

MOST = 3  # files that one session may wait for
FULL = say("files_being_made")


class MadeInTurn(DeferredFileHandler):
    """A session's files. Those of all sessions are made one after the other, as they were asked for."""

    free = asyncio.Semaphore(1)  # of all sessions

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._asked = 0

    async def handle(
        self, request: BackendOperationRequest, session_id: str
    ) -> BackendOperationResponse:
        if self._asked >= MOST:
            return BackendOperationResponse(request_id=request.request_id, error_msg=FULL)
        self._asked += 1
        try:
            async with self.free:
                return await super().handle(request, session_id)
        finally:
            self._asked -= 1


def make_files_in_turn() -> None:
    """Gives this bound to all sessions to come."""
    setattr(app_session, "DeferredFileHandler", MadeInTurn)  # noqa: B010
