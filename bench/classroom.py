"""A class at work: 50 sessions for ten minutes, each with sentences of its own, each pausing as a pupil does.

Every answer is held against what it must be: the tokens and the attention's output that arrive are those of
the pupil's own sentence, layer and mask, computed here beforehand; the link says what was chosen; and no
message to a pupil holds another one's text.
"""

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import numpy as np
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from bench.pupil_answers import Answer, Expected, expected_answers
from bench.quantiles import median, p95
from bench.sessions import MASKS, sentence
from tests.server import Server, serving
from tests.visitor import Visitor
from viz.state.link import View, from_link

PUPILS = 50
SECONDS, WARM_UP, BETWEEN_LOOKS = 600, 120, 30
THINK = (2.0, 8.0)  # seconds between an answer and the next act, evenly spread
OPENING = 10.0  # seconds over which the class arrives
SENTENCES = 6  # of each pupil
TRACE_MB = 100  # the bound of the cache, so that it is full when the memory is looked at
LAYERS = tuple(f"decoder.{layer}.self" for layer in range(4))
PAGES = ("all_heads", "prediction", "tokens", "layer_norm")
ACTS = {"head": 9, "layer": 4, "mask": 3, "page": 2, "sentence": 2}  # how often, of 20
ROOM = re.compile(rb"Room (\d+)")


def measure(scratch: Path, short: bool) -> dict[str, object]:
    seconds, warm_up, between = (20, 8, 3) if short else (SECONDS, WARM_UP, BETWEEN_LOOKS)
    return run(scratch, PUPILS, seconds, warm_up, between)


def run(
    scratch: Path, pupils: int, seconds: float, warm_up: float, between: float
) -> dict[str, object]:
    """One lesson; seconds after the class has arrived, memory looked at every `between` seconds."""
    texts = [own_sentences(number) for number in range(pupils)]
    expected = expected_answers([text for own in texts for text in own])
    with serving(scratch / "server.log", more={"ATTENTION_TRACE_MB": str(TRACE_MB)}) as server:
        found = asyncio.run(lesson(server, texts, expected, seconds, between))
    measured = summed(found, warm_up)
    print(measured, flush=True)
    facts = {"pupils": pupils, "seconds": seconds, "warm_up": warm_up, "think": THINK}
    return facts | {"trace_mb": TRACE_MB} | measured


def own_sentences(number: int) -> tuple[str, ...]:
    """The sentences of one pupil: nobody else has them, and each names the pupil's room."""
    return tuple(f"Room {number}: {sentence(number + PUPILS * n)}" for n in range(SENTENCES))


@dataclass
class Pupil(Visitor):
    """A visitor who compares what arrives with what was asked for."""

    number: int = 0
    texts: tuple[str, ...] = ()
    expected: Expected = field(default_factory=dict)
    text: str = ""
    masked: bool = True
    answer: Answer | None = None
    box: str = ""  # what stands in the sentence box
    milliseconds: dict[str, list[float]] = field(
        default_factory=lambda: {kind: [] for kind in ACTS}
    )
    mixed_up: list[str] = field(default_factory=list)
    asked_again: int = 0  # for a layer that had not come

    async def learn(self, until: float, chance: random.Random) -> None:
        """Thinks, acts, thinks, until the bell rings."""
        while True:
            await asyncio.sleep(chance.uniform(*THINK))
            if time.monotonic() > until:
                return
            (kind,) = chance.choices(list(ACTS), list(ACTS.values()))
            await self.act(kind, chance)

    async def act(self, kind: str, chance: random.Random) -> None:
        """One act, its answer compared, its milliseconds kept."""
        acts: dict[str, Callable[[random.Random], Awaitable[float]]] = {
            "head": self._head,
            "layer": self._layer,
            "mask": self._mask,
            "page": self._page,
            "sentence": self._sentence,
        }
        self.milliseconds[kind].append(await acts[kind](chance))

    async def _head(self, chance: random.Random) -> float:
        head = chance.choice([head for head in range(8) if head != self.view.head])
        spent = await self._report(self._shown.selection | {"head": head})
        self._expect(self.view.head == head, f"head {head} was chosen")
        await self.compare()
        return spent

    async def _layer(self, chance: random.Random) -> float:
        """Another layer, asked for as the browser does on the first visit to it."""
        name = chance.choice([name for name in LAYERS if name != self.view.place])
        spent = await self._report(self._shown.selection, layer={"name": name, "lost": False})
        self._expect(self.view.place == name, f"{name} was chosen")
        await self.compare()
        return spent

    async def _mask(self, chance: random.Random) -> float:
        self.masked = not self.masked
        spent = await self.choose("hero-mask", MASKS[1 if self.masked else 0])
        await self.compare()
        return spent

    async def _sentence(self, chance: random.Random) -> float:
        self.text = chance.choice([text for text in self.texts if text != self.text])
        spent = await self.choose("choose-text", self.text)
        await self.compare()
        return spent

    async def _page(self, chance: random.Random) -> float:
        """To another page and back; the slower of the two counts."""
        there = await self._go(chance.choice(PAGES))
        self._expect(self.box == self.text, f"the sentence box of {self.page} is one's own")
        back = await self._go("")
        await self.compare()
        return max(there, back)

    async def _go(self, page: str) -> float:
        self.page, self.query, self.box = page, "", ""
        self.widgets.clear()
        self._states.clear()
        return await self.run()

    async def _report(self, selection: dict[str, object], **more: object) -> float:
        """What the explorer reports after a click in it."""
        placed = selection | {"revision": self._shown.revision}
        return await self.report({"selection": placed} | more)

    @property
    def _shown(self) -> Answer:
        """The answer that arrived last. Raises RuntimeError where there is none."""
        if self.answer is None:
            raise RuntimeError("No explorer has arrived.")
        return self.answer

    @property
    def view(self) -> View:
        """What the link says that this pupil looks at."""
        view, problems = from_link(dict(parse_qsl(self.query, keep_blank_values=True)))
        self.troubles += problems
        return view

    async def compare(self) -> None:
        """Holds the answer that arrived last against what it must be. Where the server took a layer for one
        that is here and it is not, it is asked for again, as a browser does."""
        if self.answer is not None and self.answer.lacks_output:
            self.asked_again += 1
            lost = {"name": self.answer.place, "lost": True}
            await self._report(self.answer.selection, layer=lost)
        view, answer = self.view, self.answer
        self._expect(view.text == self.text == self.box, "the link has one's own sentence")
        self._expect(
            (view.intervention.mask == "model") == self.masked, "the link has the chosen mask"
        )
        if answer is None:
            self._expect(False, "an explorer arrived")
            return
        wanted = self.expected[self.text, view.place, self.masked]
        self._expect(answer.tokens == wanted.tokens, "the tokens are one's own")
        self._expect(answer.place == view.place, "the layer is the chosen one")
        own = answer.output.shape == wanted.output.shape and np.allclose(
            answer.output, wanted.output, atol=1e-4
        )
        self._expect(own, f"the attention's output in {view.place} is one's own")

    def _expect(self, held: bool, what: str) -> None:
        if not held:
            self.mixed_up.append(f"pupil {self.number}, not so: {what}")

    def _read(self, content: bytes) -> bool:
        others = {int(room) for room in ROOM.findall(content)} - {self.number}
        self._expect(not others, f"no word of others arrives, but of {sorted(others)}")
        return super()._read(content)

    def _note(self, message: ForwardMsg) -> None:
        super()._note(message)
        element = message.delta.new_element
        if element.WhichOneof("type") == "bidi_component" and element.bidi_component.bytes:
            self.answer = Answer.read(element.bidi_component.bytes, self.answer) or self.answer
        elif element.text_area.label == "Your sentence":
            box = element.text_area
            self.box = box.value if box.set_value else box.default


