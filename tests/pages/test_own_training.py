"""A record of the visitor's own training on the training page: dropped in, looked at in every view, beside
another run; what is no record gets a sentence."""

import gc
import json
import weakref
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest

from model.training import trainer
from model.training.induction import short_recipe
from model.training.training_file import RecordedTraining, load_training
from model.training.training_record import TrainingRecord
from tests.pages.reading import choose, control, said, visit
from tests.pages.test_training import drawn, maps, opened, sent
from viz.notation.numbers import difference
from viz.views.training.own_runs import kept_records

LIST = "k 3 f z a 5 k 3 f z a 5"
LABEL = "Open the record of a training"


@cache
def record() -> tuple[bytes, RecordedTraining]:
    """A short training's file, and what it holds."""
    recipe = short_recipe(3, 200)
    run = trainer.begin(recipe)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "mine.safetensors"
        kept = TrainingRecord(
            path, probes=[LIST, "a b c"], tokenizer=recipe.task.tokenizer, every=2, megabytes=0.02
        )
        kept.step(run.module, 0)
        for progress, _ in zip(trainer.train(run), range(12), strict=False):
            kept.step(run.module, progress.step, loss=progress.loss)
        return path.read_bytes(), load_training(path)


def dropped(app: AppTest, name: str = "mine.safetensors", content: bytes | None = None) -> AppTest:
    """The page after a file was dropped on it."""
    (box,) = [one for one in app.get("file_uploader") if one.proto.label == LABEL]
    box.upload(name, record()[0] if content is None else content, "").run()
    assert not app.exception
    return app


def two_runs() -> AppTest:
    return visit("compare", show="Two runs")


def players(app: AppTest) -> list[dict[str, Any]]:
    sent = [one.proto.json for one in app.get("bidi_component") if one.proto.json]
    return [json.loads(one) for one in sent]


def test_a_record_that_is_dropped_is_played_with_its_own_weights_and_losses() -> None:
    app, found = dropped(opened()), record()[1]
    player = sent(app)
    assert control(app, "Training of").value in app.session_state["training-files"]
    assert tuple(player["steps"]) == found.kept
    assert len(found.kept) < len(found.steps)
    label = control(app, "Head").value
    place, head = f"decoder.{label[1]}.self", int(label[3])
    (layer,) = [one for one in found.probes[0].layers if one.place.name == place]
    np.testing.assert_array_equal(maps(player), layer.weights[:, head])
    told = {line["name"]: line for chart in player["charts"] for line in chart["lines"]}
    assert told["training loss"]["values"] == [loss for _, loss in found.losses]
    assert told["best induction head"]["steps"] == [*found.steps]
    assert player["movement"] is None
    assert f"{label}, highest induction" in control(app, "Head").options
    assert f"at most {difference(float(found.checks.max()))}. " in said(app)


def test_one_number_of_every_head_is_drawn_over_all_steps() -> None:
    app, found = dropped(opened()), record()[1]
    assert control(app, "Of every head").value == "Induction"
    choose(app, "Of every head", "Previous token")
    (figure,) = [
        one.proto.spec for one in app.get("plotly_chart") if "training step" in one.proto.spec
    ]
    values = np.concatenate([one.of("previous") for one in found.probes[0].layers], axis=1)
    end = values[-1].max()
    assert f"has most, {end:.2f}" in said(app)
    assert figure.count('"x"') >= values.shape[1]


def test_another_probe_is_another_text() -> None:
    app = dropped(opened())
    assert sent(app)["keys"] == LIST.split()
    choose(app, "Probe text", "2: a b c")
    assert sent(app)["keys"] == ["a", "b", "c"]


def test_its_first_step_stands_beside_its_last() -> None:
    app = dropped(visit("compare", show="Untrained"))
    untrained, trained = drawn(app)
    assert untrained["z"] != trained["z"]
    words = " ".join(one.proto.spec for one in app.get("plotly_chart"))
    assert "untrained: step 0" in words
    assert f"trained: step {record()[1].steps[-1]}" in words


def test_two_runs_stand_side_by_side_under_one_slider() -> None:
    app = two_runs()
    assert [one["key"] for one in players(app)] == ["induction", "stories"]
    assert all(one["together"] for one in players(app))
    dropped(app)
    left, right = players(app)
    assert left["steps"] == [*record()[1].kept]
    assert right["key"] == "stories"
    (figure,) = app.get("plotly_chart")
    assert "mine.safetensors (left)" in figure.proto.spec
    assert "Stories (right)" in figure.proto.spec
    right = "Training on the right"
    choose(app, right, control(app, right).options[-1])
    left, right = players(app)
    assert left["steps"] == right["steps"]


def test_what_is_no_record_gets_a_sentence_and_the_page_stays() -> None:
    content = record()[0]
    for bad in (
        b"no file at all",
        content[:-5],
        content.replace(b'version\\": 1', b'version\\": 9'),
    ):
        app = dropped(opened(), content=bad)
        assert len(app.error) == 1
        assert sent(app)["key"] == "induction"


def test_no_widget_keeps_a_record_that_the_server_has_let_go() -> None:
    apps = [dropped(draw()) for draw in (opened, two_runs)]
    living = [weakref.ref(one) for one in kept_records()._records.values()]
    assert living
    kept_records()._records.clear()
    gc.collect()
    assert not any(one() for one in living)
    for app in apps:  # and the page goes on with a shipped one
        app.run()
        assert not app.exception
        assert players(app)[0]["key"] == "induction"


def test_a_record_is_seen_in_its_own_session_alone() -> None:
    app = dropped(opened(), "<b>*mine*</b>.safetensors")
    options = control(app, "Training of").options
    assert len(options) == len(control(opened(), "Training of").options) + 1
    assert r"\*mine\*" in options[-1]
