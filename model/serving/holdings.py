"""What an engine keeps, and what it has put away."""

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from model.serving.events import Event, Passed, Refused


class Eviction(NamedTuple):
    """A model that was unloaded to make room for another one."""

    name: str
    newcomer: str


@dataclass(frozen=True)
class Holdings:
    """What an engine keeps at one moment. The bytes are those of all its models and traces in memory: a page
    may still read one that is not kept any more."""

    models: tuple[str, ...]  # that are kept
    models_in_memory: int
    model_bytes: int
    traces: int  # that are kept
    trace_bytes: int
    waiting: int  # in the queue for passes


NOT_LOADED = "", 0, 0, 0, 0.0, 0, 0, 0, 0, 0, 0, 0.0  # of a `Load`, after the model


class Load(NamedTuple):
    """One loaded model and how busy it is."""

    model: str
    machine: str
    process: int
    waiting: int  # in the queue for its passes
    under_way: int  # asked and not answered yet
    idle: float  # seconds since something was asked
    model_bytes: int
    traces: int
    trace_bytes: int
    passes: int
    refused: int
    failed: int  # by a fault of ours
    runs: float  # seconds since it began


def loads_of(
    sizes: Mapping[str, int],
    traces: Sequence[tuple[str, int]],
    happened: Mapping[tuple[str, type[Event]], int],
    waiting: int,
    runs: float,
) -> list[Load]:
    """The loads of the models of this process. sizes: their bytes. traces: model and bytes of each."""
    return [
        Load(
            model=name,
            machine=socket.gethostname(),
            process=os.getpid(),
            waiting=waiting,
            under_way=0,
            idle=0.0,
            model_bytes=size,
            traces=sum(model == name for model, _ in traces),
            trace_bytes=sum(nbytes for model, nbytes in traces if model == name),
            passes=happened.get((name, Passed), 0),
            refused=happened.get((name, Refused), 0),
            failed=0,
            runs=runs,
        )
        for name, size in sizes.items()
    ]
