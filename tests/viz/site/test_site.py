"""The site: its runs are the model's own, its pages ask for nothing, what a course says is shown, not run."""

import base64
import gzip
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from safetensors.numpy import load_file, save

from model import Intervention, Trace, load_model
from model.trace.records import Attention
from tests.model.hub_models import saved
from viz.command.command import main
from viz.explorer.packing import words
from viz.site.build import one_file, site_files, write_lesson, write_site
from viz.site.course import Course, course_of, read_course
from viz.site.model.parts import MODELS
from viz.site.pages import json_of

NAME = "A repeated name"
INTERVENTIONS = {
    "": Intervention(),
    "mask": Intervention(mask="none"),
    "scale": Intervention(scale=1.0),
    "positions": Intervention(positions=False),
    "decoder.1.self-7": Intervention(ablated=frozenset({("decoder.1.self", 7)})),
}
HOSTILE = "</script><script>alert(1)</script><!--<script> \" onload='alert(2)' & é"
LARGEST_PAGE, LARGEST_SITE = (
    1_500_000,
    17_000_000,
)  # bytes, without the data of sentences; without models
LARGEST_FIRST = 700_000  # bytes that a first picture waits for
LARGEST_WITH_MODELS = 36_000_000
KINDS = {"floats": "<f4", "bytes": "u1"}


