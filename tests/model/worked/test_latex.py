"""Values put into a line of LaTeX."""

import numpy as np
import pytest

from model.worked.latex import filled


def test_values_take_their_places_and_negative_ones_after_an_operator_stand_in_brackets() -> None:
    assert filled("@ + @ = @", 1, -2, -1) == "1 + (-2) = -1"
    assert filled(r"@ \cdot @ - @ = @", -2.0, -0.5, -3, 4) == r"-2 \cdot (-0.5) - (-3) = 4"
    assert filled(r"\frac{@}{@}", -1, 3) == r"\frac{-1}{3}"


def test_a_row_is_listed_and_words_are_left_as_they_are() -> None:
    line = filled(r"\text{@: } 2\,@", "The", np.array([1.0, -0.5]))
    assert line == r"\text{The: } 2\,[1,\allowbreak\ -0.5]"


@pytest.mark.parametrize("values", [(), (1,), (1, 2, 3)])
def test_as_many_values_as_places_are_needed(values: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="argument"):
        filled("@ = @", *values)
