"""The page of the model as code: its listing, where its lines lead, its check, and what can be taken away."""

import re
import shutil
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from model.code.script import printed
from tests.cases import cases
from tests.model.hub_models import saved
from tests.pages.reading import own, said, visit
from viz.state.navigation import PAGES
from viz.views.code.views import coloured

TEXTS = {
    "house-gpt": "Tom Hill saw a red ball",
    "minilm": "the animal was too tired",
    "translate-en-fr": "the black cat sleeps",
}


def page_html(model: str, text: str, **more: str) -> str:
    app = visit("model_as_code", model=model, text=text, **more)
    return "".join(str(part.proto.body) for part in app.get("html"))


def test_each_line_that_computes_leads_to_the_page_with_its_numbers() -> None:
    shown = page_html("house-gpt", TEXTS["house-gpt"], place="decoder.2.self", head="3")
    links = re.findall(r'class="part-(\w+)"><code> *<a href="([^"]*)"[^>]*>(.*?)</a>', shown)
    pages = {entry.address for entry in PAGES}
    led = {}
    for part, link, _ in links:
        address = urlsplit(link.replace("&amp;", "&"))
        assert address.path.removeprefix("/") in pages
        led[part] = address.path
        assert parse_qs(address.query)["place"] == ["decoder.2.self"]
        assert parse_qs(address.query)["text"] == [TEXTS["house-gpt"]]
    assert led["norm"] == "/layer_norm"
    assert led["attention"] == "/"
    assert led["logits"] == "/prediction"
    (scores,) = [link for _, link, code in links if code.startswith("scores =")]
    assert "stage=scores" in scores
    assert "<span>(8, 6, 6)</span>" in shown


def test_lines_lead_nowhere_where_a_link_cannot_carry_the_view() -> None:
    app = visit("model_as_code", text=TEXTS["house-gpt"], second_text="a ball " * 200)
    shown = "".join(str(part.proto.body) for part in app.get("html"))
    assert 'class="listing"' in shown
    assert "<a " not in re.findall('class="listing".*</ol>', shown)[0]
    assert "line leads to" not in said(app)
    assert "line leads to" in said(visit("model_as_code", text=TEXTS["house-gpt"]))


@cases("place", ["encoder.0.self", "decoder.1.self", "decoder.1.cross"])
def test_shapes_of_two_stacks_are_those_of_the_chosen_layer(place) -> None:
    text = TEXTS["translate-en-fr"]
    shown = page_html("translate-en-fr", text, place=place)
    attention = own("translate-en-fr").trace(text).find(place)
    (scores,) = re.findall(r"scores = .*?<span>(.*?)</span>", shown)
    assert scores == str(attention.weights(0).shape).replace("(", "(4, ")


@cases("model", TEXTS)
def test_the_page_checks_the_listing_and_says_what_the_script_prints(model) -> None:
    app = visit("model_as_code", model=model, text=TEXTS[model])
    (off,) = re.findall(r"at most (\S+) of the", said(app))
    assert float(off.replace("−", "-")) <= 1e-5
    trace = own(model).trace(TEXTS[model])
    assert printed(own(model), trace) in [code.value for code in app.code]


def test_weights_too_large_for_a_download_are_written_by_a_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("viz.views.code.views.DOWNLOADED", 0)
    app = visit("model_as_code", text=TEXTS["house-gpt"])
    assert "python -m model.code house-gpt SENTENCE" in [code.value for code in app.code]
    assert [button.label for button in app.get("download_button")] == ["Script"]


def test_the_command_can_be_pasted_where_the_name_has_a_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(saved("llama"), tmp_path / "my model")
    monkeypatch.setattr("viz.views.code.views.DOWNLOADED", 0)
    app = visit("model_as_code", model=str(folder), text="the cat saw the dog")
    assert f"python -m model.code '{folder}' SENTENCE" in [code.value for code in app.code]


def test_a_listing_that_does_not_give_the_models_numbers_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("model.code.check.largest_difference", lambda *given: 0.2)
    text = "Tom Hill saw a ball that differs"  # the check of a text is made once
    assert "House GPT" in visit("model_as_code", text=text).info[0].value


def test_the_check_of_a_text_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[object] = []
    monkeypatch.setattr(
        "model.code.check.largest_difference", lambda *given: (checked.append(given), 1e-6)[1]
    )
    for text, count in (("Anna saw a ball", 1), ("Anna saw a ball", 1), ("Anna saw a house", 2)):
        assert "by at most 1e−6" in said(visit("model_as_code", text=text))
        assert len(checked) == count


def test_a_model_that_cannot_be_written_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: object) -> None:
        raise ValueError("its tokens attend to a window of the last ones only")

    monkeypatch.setattr("model.nn.transformer.Transformer.named_weights", refuse)
    app = visit("model_as_code", text=TEXTS["house-gpt"])
    assert "last ones only" in app.info[0].value


def test_words_and_texts_of_a_line_have_their_colours() -> None:
    line = coloured('    return x @ w["a<b"].T  # for two')
    assert line == (
        '    <b class="word">return</b> x @ w[<b class="text">&quot;a&lt;b&quot;</b>].T  '
        '<b class="note"># for two</b>'
    )
