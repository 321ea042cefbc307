"""What the notes print, in a table: their own figures, the errata marked, the right ones under them."""

import re

import numpy as np

from model.worked import DOCUMENTS, examples
from model.worked.example import Step
from model.worked.notes import Printed
from tests.cases import cases
from viz.views.worked.by_hand import printed_table

SOURCE = DOCUMENTS[0].at("a part")
PRINTED = [
    (example.name, step)
    for example in examples()
    for step in example.steps
    if step.notes is not None
]


@cases("name, step", PRINTED)
def test_every_printed_figure_stands_there_and_just_the_errata_are_marked(name, step) -> None:
    table = printed_table(step)
    cells = re.findall(r"<td( class=\"erratum\")?>(?:<s>)?([^<]*)", table)[
        1:
    ]  # the corner is empty
    assert [figure or "_" for _, figure in cells] == list(step.notes.figures)
    assert [bool(erratum) for erratum, _ in cells] == list(step.differing.ravel())


def test_under_an_erratum_stands_the_number_of_the_arithmetic() -> None:
    step = Step(
        "x", "x", np.array([0.5, 2.0]), columns=("a", "b"), notes=Printed(".5 3", SOURCE, "")
    )
    assert '<td class="erratum"><s>3</s><span>2</span></td>' in printed_table(step)


def test_under_an_erratum_stand_as_many_digits_as_the_notes_print() -> None:
    notes = Printed("0.22313016014", SOURCE, "")
    step = Step("x", "x", np.array([0.22313016014843]), columns=("a",), notes=notes)
    assert "<s>0.22313016014</s><span>0.22313016015</span>" in printed_table(step)


def test_labels_are_text_and_never_tags() -> None:
    step = Step("x", "x", np.array([1.0]), columns=("<b>a</b>",), notes=Printed("1", SOURCE, ""))
    assert "<b>" not in printed_table(step)
    assert "&lt;b&gt;a&lt;/b&gt;" in printed_table(step)


def test_nothing_printed_gives_no_table() -> None:
    assert printed_table(Step("x", "x", np.array(1.0))) == ""
