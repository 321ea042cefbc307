"""The browser's Back and Forward, until the page has opened what the address says.

Streamlit marks the one request that they send. Where another request comes before its run has begun, that one
runs in its place, for the same address but without the mark: the reader would seem to come by the menu.

A link of the app is followed in the same way (viz/shell/keys/js/links.js), and says so.
"""

from dataclasses import replace

from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData

FOLLOWED = "followed=1"  # a part of an address: a link to it was followed
MANY = 1_000  # sessions: the oldest have ended, or will not miss it


class WayBack:
    """Which sessions wait for an address that Back or Forward asked for. many: sessions at most."""

    def __init__(self, many: int = MANY) -> None:
        self._asked: dict[
            str, int
        ] = {}  # session -> the address, as a number: no word of a visitor
        self._many = many

    def marked(self, session: str, request: RerunData) -> RerunData:
        """The request, with the mark of one for the same address that it takes the place of."""
        request = of_a_link(request)
        address = hash((request.page_script_hash, request.page_name, request.query_string))
        if request.is_history_navigation:
            self._asked[session] = address
            while len(self._asked) > self._many:
                self._asked.pop(next(iter(self._asked), ""), None)
        elif self._asked.get(session) == address:
            return replace(request, is_history_navigation=True)
        return request

    def arrive(self) -> None:
        """The page has opened what the address says: requests that come now are ordinary ones."""
        context = get_script_run_ctx()
        if context is not None:
            self._asked.pop(context.session_id, None)


def of_a_link(request: RerunData) -> RerunData:
    """The request; where a link was followed, as an ordinary one, for the address of the link."""
    said = request.query_string.split("&")
    if FOLLOWED not in said:
        return request
    query = "&".join(part for part in said if part != FOLLOWED)
    return replace(request, query_string=query, is_history_navigation=False)


way_back = WayBack()


def came_back() -> bool:
    """Whether this run was asked for by the browser's Back or Forward."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation
