"""Files that leave the page: the same numbers as the trace, nothing fetched, no text that acts."""

import base64
import json
import re
from html.parser import HTMLParser
from itertools import product

import numpy as np
import pytest

from model import Intervention, Model, Trace
from model.analysis.stream.around_heads import AroundHeads
from model.nn.patches import Patch
from model.trace.blocks import largest_of_blocks
from tests.cases import cases
from tests.csv_reading import read_matrix_csv
from tests.model.snippets.snippet_cases import around
from tests.model.tiny import loaded, run, sentence
from viz.explorer.stages import stages
from viz.saving.offline_page import (
    HeadPicture,
    ReportSubject,
    difference_matrix,
    head_picture,
    picture_csv,
    picture_figures,
    report,
    stage_matrix,
    standalone,
)

STAGES = [stage.name for stage in stages(kind="causal", masked=True, leaks=False, scale=1)]
HOSTILE = (
    "</script><script>window.acted=1</script> <img src=x onerror=alert(1)> =1+1 <!--body--> $x$"
)
LINK = "http://127.0.0.1/laboratory?text=%3Cb%3E&scale=1.0"


def pictured(
    changed: Trace,
    baseline: Trace | None,
    place: str,
    stage: str,
    head: int = 1,
    model: Model | None = None,
) -> HeadPicture:
    attention = changed.find(place)

    runs = [run for run in (changed, baseline) if run is not None]
    surroundings = [AroundHeads(model, run, run.find(place)) for run in runs if model is not None]
    return head_picture(
        attention,
        None if baseline is None else baseline.find(place),
        head=head,
        stage=stage,
        queries=[token.text for token in changed.queries_of(attention)],
        keys=[token.text for token in changed.keys_of(attention)],
        around=surroundings,
    )


