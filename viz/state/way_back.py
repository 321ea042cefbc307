"""The browser's Back and Forward, until the page has opened what the address says.

Streamlit marks the one request that they send. Where another request comes before its run has begun, that one
runs in its place, for the same address but without the mark: the reader would seem to come by the menu.

A link of the app is followed in the same way (viz/shell/keys/js/links.js), and says so. One that says no view
of its own carries the one that the address says. The session may know a later one, so it keeps its own.
"""

from dataclasses import replace

from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData

# Parts of an address. Its link was followed; and it carries the view of the page before.
FOLLOWED, CARRIED = "followed=1", "carried=1"
_BACK = "back"
MANY = 1_000  # sessions: the oldest have ended, or will not miss it


class WayBack:
    """Which sessions wait for an address that Back, Forward or a link asked for. many: sessions at most."""

    def __init__(self, many: int = MANY) -> None:
        # session -> what asked, and the address or its parameters as a number: no word of a visitor
        self._asked: dict[str, tuple[str, int]] = {}
        self._many = many

    def marked(self, session: str, request: RerunData) -> RerunData:
        """The request, with the mark of one for the same address that it takes the place of."""
        said = request.query_string.split("&")
        link = next((mark for mark in (CARRIED, FOLLOWED) if mark in said), None)
        request = of_a_link(request)
        address = hash((request.page_script_hash, request.page_name, request.query_string))
        if link is not None:
            self._note(session, link, hash(request.query_string))
        elif request.is_history_navigation:
            self._note(session, _BACK, address)
        elif self._asked.get(session) == (_BACK, address):
            return replace(request, is_history_navigation=True)
        return request

    def carries(self) -> bool:
        """Whether this run was asked for by a link that carries the view."""
        return self._is_asked(CARRIED)

    def follows(self) -> bool:
        """Whether this run was asked for by a link that says a view of its own."""
        return self._is_asked(FOLLOWED)

    def arrive(self) -> None:
        """The page has opened what the address says: requests that come now are ordinary ones."""
        context = get_script_run_ctx()
        if context is not None:
            self._asked.pop(context.session_id, None)

    def _is_asked(self, mark: str) -> bool:
        context = get_script_run_ctx()
        return context is not None and self._asked.get(context.session_id) == (
            mark,
            hash(context.query_string),
        )

    def _note(self, session: str, mark: str, asked: int) -> None:
        self._asked.pop(session, None)
        self._asked[session] = mark, asked
        while len(self._asked) > self._many:
            self._asked.pop(next(iter(self._asked), ""), None)


def of_a_link(request: RerunData) -> RerunData:
    """The request; where a link was followed, as an ordinary one, for the address of the link."""
    said = request.query_string.split("&")
    kept = [part for part in said if part not in (FOLLOWED, CARRIED)]
    if kept == said:
        return request
    return replace(request, query_string="&".join(kept), is_history_navigation=False)


way_back = WayBack()


def came_back() -> bool:
    """Whether this run was asked for by the browser's Back or Forward."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation
