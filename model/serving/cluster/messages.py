"""What an app and the actors of models send each other: plain data and arrays, and references in place of the
model, its tokenizer, its traces and their records.

Ray reads its own messages by pickle, so whoever reaches a cluster runs any code on it; the token keeps
strangers out. What a visitor types is only ever a string within a request.
"""

import copyreg
import io
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from model.serving.engine import Event
from model.system.remote import Remote
from model.trace.trace import Logits, Vocabulary

DESCRIBE, TRACE, READ = "describe", "trace", "read"  # questions beside the functions of `elsewhere`
TOKENIZER = "tokenizer"


class Bounds(NamedTuple):
    """What the app that opens a model decides for its actor."""

    model_bytes: int
    trace_bytes: int
    idle_seconds: float  # without any question, after which the actor ends
    unseen_seconds: float = 20.0  # after which whoever asks is taken to be gone


class Caller(NamedTuple):
    """Who asks. click: names the visitor's act in the logs of both sides."""

    ticket: str
    visitor: str
    background: bool = False
    click: str = ""


class Message(NamedTuple):
    """A value as bytes, and its arrays beside it, which are read without a copy."""

    value: bytes
    arrays: tuple[bytes, ...] = ()

    @property
    def nbytes(self) -> int:
        return len(self.value) + sum(map(len, self.arrays))


class Reply(NamedTuple):
    """What is sent back. kind: "value", "refusal", or "more": a generator that waits for `step`; "end" of
    one; "left": nobody waited for it any more."""

    kind: str
    sent: Message = Message(b"")
    events: tuple[Event, ...] = ()
    waiting: int = 0  # in the queue of this model


def written(value: object, refer: Callable[[Any], object]) -> Message:
    """A value to be sent. refer: the reference that stands for an object; None: it travels itself."""
    to, arrays = io.BytesIO(), list[bytes]()
    writer = _Writer(to, 5, buffer_callback=lambda array: arrays.append(array.raw().tobytes()))
    writer.refer = refer
    writer.dump(value)
    return Message(to.getvalue(), tuple(arrays))


def read(sent: Message, found: Callable[[Any], Any]) -> Any:
    """The value of a message; its arrays are read-only. found: the object of a reference."""
    reader = _MessageReader(io.BytesIO(sent.value), buffers=sent.arrays)
    reader.found = found
    return reader.load()


class _Writer(pickle.Pickler):
    refer: Callable[[Any], object]

    def persistent_id(self, obj: Any) -> object:
        return self.refer(obj)

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, ValueError):  # its class may be made from other words than its sentence
            return _refusal, (type(obj), str(obj), vars(obj))
        if isinstance(obj, Remote | Logits | Vocabulary):  # a pickle would read them
            return copyreg.__newobj__, (type(obj),), vars(obj)  # type: ignore[attr-defined]
        if isinstance(obj, np.ndarray) and not obj.flags.forc:
            return np.ascontiguousarray(obj).__reduce_ex__(5)
        return NotImplemented


class _MessageReader(pickle.Unpickler):
    found: Callable[[Any], Any]

    def persistent_load(self, pid: Any) -> Any:
        return self.found(pid)


def _refusal(kind: type[ValueError], sentence: str, about: dict[str, Any]) -> ValueError:
    refusal = kind.__new__(kind, sentence)
    vars(refusal).update(about)
    return refusal
