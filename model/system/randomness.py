"""PyTorch's own generators, one visitor after another.

They belong to the whole process: two threads that seed them at once draw each other's numbers.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_SEEDED = threading.RLock()


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Within it PyTorch's generators of the processor and of a CUDA device draw from this seed. Then they
    are as before."""
    devices = [device] if device.type == "cuda" else []
    with _SEEDED, torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield
