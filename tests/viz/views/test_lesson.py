"""The lesson: 90 minutes, one source for app, site and file, and every link opens what it says."""

import html
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest

from model import load_model
from model.nn.places import head_label
from model.worked import examples
from model.worked.proofreading import of_figures
from tests.pages.reading import control, visit
from viz.site.course import read_course
from viz.state.link import View, address, from_link
from viz.state.presets import EXAMPLES
from viz.views.for_a_class.lesson import lesson_page, parts


def test_the_lesson_takes_90_minutes() -> None:
    assert parts()[0].begin == 0
    assert all(one.end == following.begin for one, following in pairwise(parts()))
    assert parts()[-1].end == 90
    assert len({part.title for part in parts()}) == len(parts()) == 10


def test_a_link_of_the_lesson_opens_what_it_says(subtests: pytest.Subtests) -> None:
    for part in parts():
        with subtests.test(part=part.title):
            written = dict(parse_qsl(urlsplit(address("/", part.link)).query))
            assert written == part.link
            assert written or part.page == "pages/home.py"
            view, problems = from_link(written)
            assert not problems
            app = visit(part.page, **written)
            assert not [one for one in app.warning if "link" in one.value]
            assert not app.error
            opened: View = app.session_state["view"]
            assert (opened.text, opened.model, opened.place, opened.head) == (
                (view.text, view.model, view.place, view.head)
            )
            assert opened.intervention == view.intervention
            assert opened.stage == view.stage
            if "example" in written:
                assert control(app, "Example").value == written["example"]


def test_app_and_site_have_one_lesson() -> None:
    def words(part: object) -> tuple[str, ...]:
        return tuple(getattr(part, name) for name in ("title", "look", "ask", "expect"))

    assert [words(part) for part in parts()] == [words(part) for part in read_course().lesson]
    ends = [part.end - part.begin for part in parts()]
    assert ends == [part.minutes for part in read_course().lesson]


def test_no_part_opens_on_an_erratum() -> None:
    known = {example.name: example for example in examples()}
    opened = [known[part.link["example"]] for part in parts() if "example" in part.link]
    assert opened
    assert not of_figures(opened)


def test_a_link_to_the_usual_view_opens_it_in_a_session_that_has_another() -> None:
    usual = next(part for part in parts() if part.page == "pages/home.py")
    assert from_link(usual.link)[0] == EXAMPLES[0].view == View()
    app = visit("home", text="the old man sat down", head="2")
    app.query_params.clear()
    for name, value in usual.link.items():
        app.query_params[name] = value
    app.run()
    assert app.session_state["view"].text == View().text


def test_the_lesson_to_print_has_each_part_with_its_link() -> None:
    page = lesson_page("https://x.org/").decode()
    assert "A lesson of 90 minutes" in page
    for part in parts():
        assert html.escape(part.title) in page
        assert html.escape(part.expect) in page
        where = "" if part.page == "pages/home.py" else Path(part.page).stem
        assert html.escape(address(f"https://x.org/{where}", part.link)) in page
    assert "<td>85–90</td>" in page
    alone = lesson_page(None).decode()
    assert "<code>" not in alone
    assert "make class" in alone


def test_what_is_expected_is_what_the_model_gives() -> None:
    model = load_model("house-gpt", device="cpu")
    expected = {part.title: part.expect for part in parts()}
    trace = model.trace(View().text)
    (likeliest,) = model.tokenizer.named([int(trace.prediction.after(-1).argmax())])
    row = trace.find("decoder.1.self").weights(7)[-1]
    assert (likeliest.text, trace.tokens[int(row.argmax())].text) == (" Hill", " Hill")
    for title in ("From a sentence to the next word", "One head, step by step"):
        assert f"{row.max():.2f}" in expected[title]
    jobs = next(part for part in parts() if part.title == "Do heads have jobs?")
    view = from_link(jobs.link)[0]
    trace = model.trace(view.text)
    previous = {
        (one.name, head): float(np.diagonal(one.weights(head), -1).mean())
        for one in trace.attention
        for head in range(one.heads)
    }
    other, best = sorted(previous, key=previous.__getitem__)[-2:]
    assert best == (view.place, view.head)
    assert head_label(other) in jobs.expect
