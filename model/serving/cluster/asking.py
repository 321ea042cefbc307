"""One question to the actor of a model: asked, waited for, cancelled when nobody wants it any more, and asked
again where the actor dies."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import (
    NodeDiedError,
    ObjectLostError,
    RayActorError,
    RayError,
    RayTaskError,
)

from model.serving.cluster.actors import NOT_REACHED, Actor, Actors, ClusterError
from model.serving.cluster.messages import Caller, Message, Reply
from model.serving.engine import Event

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
    """How one thing is asked of a model, and for whom. told: of each event there."""

    actors: Actors
    model: str
    caller: Caller
    wanted: Callable[[], object]
    waiting: Callable[[int], object]
    tell: Callable[[str, float | None], object]
    told: Callable[[Event], object]

    def first(self, sent: Message, key: object) -> tuple[Actor, Reply]:
        """The actor that has answered, and its answer. Raises ClusterError where the model cannot be
        reached."""
        ends, lost = time.monotonic() + SECONDS_TO_COME_BACK, None
        while time.monotonic() < ends:
            try:
                actor = self.actors.of(self.model, key, self.wanted, self.tell)
                return actor, self._waited(actor, actor.handle.answer.remote(self.caller, sent))
            except (_LostError, RayError) as error:
                lost = error
                self.actors.forget(self.model)
                self.wanted()
                time.sleep(SECONDS_BETWEEN_TRIES)
                self.actors.join_again()
        raise ClusterError(NOT_REACHED) from lost

    def steps(self, actor: Actor, answer: Reply) -> Iterator[Reply]:
        """The answers of a generator there, from the first on, each computed when it is asked for."""
        try:
            while answer.kind != "end":
                yield answer
                answer = self._waited(actor, actor.handle.step.remote(self.caller.ticket))
        except _LostError as error:
            raise ClusterError(ENDED) from error
        finally:
            actor.handle.leave.remote(self.caller.ticket)

    def _waited(self, actor: Actor, asked: Any) -> Reply:
        """The answer, while the visitor is told the place and whoever leaves ends the work."""
        actor.under_way += 1
        try:
            answer = self._looked_for(actor, asked)
        except (RayActorError, NodeDiedError, ObjectLostError) as error:
            raise _LostError from error
        except RayTaskError as error:  # a fault in our code there
            raise error.as_instanceof_cause() from error
        except _LostError:
            raise
        except BaseException:
            actor.handle.leave.remote(self.caller.ticket)
            raise
        finally:
            actor.under_way -= 1
        actor.waiting = answer.waiting
        for event in answer.events:
            self.told(event)
        if answer.kind == "left":
            raise ClusterError(ENDED)
        return answer

    def _looked_for(self, actor: Actor, asked: Any) -> Reply:
        seconds, place, heard = SECONDS_AT_FIRST, None, time.monotonic()
        while not ray.wait([asked], timeout=seconds)[0]:
            self.wanted()
            seconds = SECONDS_BETWEEN_NEWS
            place = place or actor.handle.place.remote(self.caller.ticket)
            if ray.wait([place], timeout=seconds)[0]:
                heard = time.monotonic()
                number, (sentence, share) = ray.get(place)
                place = None
                if number:
                    self.waiting(number)
                elif sentence:
                    self.tell(sentence, share)
            elif time.monotonic() - heard > SECONDS_SILENT:
                raise _LostError
        answer: Reply = ray.get(asked)
        return answer
