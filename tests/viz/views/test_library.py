"""The Library: one list of questions, terms and examples; each is answered, found, and leads somewhere."""

import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.papers.claims import HOLDS, claims
from model.papers.stored import read_stored
from model.worked import errata
from tests.cases import cases
from tests.pages.reading import control, visit
from viz.state.presets import EXAMPLES
from viz.views.glossary.glossary import TERMS
from viz.views.glossary.miniatures import picture, result
from viz.views.library.entries import KINDS, folded, listed, matching
from viz.views.library.questions import questions
from viz.views.library.shelf import SEARCH

ENTRIES = listed("house-gpt")
ANSWERS = {question.words: question.answer for question in questions()}


def names(app: AppTest) -> list[str]:
    """The names of the entries that a page shows, in their order."""
    shown = "".join(html.proto.body for html in app.get("html"))
    return re.findall(r"<h3>(.*?)(?: <small>.*?</small>)?</h3>", shown)


def test_the_list_has_every_question_term_and_example_once_with_a_picture() -> None:
    kinds = {kind: [one for one in ENTRIES if one.kind == kind] for kind in KINDS}
    assert {one.name for one in kinds["Questions"]} == set(ANSWERS)
    assert {one.name for one in kinds["Terms"]} == {one.name for one in TERMS}
    assert {one.name for one in kinds["Examples"]} == {one.title for one in EXAMPLES}
    assert len(ENTRIES) == len(questions()) + len(TERMS) + len(EXAMPLES)
    assert len({one.picture for one in kinds["Examples"]}) == len(EXAMPLES)
    assert all(one.picture and one.words for one in ENTRIES)


def test_the_open_models_examples_stand_first() -> None:
    for model, group in (("stories", "Examples: Stories"), ("minilm", "Examples: MiniLM-L6")):
        assert listed(model)[0].group == group
    assert listed("no-such-model")[0].kind == "Questions"


@cases("words, answer", ANSWERS.items())
def test_an_answer_answers(words, answer) -> None:
    """In one to three sentences of its own; it does not send the reader off to find out."""
    sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z−])", answer)
    assert 1 <= len(sentences) <= 3
    assert 10 <= len(answer.split()) <= 60
    sends = r"(Change|Watch|Choose|Open|Play|Move|Switch|Copy|Follow|Try)\b"
    assert not re.match(sends, sentences[0])


def _numbers(words: str) -> list[float]:
    answer = re.sub(r"(?<=\d),(?=\d{3})", "", ANSWERS[words])
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", answer)]


def test_numbers_of_answers_are_computed() -> None:
    assert _numbers("How many words is a token?")[:2] == [
        1024,
        float(result("words-and-tokens", "Words that fit")),
    ]
    smaller = result("biased-and-unbiased", "How much smaller the unbiased result is, in percent")
    assert _numbers("Biased or unbiased variance?")[1:3] == [round(float(smaller[0]), 1), 4]
    assert _numbers("Biased or unbiased variance?")[3] == round(float(smaller[1]), 1)
    appended, added = _numbers("Why add positions, and not append them?")
    assert [added, appended] == result("added-or-appended", "Parameters of W_Q").tolist()
    beam, greedy = _numbers("What is beam search, beside greedy?")
    assert beam == float(result("beam-beside-greedy", "What a beam of two finds"))
    assert greedy == pytest.approx(float(result("beam-beside-greedy", "What greedy finds")))
    without, with_them = result("residual-gradient", "First layer compared with the last")
    assert _numbers("Why shortcuts?") == [round(without, 8), round(with_them, 1)]
    cosine = result(
        "same-word-two-sentences", "Cosine similarity between the two sentences"
    ).ravel()[-1]
    assert _numbers("Has a word always the same vector?")[-1] == round(float(cosine), 2)
    wide = result("how-wide-inside", "Parameters of the layer")
    assert _numbers("Why is it four times as wide?")[1] == round(float(wide[2]) / 1e6, 1)
    kept = result("grouped-queries", "Numbers kept for each token")
    assert kept[0] / kept[1] == 3  # "keeps a third"
    grown = result("memory-and-operations", "Growth when the length doubles")
    assert np.max(grown) == 4
    assert _numbers("Which errors do the notes contain?")[0] == len(errata())
    circuits = sum(one.title.startswith("Circuit") for one in EXAMPLES)
    assert circuits == 11  # "eleven"


def test_what_is_said_of_papers_was_answered_by_the_models() -> None:
    hold = {
        model: sum(one.verdict == HOLDS for one in results)
        for model, (_, results) in read_stored().items()
    }
    told = _numbers("Which results of papers hold in this model?")
    models = ("smollm2-135m-instruct", "stories", "house-gpt")
    assert told[:2] + told[3:] == [len(claims()), *(hold[model] for model in models)]
    for model, numbers in (
        ("induction", "from 0.11 to 0.74 between steps 300 and 400"),
        ("stories", "from 0.34 to 0.80 between steps 1,400 and 1,600"),
    ):
        (forming,) = [one for one in read_stored()[model][1] if one.name == "forming"]
        assert numbers in forming.reason
        assert numbers in ANSWERS["How does a head form?"]


def test_an_entry_is_found_by_numbers_signs_and_other_names() -> None:
    for words, name in [
        ("10000", "Why 10,000?"),
        ("10,000", "Why 10,000?"),
        ("-1e20", "Why −∞, and not 0?"),
        ("−1e20", "Why −∞, and not 0?"),
        ("nucleus", "Top-p"),
        ("Tom Hill", "A repeated name"),
    ]:
        assert name in [one.name for one in matching(ENTRIES, words)], words
    assert matching(ENTRIES, "mask")[0].name.casefold().count("mask")
    assert matching(ENTRIES, "qqqq") == ()
    assert len(matching(ENTRIES, " ")) == len(ENTRIES)
    assert folded("Ré −1,000") == "re -1000"


def test_typing_filters_and_a_segment_shows_one_kind() -> None:
    app = visit("library")
    assert len(names(app)) == len(ENTRIES)
    app.text_input(key=SEARCH).set_value("induction head").run()
    assert not app.exception
    assert "Induction head" in names(app)
    assert len(names(app)) < 12
    app.text_input(key=SEARCH).set_value("<b>*x*").run()
    assert not app.exception
    assert names(app) == []
    app.text_input(key=SEARCH).set_value("").run()
    control(app, "Show").set_value("Terms").run()
    assert sorted(names(app)) == sorted(one.name for one in TERMS)
    assert app.query_params["show"] == "Terms"


def test_a_link_opens_the_list_at_its_entry() -> None:
    for parameter, name in (("term", "Softmax"), ("term", "RoPE"), ("example", "The word after")):
        app = visit("library", **{parameter: name})
        first = names(app)[0]
        assert first == ("Rotary positions" if name == "RoPE" else name)
        assert len(names(app)) == 1 + len(ENTRIES)
    odd = "".join(
        html.proto.body for html in visit("library", term="<b>flux</b> " * 40).get("html")
    )
    assert "&lt;b&gt;flux" in odd
    assert "<b>flux" not in odd


def test_a_question_has_the_picture_of_the_term_it_is_about() -> None:
    known = {one.name: picture(one) for one in TERMS}
    for question in questions():
        assert question.about in known
