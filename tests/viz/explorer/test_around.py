"""The browser gets what stands around the heads where it is small, or shown."""

from typing import cast

import numpy as np
import pytest

from model.analysis.stream.around_heads import AroundHeads
from tests.model import tiny
from viz.explorer import message as sent
from viz.explorer.message import payload


def around_heads(
    stage: str = "weights", *, text: str = "Tom Hill saw a red ball", layer: int = 1
) -> sent.Json:
    model = tiny.loaded("house-gpt")
    trace = model.trace(text)
    attention = trace.attention[layer]
    tokens = [token.text for token in trace.tokens]
    return payload(
        attention,
        queries=tokens,
        keys=tokens,
        head=0,
        check=0.0,
        stage=stage,
        around=[AroundHeads(model, trace, attention)],
    )


def test_what_stands_around_the_heads_comes_where_it_is_small_or_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def sent_groups(message: sent.Json) -> set[str]:
        return {part.split()[-1] for part in sent.group_parts(message)}

    everything = around_heads()
    names = [stage["name"] for stage in cast(list[dict[str, str]], everything["stages"])]
    assert names[:3] == ["positions", "norm", "query"]
    assert names[-3:] == ["output", "concatenated", "written"]
    assert sent_groups(everything) == {"positions", "norm", "merged"}
    monkeypatch.setattr(sent, "LIGHT_AROUND", 0)
    assert sent_groups(around_heads()) == set()
    assert sent_groups(around_heads("norm")) == {"norm"}
    opened = around_heads("written")
    assert sent_groups(opened) == {"merged"}
    bare = cast(sent.Json, sent.without_arrays(opened, sent.group_parts(opened))["layer"])
    merged = cast(dict[str, sent.Json], bare["around"])["merged"]
    assert (merged["numbers"], merged["held"]) == (None, True)
    assert bare["query"] is cast(sent.Json, opened["layer"])["query"]
    monkeypatch.setattr("viz.explorer.around.LARGEST", 0)
    names = [stage["name"] for stage in cast(list[dict[str, str]], around_heads()["stages"])]
    assert names[0] == "query"


def test_the_first_stage_is_positions_in_the_first_layer_and_above_it_the_stream_that_enters() -> (
    None
):
    labels = []
    for layer in (0, 1):
        message = around_heads(layer=layer)
        first = cast(list[dict[str, str]], message["stages"])[0]
        labels.append(first["label"])
        assert ("enters layer 1" in first["title"]) == (layer == 1)
    assert labels == ["positions", "stream"]
    model = tiny.loaded("house-gpt")
    trace = model.trace("Tom Hill saw a red ball")
    entering = AroundHeads(model, trace, trace.attention[1]).entering
    assert entering is not None
    np.testing.assert_array_equal(entering, trace.residual["decoder"][2])
    assert not np.allclose(entering, trace.residual["decoder"][0])
