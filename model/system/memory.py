"""Memory: returned to the system before a large table is made, and a sentence when it runs out."""

import gc
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from model.system import allocator

if TYPE_CHECKING:  # pages are drawn first
    from torch import Tensor

_NO_MEMORY = (  # what PyTorch and the libraries below it say; only CUDA has a class of its own
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "bad_alloc",
    "bad allocation",
    "could not create a memory object",
)
LARGEST_RECORD = 2_000_000_000  # bytes of what a page records of one pass
_LARGE = 64_000_000  # bytes of a table that are worth the few milliseconds


class OutOfMemoryError(ValueError):
    """This computer has not enough memory for what was asked. Nothing of the attempt is kept."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"There is not enough memory for {what}. A shorter text or a smaller model needs less; "
            "nothing else was lost."
        )


class AllReadError(ValueError):
    """The traces that others read now leave no room for another one."""

    def __init__(self) -> None:
        super().__init__(
            "Others are reading long texts now, and there is no memory for one more. Your sentence is kept. "
            "Try again in a minute."
        )


@contextmanager
def enough_memory(what: str) -> Iterator[None]:
    """Raises OutOfMemoryError where the body runs out of memory. What it held is freed first."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        traceback.clear_frames(error.__traceback__)  # they hold the tensors made so far
        _give_back()
        raise OutOfMemoryError(what) from None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out, on the processor or on CUDA."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _NO_MEMORY)


def _give_back() -> None:
    import torch

    gc.collect()
    allocator.give_back()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def into_memory(weights: Iterable["Tensor"]) -> None:
    """Copies into memory the weights that are still mapped to their file.

    safetensors maps weights, and the system reads them from the disk when they are first used. If the file
    were cut short or changed by then, the process would be killed or would show other numbers.
    """
    for weight in weights:
        if not weight.untyped_storage().resizable():  # memory that is not PyTorch's own
            weight.data = weight.data.clone()


def make_room(numbers: int) -> None:
    """Called before a table of so many float32 numbers is made while a pass is recorded.

    The tensors that a recorder keeps lie among freed ones, and glibc keeps the gaps. At 1,024 tokens of a
    GPT-2-sized model these are a tenth of the peak.
    """
    if 4 * numbers >= _LARGE:
        allocator.give_back()
