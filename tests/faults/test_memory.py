"""Memory runs out in a pass: a sentence with what helps, what it held is given back, the next one runs."""

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch import Tensor

from model import load_model
from model.nn.recorder import AttentionCall
from model.serving.engine import Engine, Request
from model.system.memory import OutOfMemoryError
from tests.faults.conftest import TYPED, told, typed
from tests.model.tiny import SENTENCE, loaded

REPOSITORY = Path(__file__).resolve().parents[2]
SENTENCES = r"not enough memory for .* tokens in .*\. A shorter text or a smaller model needs less"
ERRORS = [
    MemoryError(),
    RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory"),
    RuntimeError("std::bad_alloc"),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB."),
]


@pytest.fixture
def scarce(monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], list[weakref.ref[Tensor]]]:
    """Call it with an error: from then on the second layer's attention raises it, holding a tensor."""

    def scarce_(error: Exception) -> list[weakref.ref[Tensor]]:
        held: list[weakref.ref[Tensor]] = []

        def attention(call: AttentionCall, dropout: float) -> Tensor:
            query = call.query
            if len(held) % 2 == 0:
                held.append(weakref.ref(query))
                return query
            scores = query @ query.transpose(-2, -1)
            held.append(weakref.ref(scores))
            raise error

        monkeypatch.setattr("model.nn.attention.fused", attention)
        return held

    return scarce_


@pytest.mark.parametrize("error", ERRORS, ids=["Python", "PyTorch", "C++", "CUDA"])
def test_a_pass_without_memory_ends_in_a_sentence_and_keeps_nothing(
    error: Exception,
    scarce: Callable[[Exception], list[weakref.ref[Tensor]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = loaded("gpt")
    before = model.trace(SENTENCE).logits
    held = scarce(error)
    with pytest.raises(OutOfMemoryError, match=SENTENCES) as refusal:
        model.trace(SENTENCE)
    gc.collect()
    assert len(held) == 2
    assert [one() for one in held] == [None, None]
    del refusal
    monkeypatch.undo()
    after = model.trace(SENTENCE).logits
    assert before is not None
    assert after is not None
    assert (before == after).all()


def test_another_mistake_is_not_taken_for_it(
    scarce: Callable[[Exception], list[weakref.ref[Tensor]]],
) -> None:
    scarce(RuntimeError("shapes differ"))
    with pytest.raises(RuntimeError, match="shapes differ"):
        loaded("gpt").trace(SENTENCE)


def test_the_queue_goes_on_after_a_pass_without_memory(
    scarce: Callable[[Exception], list[weakref.ref[Tensor]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, request = Engine(), Request("induction", "A B C A")
    engine.model("induction", lambda *news: None)
    scarce(MemoryError())
    with pytest.raises(OutOfMemoryError):
        engine.trace(request, lambda place: None)
    monkeypatch.undo()
    assert engine.trace(request, lambda place: None).check() < 1e-4


def test_a_model_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object) -> None:
        raise ERRORS[1]

    monkeypatch.setattr("model.loading.loading.load_asset", load)
    with pytest.raises(OutOfMemoryError, match="not enough memory for the model stories"):
        load_model("stories")


def test_the_page_says_what_helps_and_the_sentence_stays(
    opened: Callable[..., AppTest],
    scarce: Callable[[Exception], list[weakref.ref[Tensor]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scarce(MemoryError())
    app = opened("pages/home.py", model="stories")
    assert str(OutOfMemoryError("…")).partition("…")[2] in told(app)
    assert typed(app) == TYPED
    monkeypatch.undo()
    app.run()
    assert told(app) == ""
    assert app.get("bidi_component")


REALLY = """
import resource
from model import Intervention, load_model
from model.system.memory import OutOfMemoryError
model = load_model("house-gpt")
model.trace("The cat sat.").check()
long = model.truncate("the cat saw the dog and " * 100)
with open("/proc/self/statm") as sizes:
    here = int(sizes.read().split()[0]) * resource.getpagesize()
soft, hard = resource.getrlimit(resource.RLIMIT_AS)
for room in (1, 4, 12):  # megabytes: it runs out at another place each time
    resource.setrlimit(resource.RLIMIT_AS, (here + room * 2**20, hard))
    try:
        model.trace(long, record="full", intervention=Intervention(fill=0.0))
        print("ran")
    except OutOfMemoryError as refusal:
        print(refusal)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    print(model.trace("The cat sat.").check() < 1e-4)
"""


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="the limit is that of Linux")
def test_where_the_system_truly_refuses_memory_the_process_lives_on() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", REALLY], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[1::2] == ["True"] * 3
    assert sum("256 tokens in" in line for line in lines) >= 2


@pytest.mark.cuda
def test_on_cuda_what_a_pass_held_is_free_again() -> None:
    model = load_model("house-gpt", device="cuda")
    model.trace("The cat sat.")
    free = torch.cuda.mem_get_info()[0]
    taken = torch.empty(max(free - 2**26, 0), dtype=torch.uint8, device="cuda")
    rest = []
    while True:  # the last pieces, until not even a small table fits
        try:
            rest.append(torch.empty(2**20, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            break
    with pytest.raises(OutOfMemoryError, match=SENTENCES):
        model.trace(model.truncate("the cat saw the dog and " * 100), record="full")
    del taken, rest
    torch.cuda.empty_cache()
    assert model.trace("The cat sat.").check() < 1e-4


def test_a_turn_without_memory_ends_in_a_sentence() -> None:
    def fail() -> None:
        with Engine().turn(lambda ahead: None):
            torch.empty(2**60)

    with pytest.raises(OutOfMemoryError, match="not enough memory for this computation"):
        fail()
