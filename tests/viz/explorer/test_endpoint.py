"""A layer by its address is the one that the page would send, for those who were shown the run."""

import gc
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from model import Intervention, load_model
from model.trace.trace import Trace
from viz.explorer import endpoint, payload
from viz.explorer.packing import packed, words

LAYER = "decoder.1.self"
client = TestClient(Starlette(routes=[Route("/layers", endpoint.offer)]))


def trace(text: str = "The cat sat", mask: str = "model") -> Trace:
    """A run that nobody else keeps."""
    return load_model("house-gpt").trace(text, intervention=Intervention(mask=mask))


def status(address: str, **asked: object) -> int:
    return client.get(f"/{address}&{urlencode({'layer': LAYER} | asked)}").status_code


@pytest.mark.parametrize("stage", ["weights", "output"])
@pytest.mark.parametrize("changed", [False, True])
def test_it_is_what_the_page_would_send(stage: str, changed: bool) -> None:
    run, before = (trace(mask="none"), trace()) if changed else (trace(), None)
    asked = urlencode({"layer": LAYER, "head": 3, "stage": stage})
    answer = client.get(f"/{endpoint.address(run, before)}&{asked}")
    layer = endpoint.layer_of(run, before, LAYER)
    assert answer.content == packed(payload(**layer, head=3, stage=stage))
    said = words(answer.content)
    assert isinstance(said["layer"], dict)
    assert said["layer"]["name"] == LAYER
    assert (said["baseline"] is None) is not changed
    assert answer.headers["cache-control"] == "no-store"


def test_each_run_has_a_name_of_its_own_that_stays() -> None:
    one, other = trace(), trace()  # the same text, by two who know nothing of each other
    assert endpoint.address(one, None) == endpoint.address(one, None)
    assert endpoint.address(one, None) != endpoint.address(other, None)
    assert endpoint.address(one, other) != endpoint.address(one, None)
    assert len(endpoint.address(one, None)) > 22  # characters of 128 bits


def test_nothing_is_at_an_address_whose_run_has_made_room() -> None:
    run, before = trace(), trace()
    whole, alone = endpoint.address(run, before), endpoint.address(run, None)
    assert (status(whole), status(alone)) == (200, 200)
    del before
    gc.collect()
    assert (status(whole), status(alone)) == (404, 200)
    del run
    gc.collect()
    assert status(alone) == 404


@pytest.mark.parametrize(
    "asked",
    [
        {"layer": "decoder.9.self"},
        {"layer": "encoder.0.self"},
        {"layer": ""},
        {"layer": "../../etc/passwd"},
        {"head": "x"},
        {"head": "1e3"},
    ],
)
def test_what_the_run_does_not_have_is_not_found(asked: dict[str, object]) -> None:
    run = trace()
    assert status(endpoint.address(run, None), **asked) == 404


@pytest.mark.parametrize("asked", [{"head": 99}, {"head": -1}, {"stage": "<b>"}, {"stage": ""}])
def test_a_head_or_stage_that_does_not_exist_becomes_the_nearest(asked: dict[str, object]) -> None:
    run = trace()
    assert status(endpoint.address(run, None), **asked) == 200


def test_runs_that_do_not_belong_together_are_not_shown() -> None:
    short, long = trace("The cat"), trace("The cat sat on the mat")
    assert status(endpoint.address(short, long)) == 404


def test_without_a_name_nothing_is_told() -> None:
    trace()
    for address in (
        "layers",
        "layers?run=",
        "layers?run=x",
        "layers?before=x&layer=decoder.0.self",
    ):
        assert client.get(f"/{address}").status_code == 404


def test_a_long_run_is_checked_when_the_browser_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    run = trace()
    monkeypatch.setattr(endpoint, "AT_ONCE", 0)
    assert endpoint.layer_of(run, None, LAYER)["check"] is None
    assert not run.is_checked
    answer = client.get(f"/{endpoint.address(run, None)}&check=run")
    assert 0 <= answer.json() == run.check() < 1e-5
    assert endpoint.layer_of(run, None, LAYER)["check"] == run.check()


def test_a_long_run_that_is_not_kept_until_then_is_checked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = trace()
    monkeypatch.setattr(endpoint, "AT_ONCE", 0)
    assert endpoint.layer_of(run, None, LAYER, stays=False)["check"] == run.check()


def test_a_short_run_is_checked_before_its_picture_is_sent() -> None:
    run = trace()
    assert endpoint.layer_of(run, None, LAYER)["check"] == run.check()
