"""Norms recomputed from the recorded input: layer norm, RMS norm, and the kernel's own statistics."""

from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F

from model import Trace
from model.analysis.stream.stream import KernelCheck, kernel_check
from model.arithmetic import normalization
from model.nn.norms import NORMS
from tests.cases import cases
from tests.model.tiny import loaded, sentence


def wide(array: np.ndarray) -> torch.Tensor:
    return torch.tensor(array, dtype=torch.float64)


def test_both_norms_of_a_recorded_input_are_pytorchs(trace: Trace) -> None:
    for norm in trace.norms:
        for kind, law in (("layer", F.layer_norm), ("rms", F.rms_norm)):
            expected = law(wide(norm.input), norm.gamma.shape, eps=norm.epsilon)
            ours = NORMS[kind].normalized(norm.input, norm.epsilon)
            np.testing.assert_allclose(ours, expected.numpy(), atol=1e-9, err_msg=norm.name)


@cases("width", [4, 512])
def test_the_unbiased_norm_is_smaller_by_the_root_of_the_widths(width) -> None:
    rows = np.random.default_rng(1).standard_normal((3, width)).astype(np.float32)
    biased = NORMS["layer"].normalized(rows, 0.0)
    wide_rows = rows.astype(np.float64)
    own = normalization.normalized(wide_rows, epsilon=0.0)
    np.testing.assert_allclose(own, biased, rtol=1e-9)
    unbiased = normalization.normalized(wide_rows, epsilon=0.0, unbiased=True)
    np.testing.assert_allclose(unbiased, biased * np.sqrt((width - 1) / width), rtol=1e-9)
    np.testing.assert_allclose(unbiased.var(-1, ddof=1), 1, rtol=1e-6)


def largest(check: KernelCheck) -> float:
    assert check.output is not None
    return max(check.mean, check.inverse_deviation, check.output)


def test_the_kernels_statistics_and_output_are_the_recomputed_ones(trace: Trace) -> None:
    for norm in trace.norms:
        assert largest(kernel_check(norm)) < 2e-5, norm.name


def test_a_planted_error_in_any_of_the_three_is_seen() -> None:
    model = loaded("gpt")
    norm = model.trace(sentence(model), record="full").norms[1]
    assert kernel_check(replace(norm, mean=norm.mean + 0.01)).mean > 0.009
    unbiased = norm.inverse_deviation * (23 / 24) ** 0.5
    assert kernel_check(replace(norm, inverse_deviation=unbiased)).inverse_deviation > 0.01
    moved = kernel_check(replace(norm, recorded=norm.recorded + 0.01)).output
    assert moved > 0.009
    assert kernel_check(replace(norm, recorded=None)).output is None
