"""Worked examples as a page: all open, numbers can be changed, links lead to a step."""

import re
from html import escape

import numpy as np
from streamlit.testing.v1 import AppTest

from model.worked import DOCUMENTS, errata, examples
from tests.cases import cases
from tests.pages.reading import control, said, visit
from viz.views.worked.by_hand import worked_example
from viz.views.worked.choice import TOPICS, names_of
from viz.views.worked.inputs import frame, values

NAMES = [example.name for example in examples()]


def step_of(app: AppTest, name: str) -> int:
    return app.selectbox(key=f"step-{name}").value


def result(app: AppTest) -> str:
    """A single number, as the page shows it."""
    return app.metric[0].value


@cases("name", NAMES)
def test_every_example_opens_from_its_link_at_its_last_step(name) -> None:
    last = len(worked_example(name).steps) - 1
    app = visit("worked_examples", example=name, step=str(last + 1))
    assert not app.error
    assert not app.warning
    assert app.selectbox(key="worked-name").value == name
    assert step_of(app, name) == last
    assert app.latex


def test_every_example_stands_under_one_topic() -> None:
    assert [name for topic in TOPICS for name in names_of(topic)] == NAMES


def test_choosing_an_example_and_stepping_are_written_into_the_link() -> None:
    app = visit("worked_examples")
    app.selectbox(key="worked-name").select("houses").run()
    app.button(key="next-houses").click().run()
    assert step_of(app, "houses") == 1
    assert app.query_params == {"example": "houses", "step": "2"}
    app.button(key="back-houses").click().run()
    assert app.query_params == {"example": "houses"}
    assert app.button(key="back-houses").disabled


def test_code_takes_the_formulas_place_and_stays_chosen() -> None:
    app = visit("worked_examples", example="the-cat-sat", step="4")
    assert not app.code
    app.segmented_control(key="reading-the-cat-sat").set_value("Code").run()
    shown, script = (block.value for block in app.code)
    assert shown.splitlines() == [
        "scores = query @ key.T  # (3, 4) @ (4, 3) → (3, 3)",
        "scores[0, 0]  # 2",
    ]
    assert script.splitlines()[-2:] == [
        "scores = query @ key.T",
        "print(torch.as_tensor(scores).tolist())",
    ]
    app.selectbox(key="step-the-cat-sat").set_value(5).run()
    assert not app.code
    assert "has no code" in " ".join(part.value for part in app.caption)
    app.selectbox(key="worked-name").select("layer-norm-by-hand").run()
    assert app.code[0].value.splitlines() == ["mean = x.mean()  # one number", "mean  # 5"]
    app.segmented_control(key="reading-layer-norm-by-hand").set_value("Formula").run()
    assert not app.code


def test_the_style_and_the_cell_of_the_code_are_chosen_and_the_style_stays() -> None:
    app = visit("worked_examples", example="the-cat-sat", step="4")
    app.segmented_control(key="reading-the-cat-sat").set_value("Code").run()
    app.segmented_control(key="code-style-the-cat-sat-3").set_value("einsum").run()
    control(app, "Row").set_value(2).run()
    control(app, "Column").set_value(1).run()
    step = worked_example("the-cat-sat").steps[3]
    assert app.code[0].value.splitlines() == [
        'scores = torch.einsum("qd,kd->qk", query, key)  # (3, 4), (3, 4) → (3, 3)',
        f"scores[2, 1]  # {step.result[2, 1]:g}",
    ]
    assert "q query" in said(app)
    assert "d dimension" in said(app)
    app.button(key="next-the-cat-sat").click().run()  # scaled: one number after another
    assert "own in einsum" in said(app)
    assert app.code[0].value.startswith("scaled = scores / 4**0.5")
    app.button(key="next-the-cat-sat").click().run()
    app.button(key="next-the-cat-sat").click().run()
    app.button(key="next-the-cat-sat").click().run()
    assert "torch.einsum" in app.code[0].value


def test_changing_a_number_changes_the_result_and_the_notes_come_back() -> None:
    app = visit("worked_examples", example="gpt-2-parameters", step="5")
    before = result(app)
    assert before == "163,009,536"
    app.number_input(key="number-gpt-2-parameters-layers-0").set_value(11).run()
    assert result(app) != before
    assert step_of(app, "gpt-2-parameters") == 4
    app.button(key="notes-gpt-2-parameters").click().run()
    assert result(app) == before
    assert app.number_input(key="number-gpt-2-parameters-layers-1").value == 12


def test_own_numbers_are_not_held_against_the_notes() -> None:
    app = visit("worked_examples", example="layer-norm-by-hand", step="5")
    quoted = [text.value.replace("\\", "") for text in app.caption]
    notes = worked_example("layer-norm-by-hand").steps[4].notes
    assert f"{notes.source}: “{notes.quotation}”" in quoted
    assert notes.erratum in said(app)
    app.number_input(key="number-layer-norm-by-hand-epsilon-0").set_value(0.5).run()
    assert notes.erratum not in said(app)
    assert not app.exception


def test_numbers_that_do_not_fit_get_a_sentence_and_stay() -> None:
    app = visit("worked_examples", example="four-classes-agree")
    app.number_input(key="number-four-classes-agree-heads-0").set_value(3).run()
    assert not app.exception
    assert {"3", "4\\."} <= {*app.info[0].value.split()}
    assert app.number_input(key="number-four-classes-agree-heads-0").value == 3
    app.number_input(key="number-four-classes-agree-heads-0").set_value(4).run()
    assert not app.info


def test_numbers_outlast_a_look_at_another_example() -> None:
    app = visit("worked_examples", example="gpt-2-parameters", step="5")
    app.number_input(key="number-gpt-2-parameters-layers-0").set_value(11).run()
    changed = result(app)
    app.selectbox(key="worked-name").select("sliding-windows").run()
    app.selectbox(key="worked-name").select("gpt-2-parameters").run()
    app.selectbox(key="step-gpt-2-parameters").set_value(4).run()
    assert result(app) == changed


@cases("name", NAMES)
def test_a_table_of_inputs_gives_back_what_it_shows(name) -> None:
    for item in worked_example(name).inputs:
        if item.value.ndim:
            shown = frame(item, item.value)
            assert np.array_equal(values(shown, item), item.value)
            shown = shown.astype(object)
            shown.iloc[0, 0] = None
            assert np.isnan(values(shown, item).flat[0])
            assert np.isnan(values(frame(item, values(shown, item)), item).flat[0])


@cases("name", ("no *such* one", "houses"))
def test_a_link_to_no_example_gets_a_sentence(name) -> None:
    told = said(visit("worked_examples", example=name)).replace("\\", "")
    assert ("“no *such* one”" in told) == (name != "houses")


@cases(
    "step, opened",
    [("0", 0), ("99", 8), ("1000", 0), ("-1", 0), ("two", 0), ("1e3", 0), ("²", 0), ("", 0)],
)
def test_a_step_that_there_is_not_opens_the_last_one_and_no_number_the_first(step, opened) -> None:
    app = visit("worked_examples", example="the-cat-sat", step=step)
    assert step_of(app, "the-cat-sat") == opened


def test_every_erratum_is_told_and_leads_to_its_step() -> None:
    app = visit("worked_examples", show="Errata", example="houses")
    shown = "".join(html.proto.body for html in app.get("html"))
    assert shown.count("<article>") == len(errata())
    for erratum in errata():
        for words in (erratum.quotation, erratum.why, worked_example(erratum.example).title):
            assert escape(words) in shown
    told = re.findall(r"<article>.*?</article>", shown)
    of_example = [one for one in errata() if one.example == "houses"]
    assert of_example
    for erratum, article in zip(of_example, told, strict=False):  # those of the open example first
        assert escape(erratum.why) in article


def test_errata_stand_in_no_row_until_their_link_is_followed() -> None:
    app = visit("worked_examples", example="layer-norm-by-hand", step="5")
    assert control(app, "Show").options == ["Step by step", "Code that fails"]
    assert [
        one
        for one in app.get("html")
        if "/worked_examples" in one.proto.body or "Errata" in one.proto.body
    ]
    assert "Errata" in control(visit("worked_examples", show="Errata"), "Show").options


def test_what_the_notes_are_is_said_once_after_their_errata() -> None:
    app = visit("worked_examples", show="Errata")
    told = "".join(text.value for text in app.markdown).replace("\\", "")
    for document in DOCUMENTS:
        assert told.count(document.title) == 1
    control(app, "Show").set_value("Step by step").run()
    assert "show" not in app.query_params
    assert app.latex


def test_the_other_pages_keep_parameters_that_are_not_the_views() -> None:
    app = visit("positions", example="houses", text="the old house")
    assert app.query_params["example"] == "houses"
    assert app.query_params["text"] == "the old house"
