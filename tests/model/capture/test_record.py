"""What is recorded holds: a record that gives other weights or outputs than the module's is refused."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from model import load_trace
from model.capture import capture
from model.capture.lineage import UnreadableError
from model.capture.record import Rows, Seen, recorded
from tests.model.capture.own_modules import SPELLINGS, WIDTH, OwnAttention

ROWS, TOKENS, D = 2, 12, 8


def seen(values: float, precision: torch.dtype, shown: bool) -> Seen:
    """Attention as PyTorch computes it, with values of some size."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(ROWS, TOKENS, D, dtype=precision) for _ in range(3))
    v = v * values
    weights = (q @ k.mT * D**-0.5).softmax(-1)
    return Seen(
        query=q,
        key=k,
        value=v,
        output=weights @ v,
        weights=weights if shown else None,
        scale=D**-0.5,
        cap=None,
        forbidden=None,
        fills=(),
        added=None,
        sinks=None,
        rows=Rows(torch.zeros(ROWS, dtype=torch.long)),
        crosses=False,
    )


def test_a_mask_that_the_module_does_not_have_is_refused_whatever_its_values(
    subtests: pytest.Subtests,
) -> None:
    for (values, precision), shown in product(
        [
            *(
                (values, precision)
                for values in (1e-6, 1, 300)
                for precision in (torch.float32, torch.bfloat16)
            ),
            *((values, torch.float16) for values in (1e-2, 1, 300)),
        ],
        [True, False],
    ):
        with subtests.test(values=values, precision=precision, shown=shown):
            own = seen(values, precision, shown)
            assert recorded(own)[1].holds
            last = torch.zeros(1, TOKENS, TOKENS, dtype=torch.bool)
            last[..., -1] = True
            with pytest.raises(UnreadableError, match="differs from its own"):
                recorded(replace(own, forbidden=last, fills=(-np.inf,)))


def test_weights_are_held_to_the_same_bound_beside_large_outputs() -> None:
    own = seen(1, torch.bfloat16, shown=True)
    alike = torch.full_like(own.value, 32)  # any weights give this output
    own = replace(own, value=alike, output=alike)
    assert recorded(own)[1].holds
    first = torch.zeros(1, TOKENS, TOKENS, dtype=torch.bool)
    first[..., :6] = True
    with pytest.raises(UnreadableError, match="its weights"):
        recorded(replace(own, forbidden=first, fills=(-np.inf,)))


def test_every_spelling_comes_back_from_its_file(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:  # type: ignore[no-untyped-def]
    for written in SPELLINGS:
        with subtests.test(written=written.__name__):
            torch.manual_seed(0)
            tmp_path = tmp_path_factory.mktemp("case")
            torch.manual_seed(0)
            trace = capture(OwnAttention(written), torch.randn(1, 5, WIDTH))
            trace.save(tmp_path / "own.safetensors")
            (own,), (again,) = trace.attention, load_trace(tmp_path / "own.safetensors").attention
            assert again.mask_value == own.mask_value
            assert all(np.array_equal(again.weights(n), own.weights(n)) for n in range(own.heads))
