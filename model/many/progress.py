"""How far work over many prompts is, and its end before the last of them."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

PromptProgress = bool | Callable[[int, int], object]  # prompts done, and in all; True: tqdm's bar


def counted(total: int, progress: PromptProgress, stop: Callable[[], bool]) -> Iterator[int]:
    """0 to total − 1. Before each one `stop` is asked, which ends it; after each one `progress` is told.
    Raises ImportError for a bar where tqdm is not installed."""
    told = _bar(total) if progress is True else progress or (lambda done, total: None)
    for number in range(total):
        if stop():
            return
        yield number
        told(number + 1, total)


def _bar(total: int) -> Callable[[int, int], object]:
    try:
        bar: Any = import_module("tqdm.auto").tqdm(total=total)
    except ModuleNotFoundError as error:
        raise ImportError(
            "progress=True shows tqdm's bar, and tqdm is not installed: install it, or give a function of "
            "the prompts done and in all."
        ) from error

    def told(done: int, total: int) -> None:
        bar.update()
        if done == total:
            bar.close()

    return told
