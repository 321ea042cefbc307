"""Every address that an earlier version wrote opens what it was made for."""

import asyncio

import pytest
from starlette.types import Message

from viz.server.asgi import MovedViews
from viz.state import navigation
from viz.state.moved import moved, new_address

# The pages before their views became screens, and the views of each. The first one opened by itself.
EARLIER = {
    "": (),
    "tokens": ("Tokens", "Step by step", "Two tokenizers", "As a chat", "Look-up", "Nearest tokens",
        "Windows", "Two sentences"),
    "positions": ("Word order", "The table", "How alike", "Added to the tokens",
        "Added to the scores"),
    "attention": ("Step by step", "Why this score?", "A sum of products", "What does it carry?"),
    "layer_norm": ("This norm", "Two variances", "RMS norm beside it", "Where it stands"),
    "feed_forward": ("Experts", "Neurons", "On the curve", "Contributions", "Gradient by depth",
        "Dropout"),
    "prediction": ("The next token", "Layer by layer", "Token by token", "KV cache",
        "A shorter cache", "Which tokens made it?"),
    "encoder_decoder": ("Translate", "Alignment", "The three attentions", "Your own French"),
    "model_as_code": (),
    "all_heads": ("Grid", "What stands out?", "Ranking", "From word to word",
        "Why the first token?", "What heads write", "How are they joined?",
        "What do its matrices do?", "Leave one out", "Two sentences or models", "First difference",
        "Averages and rollout"),
    "corpus": ("Heads", "A text of yours"),
    "experiments": (),
    "laboratory": ("Head by head", "Next token", "Every position", "Rows of weights", "Stream",
        "Patch", "Steer", "Padded batch"),
    "training": ("Watch it form", "Untrained beside trained", "Two runs", "Train one here",
        "Claims", "Is a GRU as good?"),
    "shapes_and_cost": ("Shapes", "Parameters", "Memory", "Operations", "Growth", "Time", "Axes"),
    "library": (),
    "examples": (),
    "worked_examples": (),
    "papers": (),
    "glossary": (),
    "for_a_class": ("Lesson", "Exercises", "Share"),
}  # fmt: skip
ADDRESSES = [(page, show) for page, views in EARLIER.items() for show in ("", *views)]


@pytest.mark.parametrize(("page", "show"), ADDRESSES)
def test_an_earlier_address_opens_a_screen_that_is_there(page: str, show: str) -> None:
    """And a view of it by its name; what else the link says stays."""
    said = {"text": "A & B", "head": "3"} | ({"show": show} if show else {})
    new = new_address(page, said)
    path, parameters = new or (page, said)
    entry = next(entry for entry in navigation.PAGES if entry.address == path)
    assert parameters.get("show", "") in ("", *entry.variants)
    assert parameters["text"] == "A & B"
    assert new_address(path, parameters) is None


def test_no_screen_is_reached_by_a_former_address_alone() -> None:
    now = {(page.address, show) for page in navigation.PAGES for show in ("", *page.variants)}
    assert not now & set(moved())


def _answer(path: str, query: str) -> tuple[int, str]:
    """What the server answers: its status, and where it leads."""
    answers: list[Message] = []

    async def app(scope: object, receive: object, send: object) -> None:
        answers.append({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Message) -> None:
        answers.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query.encode(),
        "headers": [],
    }
    asyncio.run(MovedViews(app)(scope, receive, send))
    headers = dict(answers[0]["headers"])
    return answers[0]["status"], headers.get(b"location", b"").decode()


def test_the_server_sends_the_browser_on_so_that_back_is_no_trap() -> None:
    assert _answer("/tokens", "show=Nearest+tokens&text=a+%26+b") == (
        307,
        "/vectors?text=a+%26+b&show=Nearest+tokens",
    )
    assert _answer("/tokens", "show=Tokens")[0] == 200
    assert _answer("/glossary", "term=key") == (307, "/library?term=key&show=Terms")
    assert _answer("/attention", "")[0] == 307
