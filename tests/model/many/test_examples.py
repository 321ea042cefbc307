"""The examples of the docstrings run as they stand."""

import re
from collections.abc import Mapping
from textwrap import dedent
from typing import Any

import pandas as pd
import pytest

from deploy.attention_lens import NAMES
from model import Attention, Trace, many
from tests.cases import cases
from tests.model.tiny import loaded

CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"


def run_examples(of: object, names: Mapping[str, Any]) -> dict[str, Any]:
    """What the code in a docstring leaves behind."""
    space = dict(names)
    examples = CODE.findall(of.__doc__ or "")
    assert examples
    for example in examples:
        exec(compile(dedent(example), f"<{of}>", "exec"), space)
    return space


@cases("of", [many, many.measure, many.patch_all])
def test_a_table_comes_of_each(of) -> None:
    left = run_examples(of, {"model": loaded("house-gpt"), **vars(many)})
    frame = left["frame"]
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) >= 32


def test_traces_come_one_after_another(capsys: pytest.CaptureFixture[str]) -> None:
    run_examples(many.trace_all, {"model": loaded("house-gpt"), **vars(many)})
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(" 0.")[0] for line in printed] == [
        "Tom saw Anna. Anna saw Tom",
        "The cat sat on the mat",
    ]


@cases("of", [Attention.to_dataframe, Trace.to_dataframe])
def test_tables_of_a_trace(of) -> None:
    run_examples(of, {"trace": loaded("house-gpt").trace(TEXT)})


def test_both_are_names_of_the_package() -> None:
    for name in ("measure", "trace_all"):
        assert NAMES[name] == ".model.many"
        assert name in many.__all__
