"""Compare: what stands on both sides is what both models computed, and its choices join the link."""

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.analysis.heads.statistics import entropy, rolled
from model.profile.shipped import shipped_profile
from model.training.checkpoints import shipped_training_run
from tests.cases import cases
from tests.pages.reading import control, named, numbers, own, said, tables, visit

TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"
TITLES = {"induction": "Induction", "stories": "Stories", "translate-en-fr": "Translator"}


def opened(show: str, **parameters: str) -> AppTest:
    given = {"model": "stories", "text": TEXT, "place": "decoder.1.self", "head": "2"}
    return visit("compare", **given | {"show": show} | parameters)


def maps(app: AppTest) -> list[np.ndarray]:
    """The weights of each map, from left to right."""
    figures = [json.loads(one.proto.spec)["data"] for one in app.get("plotly_chart")]
    return [
        numbers(next(one for one in data if one.get("zmax") == 1 and one.get("colorbar"))["z"])
        for data in figures
    ]


def test_one_head_stands_on_both_sentences_with_its_own_weights() -> None:
    second = "the cat saw the dog"
    app = opened("Two sentences", second_text=second)
    assert named(app.text_input, "compare-second-text").value == second
    for text, shown in zip((TEXT, second), maps(app), strict=True):
        weights = own("stories").trace(text).find("decoder.1.self").weights(2)
        assert np.nan_to_num(shown) == pytest.approx(weights, abs=1e-6)
        assert f"{float(entropy(weights).mean()):.2f} nats" in said(app)
    assert not opened("Two sentences", second_text="   ").exception


def test_cells_have_one_size_and_the_strongest_weight_of_each_map_stands_in_a_frame() -> None:
    app, sizes = opened("Two sentences", second_text="the cat saw the dog"), []
    for one, weights in zip(app.get("plotly_chart"), maps(app), strict=True):
        layout = json.loads(one.proto.spec)["layout"]
        margin, rows = layout["margin"], np.ptp(layout["yaxis"]["range"])
        sizes.append((layout["height"] - margin["t"] - margin["b"]) / rows)
        others = np.nan_to_num(weights)
        others[:, 0] = 0
        np.fill_diagonal(others, 0)
        query, key = np.unravel_index(others.argmax(), others.shape)
        frames = {(shape["x0"] + 0.5, shape["y0"] + 0.5) for shape in layout["shapes"]}
        assert frames == {(key, query)}
    assert sizes[0] == pytest.approx(sizes[1], abs=0.2)


def test_another_model_begins_with_a_head_of_the_same_job() -> None:
    app = opened("Two models", second_model="house-gpt")
    profile = shipped_profile("house-gpt")
    rows = profile.given.to_dict("records")
    first = next(row for row in rows if row["label"] == "induction")
    weights = own("house-gpt").trace(TEXT).find(first["layer"]).weights(first["head"])
    assert np.nan_to_num(maps(app)[1]) == pytest.approx(weights, abs=1e-6)
    control(app, "Head on the right").select("L0H3").run()
    weights = own("house-gpt").trace(TEXT).find("decoder.0.self").weights(3)
    assert np.nan_to_num(maps(app)[1]) == pytest.approx(weights, abs=1e-6)


def test_averages_stand_beside_the_head_and_are_not_the_models_own() -> None:
    app = opened("Averages")
    trace = own("stories").trace(TEXT)
    for kind, expected in (
        (
            "Mean of all heads",
            np.mean([one.weights(h) for one in trace.attention for h in range(4)], 0),
        ),
        ("Rollout", rolled(trace.attention)),
    ):
        control(app, "On the right").select(kind).run()
        own_map, mean = maps(app)
        assert np.nan_to_num(own_map) == pytest.approx(trace.find("decoder.1.self").weights(2))
        assert np.nan_to_num(mean) == pytest.approx(expected, abs=1e-5)
        assert not app.warning
    assert np.isfinite(tables(app)[0].iloc[:, 1:].to_numpy(float)).all()


@cases("name", TITLES)
def test_untrained_and_trained_stand_on_one_scale(name) -> None:
    app = visit("compare", show="Untrained", training=TITLES[name])
    untrained, trained = maps(app)
    assert not np.array_equal(untrained, trained, equal_nan=True)
    titles = " ".join(one.proto.spec for one in app.get("plotly_chart"))
    assert f"trained: step {shipped_training_run(name).steps[-1]:,}" in titles
    assert "untrained: step 0" in titles


def test_maps_of_other_labels_begin_at_one_height() -> None:
    app = opened("Two sentences", second_text="Churchill saw the dog")
    tops = {json.loads(one.proto.spec)["layout"]["margin"]["t"] for one in app.get("plotly_chart")}
    assert len(tops) == 1
