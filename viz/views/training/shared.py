"""The one archive of checkpoints and the one workshop of this process, shared by all visitors."""

from collections.abc import Hashable
from contextlib import AbstractContextManager
from functools import cache

from model.serving.engine import Background
from model.training.checkpoints import Archive
from model.training.workshop import Workshop
from viz.state.engine import engine


@cache
def archive() -> Archive:
    return Archive(turn=_turn)


@cache
def workshop() -> Workshop:
    return Workshop(turn=_turn_of)


def _turn() -> AbstractContextManager[None]:
    return engine().turn(lambda place: None)


def _turn_of(visitor: Hashable) -> AbstractContextManager[None]:
    return engine().turn(lambda place: None, Background(visitor))
