"""What one visitor seeds, no other one draws from, and nothing of it stays."""

import threading

import torch

from model.system import randomness
from model.system.randomness import seeded

CPU = torch.device("cpu")


def test_a_seed_gives_the_same_draws_and_leaves_the_generator_as_it_was() -> None:
    before = torch.get_rng_state()
    with seeded(5, CPU):
        first = torch.rand(3)
    assert torch.equal(torch.get_rng_state(), before)
    with seeded(5, CPU):
        assert torch.equal(torch.rand(3), first)


def test_only_one_thread_at_a_time_has_the_generator() -> None:
    free: list[bool] = []

    def other() -> None:
        free.append(randomness._SEEDED.acquire(blocking=False))
        if free[-1]:
            randomness._SEEDED.release()

    def asked() -> bool:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return free[-1]

    with seeded(1, CPU):
        assert not asked()
    assert asked()
