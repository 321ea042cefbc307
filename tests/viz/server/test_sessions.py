"""One server, many visitors: nobody gets what is another's, nobody waits for one who has left, and the
log holds no word of anybody. The visitors speak the browser's protocol."""

import asyncio
import contextlib
import json
import random
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.PageConfig_pb2 import PageConfig

from bench import classroom
from bench.pupil_answers import expected_answers
from tests.server import Server, numbers, serving
from tests.visitor import PATIENCE, Visitor
from viz.state.link import View

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("sessions")]  # one worker, one server
# The second pass of a hostile text: markup, an address, a format, a line break, controls.
SECRETS = (
    "xyzzy <script>alert('plugh')</script> & *bold* $x^2$",
    "xyzzy https://plugh.example/?a=%00 {0} %s {name}",
    "xyzzy\nplugh\x00\x1b[31m \u202e 🦊 " + "plugh " * 50,
)
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "ATTENTION_LINE": "5",
    "ATTENTION_PASS_SECONDS": "3600",
}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server") / "log"


@pytest.fixture(scope="module")
def begun(log: Path) -> Path:
    """A file with a line for each pass that has begun and does not end."""
    file = log.with_name("begun")
    file.touch()
    return file


@pytest.fixture(scope="module")
def server(log: Path, begun: Path) -> Iterator[Server]:
    more = SETTINGS | {"LINGERING": str(begun)}
    with serving(log, more=more, program=("tests.planted_server",)) as started:
        yield started


def visitor(server: Server, text: str, page: str = "", **more: str) -> Visitor:
    return Visitor(server.port, page, urlencode({"text": text, **more}))


def test_every_answer_is_ones_own(server: Server) -> None:
    """Six pupils at once, with other sentences, heads, layers, masks and pages, without a pause."""
    texts = [classroom.own_sentences(number)[:2] for number in range(6)]
    expected = expected_answers([text for own in texts for text in own])
    pupils = [
        classroom.Pupil(
            server.port, "", urlencode({"text": own[0]}),
            number=number, texts=own, expected=expected, text=own[0],
        )
        for number, own in enumerate(texts)
    ]  # fmt: skip

    async def learn(pupil: classroom.Pupil) -> None:
        chance = random.Random(pupil.number)
        for kind in chance.sample([*classroom.ACTS], len(classroom.ACTS)):
            await pupil.act(kind, chance)

    async def lesson() -> None:
        async with contextlib.AsyncExitStack() as room:
            for pupil in pupils:
                await room.enter_async_context(pupil)
            await asyncio.gather(*map(learn, pupils))

    asyncio.run(lesson())
    assert [line for pupil in pupils for line in pupil.mixed_up + pupil.troubles] == []
    one, other = pupils[0], pupils[1]
    one.answer = other.answer  # the comparison sees an answer of another
    asyncio.run(one.compare())
    one._read(ForwardMsg(page_config_changed=PageConfig(title="Room 1: Anna")).SerializeToString())
    assert any("tokens" in line for line in one.mixed_up)
    assert any(line.endswith("[1]") for line in one.mixed_up)


def test_an_error_is_seen_by_its_own_visitor_alone(server: Server) -> None:
    async def class_() -> tuple[list[str], list[str], list[str]]:
        async with (
            visitor(server, "The cat sat") as calm,
            visitor(server, " ") as blank,
            visitor(server, "xyzzy breaks") as broken,
        ):
            for text in SECRETS:
                await broken.choose("choose-text", f"{text} breaks")
                await calm.choose("hero-mask", classroom.MASKS[0])
                await calm.choose("hero-mask", classroom.MASKS[1])
            await calm.choose("other-models", True)
            await calm.choose("picker-typed", "no/such-model-plugh")
            return calm.troubles, blank.troubles, broken.troubles

    calm, blank, broken = asyncio.run(class_())
    assert len(broken) == 1 + len(SECRETS)
    assert not any("xyzzy" in line or "plugh" in line for line in broken)  # not even to oneself
    assert len(blank) == 1
    assert "no text yet" in blank[0]
    assert all("such-model" in line or "hub" in line for line in calm)
    assert len(calm) == 1


def test_a_pass_ends_when_its_visitor_leaves_or_asks_for_something_else(
    server: Server, begun: Path
) -> None:
    async def queue() -> list[str]:
        async with visitor(server, "The dog sat") as patient:
            gone = await lingering(server, begun)
            waiting = asyncio.create_task(patient.choose("choose-text", "The fox sat"))
            await until(server, "attention_line_length", 1)
            await leave(gone)
            await waiting  # for ever, if that pass goes on
            stuck = asyncio.create_task(patient.choose("choose-text", "xyzzy lingers again"))
            await asked(begun, stuck)
            await patient.choose("choose-text", "The hat sat")
            return patient.troubles

    assert asyncio.run(queue()) == []
    assert numbers(server)["attention_line_length"] == 0


