"""Heads over a corpus: a folder that is opened, numbers beside a sentence, an own text."""

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from model.profile import open_profile
from model.profile.shipped import shipped_profiles
from tests.model.profile.synthetic import small_profile
from tests.pages.reading import PAGES, choose, control, own, press, said, tables, visit
from viz.views.corpus.choice import OWN
from viz.views.corpus.views import OTHERS

FOLDER = "Open a folder that the command has written"


def test_a_folder_is_opened_and_a_sentence_has_its_place_among_all_weights(tmp_path: Path) -> None:
    profile = small_profile()
    profile.save(tmp_path / "mine")
    cell = {"place": "decoder.1.self", "head": "3", "query": "5", "key": "1"}
    app = visit("all_heads", model="stories", show=OWN, **cell)
    assert "`python -m model.profile" in said(app)
    control(app, FOLDER).set_value(str(tmp_path / "none")).run()
    assert "folder none" in said(app)
    choose(app, FOLDER, str(tmp_path / "mine"))
    assert control(app, "Profile").value == "folder mine"
    frame = tables(app)[0]
    assert frame["Previous token"].to_numpy(float) == pytest.approx(
        profile.heads["previous"].to_numpy(float)
    )
    kept = {name: app.session_state[name] for name in ("profile", "corpus-folders")}
    app = AppTest.from_file(str(PAGES / "head.py"), default_timeout=120)
    for name, value in ({"model": "stories"} | cell).items():
        app.query_params[name] = value
    for name, value in kept.items():
        app.session_state[name] = value
    app.run()
    words = said(app)
    head, text = ("decoder.1.self", 3), app.text_area[0].value or ""
    weight = float(own("stories").trace(text).find(head[0]).weights(head[1])[5, 1])
    assert f"L1H3 has the weight {weight:.2f}" in words
    (shares,) = re.findall(r"larger than \*\*([\d.]+) to ([\d.]+) %\*\* of the weights", words)
    known = [100 * share for share in profile.percentile(head, weight)]
    assert [float(share) for share in shares] == pytest.approx(known, abs=0.11)
    assert app.get("bidi_component")


def test_a_row_that_attends_to_one_key_has_no_entropy_and_more_than_no_other_row() -> None:
    app = visit("head", model="house-gpt", place="decoder.0.self", head="2", query="0", key="0")
    assert "0.00 nats: more than 0.0 %" in said(app)


def test_a_profile_of_a_checkpoint_colours_the_heads_and_says_that_they_were_others() -> None:
    early = "Induction after 200 steps"
    app = visit("all_heads", model="induction", text="a b c d a b c", show="Over a corpus")
    assert OTHERS not in said(app)
    choose(app, "Profile", early)
    assert OTHERS in said(app)
    profile = open_profile(shipped_profiles()["induction-step-200"])
    assert tables(app)[0]["Induction"].to_numpy(float) == pytest.approx(
        profile.heads["induction"].to_numpy(float)
    )
    forming = open_profile(shipped_profiles()["induction-step-400"])
    formed = open_profile(shipped_profiles()["induction"])
    assert [len(one.labels[one.labels["given"]]) for one in (forming, formed)] == [4, 6]


def test_a_folder_is_not_opened_for_a_visitor_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_FOLDERS", "off")
    app = visit("all_heads", model="stories", show=OWN)
    assert not [box for box in app.text_input if box.label == FOLDER]


def test_a_box_for_files_stands_only_where_files_may_be_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = visit("all_heads", model="stories", show=OWN)
    monkeypatch.setenv("ATTENTION_TRACE_FILES", "off")
    elsewhere = visit("all_heads", model="stories", show=OWN)
    assert len(here.get("file_uploader")) == len(elsewhere.get("file_uploader")) + 1
    assert "drop a small file" in said(here)
    assert "drop a small file" not in said(elsewhere)


def test_an_own_text_is_refused_in_a_sentence_or_measured() -> None:
    app = visit("all_heads", model="stories", show=OWN)
    press(app, "How long will it take?")
    assert "no text yet" in said(app)
    control(app, "Your text").set_value("The cat sat on the mat. " * 50).run()
    press(app, "How long will it take?")
    assert "corpus-start" in [one.key for one in app.button]