def with_sentences(course: Course, *titles: str) -> Course:
    """The sentences alone: no model runs in the browser."""
    chosen = tuple(x for x in course.sentences if x.title in titles)
    return replace(course, sentences=chosen, in_browser=())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped course with one sentence, as it lies on a disk."""
    folder = tmp_path_factory.mktemp("site")
    write_site(folder, with_sentences(read_course(), NAME))
    return folder


@pytest.fixture(scope="module")
def traces() -> dict[str, Trace]:
    model = load_model("house-gpt")
    (example,) = with_sentences(read_course(), NAME).sentences
    return {
        name: model.trace(example.view.text, intervention=change)
        for name, change in INTERVENTIONS.items()
    }


def block_of(compressed: bytes, before: bytes = b"") -> tuple[Any, bytes]:
    """What a page reads from the bytes of a block: the message, its arrays as arrays; and the bytes of all
    arrays. before: those of the block that it comes after."""
    block = gzip.decompress(compressed)
    start = 4 + int.from_bytes(block[:4], "little")
    arrays = before + np.frombuffer(block, "u1", offset=start).reshape(4, -1).T.tobytes()

    def read(part: Any) -> Any:
        if isinstance(part, list):
            return [read(one) for one in part]
        if not isinstance(part, dict):
            return part
        if part.get("kind") in KINDS and part.keys() == {"kind", "start", "count"}:
            return np.frombuffer(arrays, KINDS[part["kind"]], part["count"], part["start"])
        return {name: read(one) for name, one in part.items()}

    return read(words(block)), arrays


def runs_of(folder: Path, name: str) -> dict[str, Any]:
    """The runs of a sentence, by the switch that is turned."""
    made = {}
    made[""], before = data(folder, f"run-{name}")
    for file in (folder / "data").glob(f"run-{name}.*.js"):
        made[file.stem.split(".", 1)[1]], _ = data(folder, file.stem, before)
    return made


def data(folder: Path, name: str, before: bytes = b"") -> tuple[Any, bytes]:
    return block_of(unwidened(folder, name), before)


def unwidened(folder: Path, name: str) -> bytes:
    """What the scripts of a block bring: of each letter its 15 bits, one after the other."""
    content, pieces = piece_of(folder, name)
    others = (piece_of(folder, f"{name}.{n}") for n in range(1, pieces))
    return content + b"".join(piece for piece, _ in others)


def piece_of(folder: Path, name: str) -> tuple[bytes, int]:
    script = (folder / "data" / f"{name}.js").read_text(encoding="utf-16")
    (given,) = re.findall(r"^attentionSite\.take\((.*)\);$", script, re.DOTALL)
    named, text, count, pieces = json.loads(f"[{given}]")
    assert named == name
    bits = "".join(f"{ord(letter) - 0x3000:015b}" for letter in text)
    return bytes(int(bits[at : at + 8], 2) for at in range(0, 8 * count, 8)), pieces


def assert_same(layer: Mapping[str, Any], attention: Attention) -> None:
    """The numbers of a message are those of a record, and give its weights."""
    for name in ("query", "key", "value", "output"):
        assert layer[name].tobytes() == np.ascontiguousarray(getattr(attention, name)).tobytes()
    assert layer["scale"] == attention.scale
    heads, queries, keys = attention.sizes
    vectors = {name: layer[name].reshape(heads, -1, layer["width"]) for name in ("query", "key")}
    scores = vectors["query"] @ vectors["key"].swapaxes(1, 2) * np.float64(layer["scale"])
    if layer["band"] is not None:
        before, after = layer["band"]
        away = np.arange(keys) - np.arange(queries)[:, None]
        scores = np.where((away < -before) | (away > after), -np.inf, scores)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    weights = shares / shares.sum(-1, keepdims=True)
    assert np.abs(weights - attention.weights()).max() < 1e-5


def test_every_recorded_run_is_the_models_own_bit_for_bit(
    site: Path, traces: dict[str, Trace]
) -> None:
    runs = runs_of(site, "a-repeated-name")
    assert runs.keys() == traces.keys()
    for name, trace in traces.items():
        assert [one["layer"]["name"] for one in runs[name]["layers"]] == [
            one.name for one in trace.attention
        ]
        for message, attention in zip(runs[name]["layers"], trace.attention, strict=True):
            assert_same(message["layer"], attention)
            assert message["check"] == trace.check()
            if name:
                assert_same(message["baseline"], traces[""].find(attention.name))
            else:
                assert message["baseline"] is None


def test_what_stands_beside_a_run_is_of_that_run(site: Path, traces: dict[str, Trace]) -> None:
    runs = runs_of(site, "a-repeated-name")
    for name, trace in traces.items():
        run = runs[name]
        assert [token for _, token in run["tokens"]] == [token.id for token in trace.tokens]
        logits = trace.prediction.after(-1).astype(np.float64)  # type: ignore[union-attr]
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        likeliest = max(row["after"] for row in run["outcome"]["full"]["rows"])
        assert likeliest == pytest.approx(shares.max(), rel=1e-5)
        assert run["outcome"]["full"]["changed"] == bool(name)


def test_the_weights_that_all_sentences_share_are_the_models(site: Path) -> None:
    shared = data(site, "weights-house-gpt")[0]["weights"]
    named = dict(load_model("house-gpt").module.named_parameters())
    assert len(shared) == 4
    for layer in range(4):
        weight = named[f"decoder.blocks.{layer}.self_attention.output.weight"]
        output = weight.detach().numpy()
        assert shared[f"decoder.{layer}.self"].tobytes() == output.tobytes()


def test_two_folders_of_one_name_keep_their_weights_and_tell_no_path(tmp_path: Path) -> None:
    folders = [tmp_path / ("a-long-name-of-a-run-" * 4) / run / "step 1" for run in "ab"]
    for number, folder in enumerate(folders):
        shutil.copytree(saved("llama"), folder)
        weights = load_file(folder / "model.safetensors")
        with (folder / "model.safetensors").open("wb") as file:
            file.write(save({name: one * (1 + number / 8) for name, one in weights.items()}))
    course = course_of(
        {
            "sentence": [{"text": "the cat", "model": str(folder)} for folder in folders],
            "pages": ["explore"],
        }
    )
    made = tmp_path / "site"
    write_site(made, replace(course, in_browser=()))
    page = (made / "index.html").read_text(encoding="utf-8")
    named = re.findall(r'"weights": ?"(weights-[^"]+)"', page)
    assert len({*named}) == len(folders)
    for folder, name in zip(folders, named, strict=True):
        shared = data(made, name)[0]["weights"]["decoder.0.self"]
        own = load_file(folder / "model.safetensors")["model.layers.0.self_attn.o_proj.weight"]
        assert {shared.tobytes()} <= {own.tobytes(), np.ascontiguousarray(own.T).tobytes()}
    for file in filter(Path.is_file, made.rglob("*")):
        is_data = file.parent.name == "data"
        said = gzip.decompress(unwidened(made, file.stem)) if is_data else file.read_bytes()
        assert b"a-long-name-of-a-run" not in said


class Elements(HTMLParser):
    """The elements of a page, each with its attributes, and the text of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_no_page_names_a_resource_elsewhere_and_each_forbids_them(site: Path) -> None:
    for file in site.glob("*.html"):
        elements = Elements(file.read_text(encoding="utf-8")).found
        policy = next(one["content"] for tag, one in elements if "http-equiv" in one)
        assert "default-src 'none'" in str(policy)
        for tag, attributes in elements:
            for name in ("src", "href", "action", "srcset", "data"):
                address = attributes.get(name) or ""
                assert not re.match(r"(?i)\s*(https?:)?//", address), (file.name, tag, address)
                if address and (name == "src" or tag == "link"):
                    assert address.startswith("data:") or (site / address).is_file()
    for style in (site / "site.css").read_text(), (site / "site.js").read_text():
        assert not re.search(r"(?i)(url\(|@import|src=|import)\s*[\"'(]*\s*(https?:)?//", style)


