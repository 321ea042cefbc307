"""`capture` of modules that nobody here wrote: recomputed from each record, the module's own output comes."""

from collections.abc import Callable

import pytest
import torch

from model.capture import capture
from tests.model.capture.others_modules import MODULES, Made


@pytest.mark.filterwarnings("ignore")  # of the packages themselves
@pytest.mark.parametrize(("make", "count"), [entry[:2] for entry in MODULES])
def test_its_outputs_come_out_of_the_record(make: Callable[[], Made], count: int) -> None:
    torch.manual_seed(0)
    module, inputs, keywords = make()
    trace = capture(module, *inputs, **keywords)
    assert len(trace.attention) == count
    assert trace.check() < 1e-5
    assert all(attention.module for attention in trace.attention)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make"), [entry[0] for entry in MODULES if "transformers_" in entry[0].__name__[:13]]
)
def test_weights_are_those_that_the_library_returns(make: Callable[[], Made]) -> None:
    torch.manual_seed(0)
    module, inputs, _ = make()
    trace = capture(module, *inputs, batch=1)
    own = module.eval()(*inputs, output_attentions=True).attentions
    for attention, weights in zip(trace.attention, own, strict=True):
        for head in range(attention.heads):
            assert abs(attention.weights(head) - weights[1, head].detach().numpy()).max() < 1e-6
