"""Families of models: each opens to the degree that the table of docs/families.md says."""

import numpy as np
import pytest

from model.analysis.stream.stream import contribution_check, contributions
from model.trace.unproven import UnprovenError
from tests.cases import cases
from tests.model.hub_models import FAMILIES, ODD, PARTLY, REFUSED, loaded, traced
from tools.families_table import PAGE, measured

ROWS = {
    line.split(" | ")[0].removeprefix("| "): line.split(" | ")[1]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ")
}


def test_the_table_lists_every_family_and_at_least_48_open_38_in_full() -> None:
    assert ROWS.keys() - {"family"} == {*FAMILIES, *PARTLY, *ODD, *REFUSED}
    opened = [degree for degree in ROWS.values() if not degree.startswith("refused")]
    assert len(opened) >= 48
    assert sum(degree == "in full" for degree in opened) >= 38


@pytest.mark.parametrize("family", [*FAMILIES, *PARTLY, *ODD, *REFUSED])
def test_a_family_opens_as_the_table_says_with_the_numbers_of_eager_attention(family: str) -> None:
    found = measured(family)
    assert found.degree == ROWS[family], "run python -m tools.families_table"
    assert max(found.weights, found.result) < 1e-5


@cases("family", [*PARTLY, *ODD])
def test_what_is_proven_holds_and_what_is_not_says_why(family) -> None:
    model = loaded(family)
    trace = traced(model, record="full")
    assert set(model.unproven) == (PARTLY | ODD)[family][3]
    assert trace.check() < 1e-4
    has_stream = "stream" not in model.unproven
    if not has_stream:
        with pytest.raises(UnprovenError, match="residual stream"):
            list(trace.residual)
    for stack in trace.stacks if has_stream else ():
        given = contributions(model, trace, stack)
        assert contribution_check(model, trace, given) < 1e-4
        total = trace.residual[stack][0] + sum(part.added for part in given)
        if not model.config.norms_sum:
            np.testing.assert_allclose(total, trace.residual[stack][-1], atol=1e-4)
    if has_stream and "embedding" in model.unproven:
        with pytest.raises(UnprovenError, match="a map stands between the embeddings"):
            list(trace.summands)