def test_a_page_is_light_without_the_data_of_sentences(site: Path) -> None:
    shared = sum((site / name).stat().st_size for name in ("site.css", "site.js", "katex.js"))
    pages = {file.name: shared + file.stat().st_size for file in site.glob("*.html")}
    assert pages.keys() == {
        "index.html",
        "walk.html",
        "worked.html",
        "glossary.html",
        "lesson.html",
    }
    assert max(pages.values()) <= LARGEST_PAGE
    first = ("index.html", "site.css", "site.js", "data/run-a-repeated-name.js")
    assert sum((site / name).stat().st_size for name in first) <= LARGEST_FIRST


@pytest.mark.slow
def test_the_whole_site_fits_and_the_shipped_lesson_opens_all_that_it_names() -> None:
    course = read_course()
    files = dict(site_files(replace(course, in_browser=MODELS)))
    models = {name for name in files if name.startswith(("data/model-", "data/vocabulary"))}
    assert {f"data/model-{name}.js" for name in MODELS} | {"data/vocabulary.js"} <= models
    assert sum(len(one) for name, one in files.items() if name not in models) <= LARGEST_SITE
    assert sum(map(len, files.values())) <= LARGEST_WITH_MODELS
    assert sum(part.minutes for part in course.lesson) == 90
    lesson = Elements(files["lesson.html"].decode()).found
    opened = [one["href"] for tag, one in lesson if tag == "a" and "data-to" not in one]
    assert len(opened) == len(course.lesson)
    for part, address in zip(course.lesson, opened, strict=True):
        assert f"change={part.change}" in str(address) or not part.change
        assert str(address).partition("#")[0] in files
    ids = {
        one["id"]
        for name in files
        if name.endswith(".html")
        for _, one in Elements(files[name].decode()).found
        if one.get("id")
    }
    assert {f"{part.page}-{part.at}" for part in course.lesson if part.at} <= ids


def test_a_page_has_a_box_only_where_a_model_runs_in_the_browser(site: Path) -> None:
    assert b"readonly></textarea>" in (site / "index.html").read_bytes()
    course = course_of(
        {"sentence": [{"text": "m t k", "model": "induction"}], "in_browser": ["induction"]}
    )
    files = dict(site_files(course))
    assert "data/model-induction.js" in files
    assert "data/vocabulary.js" not in files, "it has a list of words of its own"
    for name in ("index.html", "walk.html"):
        assert b"></textarea>" in files[name]
        assert b"readonly" not in files[name]
        assert b"wasm-unsafe-eval" in files[name]
    assert b"<textarea" not in files["glossary.html"]