async def lesson(
    server: Server, texts: list[tuple[str, ...]], expected: Expected, seconds: float, between: float
) -> tuple[list[Pupil], list[tuple[float, float]], list[str]]:
    """The pupils after the lesson, (seconds, megabytes) along the way, and what broke."""
    pupils = [
        Pupil(
            server.port, "", urlencode({"text": own[0]}),
            number=number, texts=own, expected=expected, text=own[0],
        )
        for number, own in enumerate(texts)
    ]  # fmt: skip
    await take_seats(pupils)
    began, until = time.monotonic(), time.monotonic() + seconds
    memory: list[tuple[float, float]] = []

    async def look() -> None:
        while time.monotonic() < until:
            memory.append((time.monotonic() - began, server.memory))
            await asyncio.sleep(between)

    lessons = [pupil.learn(until, random.Random(pupil.number)) for pupil in pupils]
    ended = await asyncio.gather(look(), *lessons, return_exceptions=True)
    for pupil in pupils:
        await pupil.__aexit__(None, None, None)
    return pupils, memory, broken(ended)


async def take_seats(pupils: Sequence[Pupil]) -> None:
    """Each opens the page, one after another."""
    for pupil in pupils:
        await pupil.__aenter__()
        await pupil.compare()
        await asyncio.sleep(OPENING / len(pupils))


def broken(ended: Sequence[object]) -> list[str]:
    """What ended by an error."""
    return [f"{type(one).__name__}: {one}" for one in ended if isinstance(one, BaseException)]


def summed(
    found: tuple[list[Pupil], list[tuple[float, float]], list[str]], warm_up: float
) -> dict[str, object]:
    pupils, memory, fallen = found
    rows = []
    for kind in (*ACTS, "all"):
        kinds = ACTS if kind == "all" else (kind,)
        times = [one for pupil in pupils for name in kinds for one in pupil.milliseconds[name]]
        if times:
            rows.append(
                {"act": kind, "times": len(times), "median_ms": median(times), "p95_ms": p95(times)}
            )
    errors = fallen + [line for pupil in pupils for line in pupil.troubles]
    mixed_up = [line for pupil in pupils for line in pupil.mixed_up]
    warm = [megabytes for second, megabytes in memory if second >= warm_up]
    middle = (max(warm) + min(warm)) / 2
    return {
        "rows": rows,
        "errors": len(errors),
        "mixed_up": len(mixed_up),
        "asked_again": sum(pupil.asked_again for pupil in pupils),
        "said": (errors + mixed_up)[:5],
        "megabytes": [round(megabytes) for _, megabytes in memory],
        "warm_megabytes": [round(megabytes) for megabytes in warm],
        "swing": (max(warm) - middle) / middle,
    }
