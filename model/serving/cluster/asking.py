"""One question to the actor of a model: asked, waited for, cancelled when nobody wants it any more, and asked
again where the actor dies."""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from model.analysis.tokens.live_writing import GrowingRows
from model.serving.cluster.actors import NOT_REACHED, Actor, Actors, ClusterError
from model.serving.cluster.far_model import FarModel, FarTokenizer
from model.serving.cluster.far_trace import FarRecord, FarTrace
from model.serving.cluster.messages import Answer, Caller
from model.serving.cluster.travelling import read, written
from model.serving.events import Event
from model.system.clicks import click
from model.trace.arrays import Array

SECONDS_AT_FIRST = 0.1  # before the place in the queue is asked for
SECONDS_BETWEEN_NEWS = 0.2
SECONDS_SILENT = 20.0  # after which an actor that does not even say a place is out of reach
SECONDS_TO_COME_BACK = 90.0  # for one that has died to begin anew, elsewhere if need be
SECONDS_BETWEEN_TRIES = 0.5
ENDED = "The model's process on the cluster has ended while it worked on this. Try again."


class _LostError(Exception):
    """The actor has died, or is out of reach."""


@dataclass
class Asking:
    """How one thing is asked of a model, and for whom."""

    actors: Actors
    model: str
    wanted: Callable[[], object]
    visitor: str
    background: bool
    waiting: Callable[[int], object]
    tell: Callable[[str, float | None], object]
    told: Callable[[Event], object]
    found: Callable[[str, Any], Any]  # what stands for a reference, by model
    ticket: str = field(default_factory=lambda: secrets.token_hex(12))

    def answer(self, function: str, given: Mapping[str, Any], key: object) -> Any:
        """The result of a function. Raises ValueError as it does, and ClusterError where the model cannot be
        reached."""
        sent = written((function, dict(given)), reference)
        caller = Caller(self.ticket, self.visitor, self.background, click())
        actor, answer = self._tried(key, lambda actor: actor.handle.answer.remote(caller, sent))
        value = self._value(actor, answer)
        return self._others(actor, value) if answer.kind == "more" else value

    def _others(self, actor: Actor, value: Any) -> Iterator[Any]:
        """The values of a generator there, each computed when it is asked for."""
        try:
            while True:
                yield value
                try:
                    answer = self._waited(actor, actor.handle.step.remote(self.ticket))
                except _LostError as error:
                    raise ClusterError(ENDED) from error
                if answer.kind == "end":
                    return
                if answer.kind == "left":
                    raise ClusterError(ENDED)
                value = self._value(actor, answer)
        finally:
            actor.handle.leave.remote(self.ticket)

    def _tried(self, key: object, ask: Callable[[Actor], Any]) -> tuple[Actor, Answer]:
        """The actor that has answered, and its answer."""
        ends, lost = time.monotonic() + SECONDS_TO_COME_BACK, None
        while time.monotonic() < ends:
            try:
                actor = self.actors.of(self.model, key, self.wanted, self.tell)
                return actor, self._waited(actor, ask(actor))
            except (_LostError, RayError) as error:
                lost = error
                self.actors.forget(self.model)
                self.wanted()
                time.sleep(SECONDS_BETWEEN_TRIES)
                self.actors.join_again()
        raise ClusterError(NOT_REACHED) from lost

    def _waited(self, actor: Actor, asked: Any) -> Answer:
        """The answer, while the visitor is told the place and whoever leaves ends the work."""
        actor.under_way += 1
        try:
            return self._looked_for(actor, asked)
        except (
            RayActorError,
            ray.exceptions.NodeDiedError,
            ray.exceptions.ObjectLostError,
        ) as error:
            raise _LostError from error
        except RayTaskError as error:  # a fault in our code there
            raise error.as_instanceof_cause() from error
        except _LostError:
            raise
        except BaseException:
            actor.handle.leave.remote(self.ticket)
            raise
        finally:
            actor.under_way -= 1

    def _looked_for(self, actor: Actor, asked: Any) -> Answer:
        seconds, place, heard = SECONDS_AT_FIRST, None, time.monotonic()
        while True:
            ready, _ = ray.wait([asked], timeout=seconds)
            if ready:
                answer: Answer = ray.get(asked)
                actor.waiting = answer.waiting
                for event in answer.events:
                    self.told(event)
                return answer
            self.wanted()
            place = place or actor.handle.place.remote(self.ticket)
            if ray.wait([place], timeout=SECONDS_BETWEEN_NEWS)[0]:
                heard = time.monotonic()
                number, (sentence, share) = ray.get(place)
                place = None
                if number:
                    self.waiting(number)
                elif sentence:
                    self.tell(sentence, share)
            elif time.monotonic() - heard > SECONDS_SILENT:
                raise _LostError
            seconds = SECONDS_BETWEEN_NEWS

    def _stands_for(self, actor: Actor, reference: Any) -> Any:
        """What stands here for what stays there."""
        if reference == ("rows",):
            return FarRows(actor, self.ticket)
        return self.found(self.model, reference)

    def _value(self, actor: Actor, answer: Answer) -> Any:
        if answer.kind in ("left", "end"):
            raise ClusterError(ENDED)
        value = read(answer.sent, partial(self._stands_for, actor))
        if answer.kind == "refusal":
            raise value
        return value


class FarRows(GrowingRows):
    """The weights of a text that grows on the cluster."""

    def __init__(self, actor: Actor, ticket: str) -> None:
        super().__init__()
        self._actor, self._ticket = actor, ticket

    def weights(self, name: str, head: int) -> Array | None:
        try:
            found: Array | None = ray.get(self._actor.handle.rows.remote(self._ticket, name, head))
        except RayError:
            return None
        return found


def reference(value: Any) -> object:
    """What stands for what lies on the cluster; None: it travels."""
    if isinstance(value, FarModel):
        return ("model",)
    if isinstance(value, FarTrace):
        return "trace", value.source_.request
    if isinstance(value, FarRecord) and "path" in vars(value):
        return "record", value.source_.request, value.path
    if isinstance(value, FarTokenizer):
        return "tokenizer", value.target
    return None