def test_the_folder_is_a_static_space_as_it_is(site: Path) -> None:
    _, front, rest = (site / "README.md").read_text(encoding="utf-8").split("---\n")
    facts = yaml.safe_load(front)
    course = read_course()
    assert (facts["sdk"], facts["title"]) == ("static", course.title)
    assert (site / facts["app_file"]).is_file()
    assert facts["models"] == []  # house-gpt is none of the hub's
    assert course.introduction in rest


def test_what_the_shipped_lesson_says_of_heads_is_so() -> None:
    model = load_model("house-gpt")
    texts = {one.title: one.view.text for one in read_course().sentences}
    copied = model.trace(texts[NAME]).find("decoder.1.self").weights(7)
    assert f"{copied[12, 1]:.2f}" == "0.89"
    trace = model.trace(texts["The word before"])
    before = {
        (attention.layer, head): np.diagonal(attention.weights(head), -1).mean()
        for attention in trace.attention
        for head in range(attention.heads)
    }
    assert sorted(before, key=lambda head: before[head])[-2:] == [(0, 5), (0, 2)]


def test_facts_in_a_page_end_no_script_and_are_read_as_they_were() -> None:
    facts = {"text": f"</script><!-- & {HOSTILE}"}
    written = json_of(facts)
    assert not {*"<>&"} & {*written}
    assert json.loads(written) == facts


@pytest.mark.slow
def test_hostile_words_of_a_course_are_shown_and_change_no_page(tmp_path: Path) -> None:
    words_of = {"title": HOSTILE, "text": HOSTILE, "look_for": HOSTILE}
    part = {"minutes": 3, "title": HOSTILE, "ask": HOSTILE, "expect": HOSTILE, "page": "explore"}
    course = course_of(
        {
            "title": HOSTILE,
            "introduction": HOSTILE,
            "pages": ["explore", "walk", "lesson"],
            "models": ["stories"],
            "sentence": [words_of | {"model": "house-gpt"}],
            "part": [part | {"sentence": HOSTILE, "at": HOSTILE}],
        }
    )
    tame = replace(course, title="a", introduction="a")
    for page in (*dict(site_files(course)).items(), ("one.html", one_file(course))):
        name, content = page
        if not name.endswith(".html"):
            continue
        elements = Elements(content.decode()).found
        assert not any(attribute.startswith("on") for _, one in elements for attribute in one)
        scripts = [one for tag, one in elements if tag == "script"]
        # Facts and a script; where a sentence is shown, one that calls for its run. In one file KaTeX, and
        # blocks of data: a run and four of its switches, its weights, three models and a vocabulary.
        assert len(scripts) == {"lesson.html": 2, "one.html": 13}.get(name, 3)
    facts = re.findall(r'id="site">(.*?)</script>', one_file(tame).decode())
    assert json.loads(facts[0])["sentences"][0]["text"] == HOSTILE


def test_one_file_holds_the_same_data_as_a_folder(site: Path, tmp_path: Path) -> None:
    file = tmp_path / "lesson.html"
    write_lesson(file, with_sentences(read_course(), NAME))
    page = file.read_text(encoding="utf-8")
    for name in ("run-a-repeated-name", "run-a-repeated-name.mask", "weights-house-gpt"):
        (text,) = re.findall(rf'id="data-{name}">([^<]*)<', page)
        assert base64.b64decode(text) == unwidened(site, name)
    elements = Elements(page).found
    assert not [one for tag, one in elements if tag == "link" and one["rel"] != "icon"]
    sources = [one["src"] or "" for tag, one in elements if "src" in one and tag != "img"]
    assert sources == []
    first = re.search(r'<main data-page="(\w+)"', page)
    assert first[1] == "lesson"