def test_a_full_queue_is_told_in_a_sentence_and_the_others_keep_their_place(
    server: Server, begun: Path
) -> None:
    async def queue() -> tuple[list[str], list[str]]:
        async with contextlib.AsyncExitStack() as room:
            six = [
                await room.enter_async_context(visitor(server, f"The {word} sat"))
                for word in ("pig", "cow", "hen", "fly", "owl", "ant")
            ]
            gone = await lingering(server, begun)
            waiting = []
            for number, one in enumerate(six[:5], 1):
                text = f"The cat saw {number}"
                waiting.append(asyncio.create_task(one.choose("choose-text", text)))
                await until(server, "attention_line_length", number)
            await six[5].choose("choose-text", "The cat saw nobody")
            await leave(gone)
            await asyncio.gather(*waiting)
            return six[5].troubles, [line for one in six[:5] for line in one.troubles]

    refused, others = asyncio.run(queue())
    assert len(refused) == 1
    assert "5 others are waiting" in refused[0]
    assert others == []


async def lingering(server: Server, begun: Path) -> Visitor:
    """A visitor whose pass has begun and does not end."""
    one = visitor(server, "xyzzy lingers")
    await asked(begun, asyncio.create_task(one.__aenter__()))
    return one


async def asked(begun: Path, opening: asyncio.Task[object]) -> None:
    """Waits until the run that is asked for has begun its pass, then stops reading its answers."""
    before = begun.stat().st_size
    async with asyncio.timeout(PATIENCE):
        while begun.stat().st_size == before:
            await asyncio.sleep(0.05)
    assert not opening.done()
    opening.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await opening


async def leave(one: Visitor) -> None:
    await one._socket.close()


async def until(server: Server, name: str, wanted: float) -> None:
    async with asyncio.timeout(PATIENCE):
        while (await asyncio.to_thread(numbers, server))[name] != wanted:
            await asyncio.sleep(0.05)


@dataclass
class Watcher(Visitor):
    """A visitor who notes which parts of a page are drawn. "" is the page outside of all fragments."""

    drawn: set[str] = field(default_factory=set)

    def _note(self, message: ForwardMsg) -> None:
        super()._note(message)
        self.drawn.add(message.delta.fragment_id)


def test_a_click_in_the_map_of_explore_draws_the_map_alone(server: Server) -> None:
    async def clicked() -> None:
        async with Watcher(server.port, "", urlencode({"text": "The cat sat"})) as one:
            assert "" in one.drawn
            the_map, switches = (one.fragments[name] for name in ("explorer", "hero-mask"))
            for query, key in ((1, 0), (2, 0), (2, 1)):
                one.drawn.clear()
                await one.look_at(head=View().head, stage="weights", query=query, key=key)
                assert f"query={query}&key={key}" in one.query
                assert one.drawn == {the_map}
            one.drawn.clear()
            await one.look_at(head=View().head - 1, stage="weights", query=2, key=1)
            assert f"head={View().head - 1}" in one.query
            assert "" in one.drawn  # the switches beside the map are of the head
            one.drawn.clear()
            await one.choose("hero-mask", False)
            assert "mask=none" in one.query
            assert one.drawn == {the_map, switches}
            assert one.troubles == []

    asyncio.run(clicked())


def test_the_log_tells_what_happened_and_holds_no_word_of_a_visitor(
    server: Server, log: Path
) -> None:
    async def visit() -> None:
        async with visitor(
            server, SECRETS[0], head="plugh", model="xyzzy/plugh", place="xyzzy"
        ) as one:
            for page in ("", "all_heads", "prediction"):
                one.page = page
                for text in SECRETS:
                    await one.choose("choose-text", text)
                    await one.choose("choose-text", f"{text} breaks")
            await one.choose("choose-text", "xyzzy plugh " * 1200)
            await one.choose("choose-model", "xyzzy")
            one.page = "all_heads"
            await one.run()
            await one.choose("other-models", True)
            await one.choose("picker-typed", "/xyzzy/plugh")

    asyncio.run(visit())
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(f"{server.address}/xyzzy?text=plugh", timeout=30)
    written = log.read_text(encoding="utf-8")
    assert [
        line for line in written.splitlines() if re.search(r"(?i)xyzzy|plugh|lingers", line)
    ] == []
    lines = [json.loads(line) for line in written.splitlines() if line.startswith("{")]
    assert [line for line in written.splitlines() if line.strip() and not line.startswith("{")] == [
        "  You can now view your Streamlit app in your browser.",
        f"  URL: http://localhost:{server.port}",
    ]
    events = {line["event"] for line in lines}
    assert {"start", "loaded", "ready", "passed", "message"} <= events
    passed = next(line for line in lines if line["event"] == "passed")
    assert passed["model"] == "house-gpt"
    assert passed["tokens"] > 1
    assert passed["ms"] > 0
    broken = next(line for line in lines if line.get("error") == "RuntimeError")
    assert any("planted_server.py" in step for step in broken["traceback"])
    assert any(step.startswith("KeyError") for step in broken["traceback"])


def test_the_numbers_are_for_this_computer_alone(server: Server) -> None:
    asyncio.run(until(server, "attention_sessions", 0))  # all visitors of before have left
    before = numbers(server)
    again = numbers(server)
    counted = "attention_requests_total"
    assert again[counted] == before[counted] + 1
    for name in (
        "attention_pass_seconds_count",
        "attention_page_runs_total",
        "attention_cache_bytes",
    ):
        assert again[name] > 0
    assert again["process_resident_memory_bytes"] > 100e6
    assert again["attention_models_loaded"] == 1
    for name in ("X-Forwarded-For", "Forwarded", "Via"):
        asked = urllib.request.Request(f"{server.address}/metrics", headers={name: "for=10.0.0.1"})
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(asked, timeout=30)
