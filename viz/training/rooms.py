"""The one archive of checkpoints and the one workshop of this process, shared by all visitors."""

from contextlib import AbstractContextManager
from functools import cache

from model.checkpoints import Archive
from model.live_training import Workshop
from viz.shared import engine


@cache
def archive() -> Archive:
    return Archive(turn=_turn)


@cache
def workshop() -> Workshop:
    return Workshop(turn=_turn_in_background)


def _turn() -> AbstractContextManager[None]:
    return engine().turn(lambda place: None)


def _turn_in_background() -> AbstractContextManager[None]:
    return engine().turn(lambda place: None, in_background=True)