@pytest.mark.slow
def test_a_sentence_without_a_head_opens_on_its_last_tokens_largest_weight() -> None:
    course = course_of({"sentence": [{"text": "The cat sat on the mat"}], "pages": ["explore"]})
    files = dict(site_files(course))
    facts = re.findall(r'id="site">(.*?)</script>', files["index.html"].decode())
    (sentence,) = json.loads(facts[0])["sentences"]
    trace = load_model("house-gpt").trace("The cat sat on the mat")
    last = trace.attention[-1]
    assert sentence["place"] == last.name
    row = last.weights(0)[-1]
    assert (sentence["query"], sentence["key"]) == (len(row) - 1, int(row.argmax()))


@pytest.mark.parametrize(("content", "sentence"), [
    ({"titel": "x"}, "no entry 'titel'"),
    ({"title": 3}, "'title' is '3'"),
    ({"pages": ["home"]}, "'pages' is 'home'"),
    ({"in_browser": ["minilm"]}, "not 'minilm'"),
    ({"in_browser": "stories"}, "'in_browser' is 'stories'"),
    ({"pages": []}, "'pages' is"),
    ({"models": ["minilm-of-nobody"]}, "add a \\[\\[sentence\\]\\]"),
    ({"sentence": [{"title": "x"}]}, "needs 'text'"),
    ({"sentence": [{"text": " "}]}, "Sentence 1: 'text'"),
    ({"sentence": [{"text": "a", "cell": [-5, 0]}]}, "'cell' is '-5'"),
    ({"sentence": [{"text": "a", "cell": [True, 0]}]}, "'cell' is 'True'"),
    ({"sentence": [{"text": "a", "head": ["decoder.1.self", -1]}]}, "'head' is '-1'"),
    ({"sentence": ["a"]}, "Sentence 1 is no table"),
    ({"sentence": "a"}, "'sentence' is 'a'"),
    ({"sentence": [{"text": "a", "head": ["x"]}]}, "Sentence 1: 'head' is"),
    ({"part": [{"minutes": 0, "title": "x"}]}, "Part 1: 'minutes' is '0'"),
    ({"part": [{"minutes": 5, "title": "x", "sentence": "?"}]}, "no sentence with the title"),
    ({"part": [{"minutes": 5, "title": "x", "change": "all"}]}, "'change' is 'all'"),
])  # fmt: skip
def test_a_course_that_is_none_is_refused_with_a_sentence(
    content: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        course_of(content)


def test_a_head_or_cell_that_a_sentence_has_not_is_refused() -> None:
    for wrong in ({"head": ["decoder.1.self", 8]}, {"cell": [40, 0]}, {"cell": [1, 40]}):
        course = course_of({"sentence": [{"text": "The cat sat", **wrong}]})
        with pytest.raises(ValueError, match=r"has (head|query|key) 0 to"):
            dict(site_files(course))


def test_the_command_writes_a_course_and_refuses_a_file_that_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = tmp_path / "course.toml"
    course.write_text('pages = ["glossary"]\n[[sentence]]\ntext = "m t k"\nmodel = "induction"\n')
    main(["site", str(tmp_path / "out"), "--course", str(course)])
    assert "index.html" in capsys.readouterr().err
    assert b"Softmax" in (tmp_path / "out" / "index.html").read_bytes()
    with pytest.raises(SystemExit):
        main(["site", str(tmp_path / "out"), "--course", str(course), "--in-browser", "minilm"])
    assert "minilm" in capsys.readouterr().err
    for damaged in ("title = " + "[" * 20_000, "#" * 3_000_000):
        course.write_text(damaged)
        with pytest.raises(SystemExit) as end:
            main(["site", str(tmp_path / "out"), "--course", str(course)])
        assert end.value.code == 2
    course.write_text("title = ")
    with pytest.raises(SystemExit) as end:
        main(["site", str(tmp_path / "out"), "--course", str(course)])
    assert end.value.code == 2
    assert "as TOML" in capsys.readouterr().err
