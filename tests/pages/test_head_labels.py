"""All heads says and frames the labels of the shipped profile, and none of weights that were not profiled."""

import json

from streamlit.testing.v1 import AppTest

from model.profile.shipped import shipped_profile
from tests.pages.reading import control, said, visit


def opened(model: str, text: str) -> AppTest:
    return visit("all_heads", model=model, text=text, show="Grid")


def test_the_labels_of_the_shipped_profile_are_said_and_framed() -> None:
    app = opened("stories", "Tom Hill saw a red ball. Anna gave the ball to Tom")
    found = shipped_profile("stories")
    assert found is not None
    given = found.labels[found.labels["given"]]
    assert f"{found.sums.tokens:,} tokens of new micro-stories" in said(app)
    words, frames = labelled_tiles(app)
    assert sum(one.count("label: ") for one in words) == len(given)
    assert frames == 0
    control(app, "Heads with a label").set_value("previous").run()
    mine = given[given["label"] == "previous"]
    assert labelled_tiles(app)[1] == len(mine) > 0
    for row in mine.itertuples():
        assert f"L{row.layer.split('.')[1]}H{row.head} {row.score:.2f} (control" in said(app)


def labelled_tiles(app: AppTest) -> tuple[list[str], int]:
    """What hovering over each tile of the grid says, and how many have a dotted frame."""
    for picture in app.get("plotly_chart"):
        figure = json.loads(picture.proto.spec)
        for trace in figure["data"]:
            if trace.get("name") == "heads":
                shapes = figure["layout"].get("shapes", ())
                return trace["text"], sum(one["line"].get("dash") == "dot" for one in shapes)
    raise AssertionError("no grid")


def test_a_model_of_other_weights_has_no_labels() -> None:
    app = opened("notes-second-class", "A cat")
    assert "Heads with a label" not in [box.label for box in app.selectbox]
    assert "label" not in said(app).lower()
