"""The lesson: 90 minutes, and every link opens what it says."""

import html
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest

from model import load_model
from model.nn.places import head_label
from tests.pages.reading import control, shows, visit
from viz.state.link import View, address, from_link
from viz.state.presets import EXAMPLES
from viz.views.for_a_class.lesson import lesson_page, parts


def test_the_lesson_takes_90_minutes() -> None:
    assert sum(part.minutes for part in parts()) == 90
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
            if view.show:
                (row,) = shows(app)
                assert row.value == view.show
            if "example" in written:
                assert control(app, "Example").value == written["example"]


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
    page = lesson_page(tuple(f"https://x.org/{at}?a=1&b=2" for at in range(len(parts())))).decode()
    assert "A lesson of 90 minutes" in page
    for at, part in enumerate(parts()):
        assert part.title in page
        assert html.escape(part.expect) in page
        assert f"https://x.org/{at}?a=1&amp;b=2" in page
    assert "<td>85–90</td>" in page


def test_what_is_expected_of_the_first_head_is_what_the_model_gives() -> None:
    model = load_model("house-gpt", device="cpu")
    expected: dict[str, str] = {}
    for part in parts():
        name = Path(part.page).stem
        expected[name] = expected.get(name, "") + part.expect
    for name in ("Hill", "Reed"):
        trace = model.trace(View().text.replace("Hill", name))
        (likeliest,) = model.tokenizer.named([int(trace.prediction.after(-1).argmax())])
        assert likeliest.text == f" {name}"
        row = trace.find("decoder.1.self").weights(7)[-1]
        assert (int(row.argmax()), trace.tokens[1].text) == (1, f" {name}")
    assert "“Reed”" in expected["home"]
    trace = model.trace(View().text)
    assert f"{trace.find('decoder.1.self').weights(7)[-1].max():.2f}" == "0.89"
    assert "0.89" in expected["home"]
    previous = {
        (one.name, head): float(np.diagonal(one.weights(head), -1).mean())
        for one in trace.attention
        for head in range(one.heads)
    }
    heads = sorted(previous, key=previous.__getitem__)[-2:]
    assert heads == [("decoder.0.self", 5), ("decoder.0.self", 2)]
    for head in heads:
        assert f"{head_label(head)} ({previous[head]:.3f}" in expected["all_heads"]
