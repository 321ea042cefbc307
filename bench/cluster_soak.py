"""A class on two replicas of the app whose model is two actors of a cluster. One actor is killed, then one
replica, which begins again at its address; its pupils go to the other one, as behind a load balancer.

SOAK_SECONDS says how long.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from websockets.exceptions import WebSocketException

from bench.cells import Measured, ms, table
from bench.classroom import (
    PUPILS,
    SECONDS,
    TRACE_MB,
    Pupil,
    broken,
    own_sentences,
    summed,
    take_seats,
)
from bench.pupil_answers import expected_answers
from model.serving.cluster.messages import Bounds
from model.system.settings import MEGABYTE, settings
from tests.server import READY, Server, serving
from tools.on_cluster import two_machines

MODEL, COPIES = "house-gpt", 2
SHORT = 60.0
BETWEEN_LOOKS = 5.0
ACTOR_DIES, REPLICA_DIES = 1 / 3, 2 / 3  # of the lesson
AWAY = 10.0  # seconds until the replica is started again


@dataclass
class Moving(Pupil):
    """A pupil who goes to the other replica where the own one is gone, with the view of the link."""

    servers: tuple[Server, ...] = ()
    moved: int = 0

    async def act(self, kind: str, chance: random.Random) -> None:
        link = self.query  # of the view before the act
        try:
            await super().act(kind, chance)
        except (WebSocketException, OSError, TimeoutError):
            self.moved += 1
            await self._move(link)

    async def _move(self, link: str) -> None:
        self.page, self.query = "", link
        ports = [server.port for server in self.servers]
        self.port = ports[(ports.index(self.port) + 1) % len(ports)]
        self.session, self.answer = "", None
        for kept in (self.widgets, self.fragments, self._states, self._kept, self._components):
            kept.clear()
        await self.__aenter__()
        self.text, self.masked = self.view.text, self.view.intervention.mask == "model"
        await self.compare()


@dataclass
class Lesson:
    """What is done beside the pupils' work, and what was seen."""

    servers: tuple[Server, ...]
    engine: Any
    seconds: float
    began: float = field(default_factory=time.monotonic)
    memory: list[tuple[float, float]] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)  # for an actor, at each look
    events: list[str] = field(default_factory=list)

    @property
    def ends(self) -> float:
        return self.began + self.seconds

    async def until(self, share: float) -> None:
        await asyncio.sleep(max(0.0, self.began + share * self.seconds - time.monotonic()))

    async def kill_an_actor(self) -> None:
        await self.until(ACTOR_DIES)
        loads = await asyncio.to_thread(self.engine.loads)
        os.kill(loads[0].process, signal.SIGKILL)
        self.note(f"actor killed, of {len(loads)}")

    async def kill_a_replica(self) -> None:
        await self.until(REPLICA_DIES)
        self.servers[0].process.kill()
        self.servers[0].process.wait()
        self.note("replica killed")
        await asyncio.sleep(AWAY)
        self.servers[0].start()
        await asyncio.to_thread(self.servers[0].wait, READY)
        self.note("replica ready again")

    async def look(self) -> None:
        """The memory of the replica that stays, and the queues of the actors."""
        while time.monotonic() < self.ends:
            self.memory.append((time.monotonic() - self.began, self.servers[1].memory))
            loads = await asyncio.to_thread(self.engine.loads)
            self.waiting += [one.waiting for one in loads]
            await asyncio.sleep(BETWEEN_LOOKS)

    def note(self, what: str) -> None:
        self.events.append(f"{what} after {time.monotonic() - self.began:.0f} s")
        print(self.events[-1], flush=True)


def measure(scratch: Path, short: bool) -> dict[str, object]:
    seconds = float(os.environ.get("SOAK_SECONDS", SHORT if short else SECONDS))
    texts = [own_sentences(number) for number in range(PUPILS)]
    expected = expected_answers([text for own in texts for text in own])
    with ExitStack() as stack:
        found = stack.enter_context(two_machines())
        more = found | {
            "ATTENTION_TRACE_MB": str(TRACE_MB),
            "ATTENTION_CLUSTER_COPIES": str(COPIES),
        }
        servers = tuple(
            stack.enter_context(serving(scratch / f"server-{n}.log", more=more)) for n in range(2)
        )
        lesson = Lesson(servers, _both_actors(found["ATTENTION_CLUSTER"]), seconds)
        pupils, fallen = asyncio.run(_work(lesson, texts, expected))
        loads = {one.process: one.passes for one in lesson.engine.loads()}
    measured = summed((pupils, lesson.memory, fallen), warm_up=0.0)
    measured |= {
        "seconds": seconds,
        "pupils": PUPILS,
        "events": lesson.events,
        "moved": sum(pupil.moved for pupil in pupils),
        "passes": sorted(loads.values()),
        "looks": len(lesson.waiting),
        "looks_in_which_some_waited": sum(map(bool, lesson.waiting)),
        "most_who_waited": max(lesson.waiting),
        "kinds": dict(Counter(line.partition(":")[0] for line in fallen)),
    }
    print(measured, flush=True)
    return measured


def tabled(measured: Measured) -> str:
    """What was measured, as a table and a sentence."""
    rows = [
        (row["act"], f"{row['times']:,}", ms(row["median_ms"]), ms(row["p95_ms"]))
        for row in measured["rows"]
    ]
    words = (
        f"{measured['pupils']} sessions for {measured['seconds'] / 60:g} minutes; "
        f"{'; '.join(measured['events'])}. Pupils who went to the other replica: {measured['moved']}. "
        f"Answers that were not the session's own: {measured['mixed_up']}; errors: {measured['errors']}. "
        f"Memory of the replica that stayed: at most {max(measured['megabytes']):,} MB. "
        f"Looks at an actor: {measured['looks']:,}; somebody waited for its passes in "
        f"{measured['looks_in_which_some_waited']:,}, at most {measured['most_who_waited']}."
    )
    return f"{table(('act', 'times', 'median', 'p95'), rows)}\n\n{words}"


def _both_actors(address: str) -> Any:
    """An engine of our own, once both actors of the model have begun."""
    import ray

    from model.serving.cluster.actors import Actors
    from model.serving.cluster.cluster_engine import ClusterEngine

    engine = ClusterEngine(address)
    bounds = Bounds(
        settings().model_megabytes * MEGABYTE, TRACE_MB * MEGABYTE, settings().cluster_idle
    )
    actors = engine._actors = Actors(address, bounds, copies=COPIES, gpus=0)
    actors.join()
    ray.get([actors.begin(MODEL, number).load.remote() for number in range(COPIES)])
    return engine


async def _work(
    lesson: Lesson, texts: list[tuple[str, ...]], expected: Any
) -> tuple[list[Pupil], list[str]]:
    pupils: list[Pupil] = [
        Moving(
            lesson.servers[number % 2].port, "", urlencode({"text": own[0]}),
            number=number, texts=own, expected=expected, text=own[0], servers=lesson.servers,
        )
        for number, own in enumerate(texts)
    ]  # fmt: skip
    await take_seats(pupils)
    lesson.began = time.monotonic()
    beside = (lesson.look(), lesson.kill_an_actor(), lesson.kill_a_replica())
    learning = [pupil.learn(lesson.ends, random.Random(pupil.number)) for pupil in pupils]
    ended = await asyncio.gather(*beside, *learning, return_exceptions=True)
    for pupil in pupils:
        try:
            await pupil.__aexit__(None, None, None)
        except WebSocketException:
            continue
    return pupils, broken(ended)