class Elements(HTMLParser):
    """The tags of a page with their attributes, the text outside scripts, and each script's text."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.cdata_elem == "script":
            self.scripts[-1] += data
        else:
            self.text += data


def drawn(page: bytes) -> list[np.ndarray]:
    """The heatmap of each figure of a page, as its own data says."""
    found = []
    elements = Elements(page)
    kinds = [attributes.get("type") for tag, attributes in elements.tags if tag == "script"]
    for kind, text in zip(kinds, elements.scripts, strict=True):
        if kind == "application/json":
            z = [each for each in json.loads(text)["data"] if each["type"] == "heatmap"][-1]["z"]
            flat = np.frombuffer(base64.b64decode(z["bdata"]), z["dtype"])
            found.append(flat.reshape([int(length) for length in z["shape"].split(",")]))
    return found


@cases("name, stage", product(["gpt", "llama", "bert", "translator"], STAGES))
def test_every_file_of_a_picture_holds_the_numbers_of_the_trace(name, stage) -> None:
    model = loaded(name)
    place = model.attention_names[-1]
    before = run(model)
    after = run(model, Intervention(scale=1.0, hidden=frozenset({1})))
    picture = pictured(after, before, place, stage)
    read = read_matrix_csv(picture_csv(picture))
    pictures = drawn(standalone("x", "", picture_figures(picture)))
    for trace, run_name, shown in zip(
        (before, after), ("baseline", "changed"), pictures, strict=False
    ):
        attention = trace.find(place)
        values = getattr(attention, stage)
        expected = values(1) if callable(values) else values[1]
        hidden = np.zeros(expected.shape, bool)
        if stage in ("masked", "weights") and attention.mask is not None:
            hidden = ~attention.mask
        for given in (shown, read[run_name].values):
            np.testing.assert_array_equal(given[~hidden], expected[~hidden])
            assert np.isnan(given[hidden]).all()
    assert len(pictures) == 3


@cases(
    "name, stage",
    product(
        ["gpt", "llama", "bert", "translator"], ["positions", "norm", "concatenated", "written"]
    ),
)
def test_the_files_of_a_stage_around_the_heads_hold_the_numbers_of_the_trace(name, stage) -> None:
    model = loaded(name)
    before, after = run(model), run(model, Intervention(scale=1.0, hidden=frozenset({1})))
    place = model.attention_names[-1]
    expected = {
        run_name: around((model, trace, trace.find(place)), stage, 1)
        for run_name, trace in {"baseline": before, "changed": after}.items()
    }
    picture = pictured(after, before, place, stage, model=model)
    assert picture.stage.name == stage
    read = read_matrix_csv(picture_csv(picture))
    for run_name, values in expected.items():
        np.testing.assert_allclose(read[run_name].values, values, atol=1e-4)
    apart = expected["changed"] - expected["baseline"]
    np.testing.assert_allclose(read["difference"].values, apart, atol=1e-4)
    alone = pictured(after, None, place, stage, model=model)
    assert set(alone.runs) == ({"before", "after"} if alone.stage.captions else {"unchanged"})
    page = report(ReportSubject("x", after, None, after.find(place), LINK), alone)
    assert len(drawn(page)) == len(alone.runs)


def test_the_difference_is_changed_less_baseline_and_hides_what_neither_run_has() -> None:
    model = loaded("gpt")
    place = model.attention_names[0]
    before, after = (
        trace.find(place) for trace in (run(model), run(model, Intervention(mask="none")))
    )
    weights = difference_matrix(after, before, 1, "weights")
    np.testing.assert_allclose(weights, after.weights(1) - before.weights(1), atol=1e-7)
    future = ~np.tri(len(weights), dtype=bool)
    assert np.isnan(difference_matrix(after, before, 1, "masked")[future]).all()
    same = difference_matrix(before, before, 1, "weights")
    assert (same[~future] == 0).all()
    assert np.isnan(same[future]).all()


def test_one_scale_serves_all_heads_and_both_runs() -> None:
    model = loaded("gpt")
    place = model.attention_names[0]
    before, after = run(model), run(model, Intervention(scale=3.0))
    limits = [pictured(after, before, place, "scaled", head).limits for head in range(3)]
    assert limits[0] == limits[1] == limits[2]
    largest = max(np.abs(after.find(place).scaled(head)).max() for head in range(3))
    assert limits[0]["changed"] == limits[0]["baseline"] == pytest.approx(largest)


def test_a_finite_mask_value_leaves_masked_weights_visible() -> None:
    model = loaded("gpt")
    attention = run(model, Intervention(fill=0.0)).attention[0]
    np.testing.assert_array_equal(stage_matrix(attention, 0, "weights"), attention.weights(0))
    assert np.isnan(stage_matrix(attention, 0, "masked")).any()


def hostile_report() -> bytes:
    model = loaded("minilm")
    intervention = Intervention(hidden=frozenset({1, 2, 3}))
    before, after = (
        model.trace(HOSTILE, intervention=each) for each in (Intervention(), intervention)
    )
    place = model.attention_names[0]
    subject = ReportSubject(
        "MiniLM <b>", after, before, after.find(place), LINK, "Look <i>here</i>."
    )
    return report(subject, pictured(after, before, place, "weights"))


def test_hostile_text_is_text_in_a_report() -> None:
    page = hostile_report()
    elements = Elements(page)
    tags = [tag for tag, _ in elements.tags]
    assert tags.count("script") == 6  # three pictures, Plotly, KaTeX, the page's own
    assert not {"img", "b", "i", "iframe"} & set(tags)
    assert not any(name.startswith("on") for _, given in elements.tags for name in given)
    assert HOSTILE in elements.text
    assert "Look <i>here</i>." in elements.text
    assert page.count(b"window.acted") == 1


def test_a_page_asks_for_nothing() -> None:
    elements = Elements(hostile_report())
    for tag, given in elements.tags:
        assert not {"src", "href", "action"} & given.keys(), tag
    policy = next(given["content"] for _, given in elements.tags if "http-equiv" in given)
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_a_report_says_what_was_run_how_and_how_well_it_checks() -> None:
    model = loaded("gpt")
    place = model.attention_names[1]
    first = model.attention_names[0]
    patch = Patch("gpt", "a dog saw the lion on a tiger", frozenset({("head", first, 1)}))
    cell = (first, 0, 3, 1, 0.25)
    intervention = Intervention(
        scale=1.0, ablated=frozenset({(first, 2)}), weights=frozenset({cell}), patch=patch
    )
    before, after = run(model), run(model, intervention)
    subject = ReportSubject("A tiny GPT", after, before, after.find(place), LINK)
    elements = Elements(report(subject, pictured(after, before, place, "weights")))
    for said in (
        "A tiny GPT",
        after.text,
        "Ran onthe CPU",
        place,
        "scores not scaled; L0H2 off; L0H0: weight 3 → 1 = 0.25; L0H1 from “a dog saw the lion on a tiger”",
        "A counterfactual",
        LINK,
        "loss of the sentence",
        "KL divergence of the next-token prediction",
        "Check:",
    ):
        assert said in elements.text
    latex = next(given["data-latex"] for _, given in elements.tags if "data-latex" in given)
    assert latex is not None
    assert "@" not in latex
    plain = ReportSubject("A tiny GPT", before, None, before.find(place), LINK)
    quiet = Elements(report(plain, pictured(before, None, place, "scores"))).text
    assert "counterfactual" not in quiet
    assert re.search(r"Changed\s*nothing", quiet)


def test_a_run_that_nothing_changed_is_not_called_changed() -> None:
    unchanged = loaded("stories").trace("the cat saw the cat")
    text = picture_csv(pictured(unchanged, None, "decoder.1.self", "weights"))
    assert set(read_matrix_csv(text)) == {"unchanged"}


@pytest.mark.parametrize("changed", [False, True])
def test_a_picture_of_many_cells_is_saved_in_blocks_and_has_no_csv(
    changed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = loaded("gpt")
    baseline = model.trace(sentence(model))
    trace = model.trace(sentence(model), intervention=Intervention(scale=1.0))
    place, before = trace.attention[0].name, baseline if changed else None
    whole = pictured(trace, before, place, "weights")
    monkeypatch.setattr("model.trace.blocks.CELLS", 16)
    monkeypatch.setattr("model.trace.blocks.TOGETHER", 1)
    blocks = pictured(trace, before, place, "weights")
    assert blocks.block != (1, 1)
    assert blocks.runs.keys() == whole.runs.keys()
    for name, values in blocks.runs.items():
        expected = largest_of_blocks(whole.runs[name], blocks.block)
        np.testing.assert_allclose(values, expected, atol=1e-6)
        assert blocks.limits[name] == pytest.approx(whole.limits[name], abs=1e-6)
    figures = picture_figures(blocks).values()
    assert all(figure.layout.annotations for figure in figures)
    with pytest.raises(ValueError, match="values for"):
        picture_csv(blocks)
    vectors = pictured(trace, before, place, "query")
    assert vectors.block == (1, 1)
