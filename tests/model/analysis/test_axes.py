"""Operations on axes: what is shown is what PyTorch does, for every size that can be chosen."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
import torch

from model.analysis.axes import AXES, SIZES, AxisOperation, axis_operations, run

NAMES = list(axis_operations())


def all_sizes(operation: AxisOperation) -> Iterator[dict[str, int]]:
    """Every choice of the operation's sizes, the width in larger steps."""
    letters = operation.sizes
    ranges = [range(SIZES[one].lowest, SIZES[one].highest + 1) for one in letters]
    for sizes in product(*ranges):
        chosen = dict(zip(letters, sizes, strict=True))
        yield from ({**chosen, "axis": axis} for axis in (AXES if operation.over else [-1]))


def test_the_lines_shown_give_the_tensors_shown_or_the_message(subtests: pytest.Subtests) -> None:
    """Run here by Python itself, for all sizes: the same numbers, strides and memory, or the same error."""
    for name in NAMES:
        with subtests.test(name=name):
            operation, failed = axis_operations()[name], 0
            for sizes in all_sizes(operation):
                lines = operation.written(sizes)
                found, known = run(lines), {"torch": torch}
                *first, (_, last) = lines
                for tensor, line in first:
                    known[tensor] = eval(line, known.copy())
                before = known[first[-1][0]]
                np.testing.assert_array_equal(found.before.values, before.numpy())
                if found.after is None:
                    with pytest.raises(RuntimeError) as refused:
                        eval(last, known.copy())
                    assert found.message == f"RuntimeError: {refused.value}"
                    failed += 1
                    continue
                after = eval(last, known.copy())
                assert not found.message
                np.testing.assert_array_equal(found.after.values, after.numpy())
                assert found.after.strides == after.stride()
                assert found.after.contiguous == after.is_contiguous()
                assert found.shared == (
                    before.untyped_storage().data_ptr() == after.untyped_storage().data_ptr()
                )
                assert len(found.after.shape) == len(operation.after.split(", "))
                place = np.array(found.after.strides) @ [size - 1 for size in found.after.shape]
                assert found.after.memory[place] == found.after.values.flat[-1]
            assert (failed > 0) == bool(operation.means), (
                "what can fail is explained, and nothing else"
            )


def test_a_softmax_sums_to_one_along_the_chosen_axis_only(subtests: pytest.Subtests) -> None:
    for axis in AXES:
        with subtests.test(axis=axis):
            found = run(axis_operations()["softmax"].written({"axis": axis})).after
            for one in AXES:
                sums = found.values.sum(one)
                assert np.allclose(sums, 1, atol=1e-6) == (one == axis)


def test_a_mask_of_one_table_is_read_again_for_each_head_without_a_copy() -> None:
    found = run(axis_operations()["expand"].written({}))
    assert found.after.strides[:2] == (0, 0)
    assert found.shared
    assert len(found.after.memory) == 9 < found.after.values.size == 36


def test_a_number_that_is_no_such_size_is_refused(subtests: pytest.Subtests) -> None:
    for sizes in [{"b": 3}, {"n": 0}, {"h": True}, {"w": 2.0}, {"axis": 0}]:
        with (
            subtests.test(sizes=sizes),
            pytest.raises(ValueError, match=r"must be a whole number|no axis"),
        ):
            axis_operations()["view"].written(sizes)
