"""A recorded pass on a CUDA device waits for nothing: PyTorch itself raises where one does."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import pytest
import torch

from model.nn.intervention import Intervention
from model.nn.recorder import Recorder, recording
from model.run.model import trace_of_pass
from tests.cases import cases
from tests.model import hub_models as families
from tests.model.hub.test_identity import TEXT as HUB_TEXT
from tests.model.tiny import loaded, sentence, target

pytestmark = pytest.mark.cuda


@contextmanager
def nothing_waits() -> Iterator[None]:
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@cases(
    "intervention, name",
    product(
        [Intervention(), Intervention(scale=0.5, hidden=frozenset({1}))],
        ["gpt", "llama", "bert", "translator", "house-gpt"],
    ),
)
def test_from_its_ids_to_its_trace_a_pass_waits_for_nothing(intervention, name) -> None:
    model = loaded(name, "cuda")
    tokens = model.tokens(sentence(model))
    second = model.config.shape == "encoder-decoder"
    read = model._target_tokens(tokens, target(model), ()) if second else ()
    ids = [model.ids(one) for one in (tokens, read) if one]
    for level in ("attention", "full"):
        recorder = Recorder(intervention, level, source=model.config.source)
        with nothing_waits(), recording(recorder), torch.inference_mode():
            ended = model.module(*ids)
            trace = trace_of_pass(model, recorder, ended, tokens, read, text="")
        assert trace.check() < 1e-4


def test_so_does_one_of_the_librarys() -> None:
    from model import load_model

    model = load_model(str(families.saved("llama")), device="cuda")
    tokens = model.tokens(HUB_TEXT)
    ids, recorder = model.ids(tokens), Recorder(level="full")
    with recording(Recorder(level="full")), torch.inference_mode():
        model.module(ids)  # the library's own first pass may measure its kernels
    with nothing_waits(), recording(recorder), torch.inference_mode():
        ended = model.module(ids)
        trace = trace_of_pass(model, recorder, ended, tokens, text="")
    assert trace.check() < 1e-4


def test_a_wait_is_noticed() -> None:
    number = torch.ones(1, device="cuda")
    with pytest.raises(RuntimeError), nothing_waits():
        number.item()
