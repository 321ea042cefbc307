"""The formulas of a norm hold that norm's recorded numbers, for a layer norm and an RMS norm."""

import re

import pytest

from tests.cases import cases
from tests.model.tiny import loaded, sentence
from viz.views.norms.formulas import norm_in_numbers


@cases("name", ["gpt", "llama"])
def test_the_numbers_lead_to_the_recorded_output(name) -> None:
    model = loaded(name)
    for norm in model.trace(sentence(model), record="full").norms:
        assert (r"\mu" in norm.law.formula()) is (norm.kind == "layer")
        written = norm_in_numbers(norm, 2, 5)
        output = re.search(r"mathbf\{(-?[\d.]+)\}", written)
        assert float(output.group(1)) == pytest.approx(float(norm.output[2, 5]), abs=6e-5)
        assert (r"\mu" in written) is (norm.kind == "layer")
        assert "10^{-5}" in written
