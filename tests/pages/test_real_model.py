"""The model that the server fetches behind the page: offered on Home, stopped, resumed, opened, refused."""

from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import pytest
from streamlit.testing.v1 import AppTest

from model.download.entries import is_on_disk, is_unpacked
from model.download.hub import MEANWHILE
from model.loading.registry import models
from tests.cases import cases
from tests.model.hub_models import saved
from tests.model.hub_server import Hub, serving
from tests.pages.reading import visit
from viz.shell.downloads import Download, entry_to_fetch, fetch_behind, fetching
from viz.shell.model_picker import looked_up
from viz.state.session import remembered, to_remember

HOME = Path(__file__).parents[2] / "pages" / "home.py"
NAME = "somebody/tiny-llama"
SECONDS = 120


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serving({NAME: saved("llama")}) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        monkeypatch.setenv("ATTENTION_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("ATTENTION_FETCH", NAME)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr("model.download.hub.PIECE", 16_384)
        fetching.cache_clear()
        yield server


def home() -> AppTest:
    return AppTest.from_file(str(HOME), default_timeout=SECONDS).run()


def captions(app: AppTest) -> str:
    assert not app.exception
    return "\n".join(caption.value for caption in app.caption).replace("\\", "")


def job() -> Download:
    known = fetching().known(NAME)
    assert known is not None
    return known


def ended() -> Download:
    assert job().ended.wait(SECONDS)
    return job()


def test_it_is_fetched_for_all_stopped_resumed_and_opened(hub: Hub) -> None:
    hub.slowly = 0.5
    first = home()
    assert f"{NAME}, a real" in captions(first)
    assert first.button("real-model").label == "Fetch it"
    first.button("real-model").click().run()
    weights = (saved("llama") / "model.safetensors").stat().st_size
    size = sum(file.stat().st_size for file in saved("llama").iterdir())
    while (job().share or 0) <= 1 - weights / size:  # a part of the weights is here
        assert not job().ended.is_set()
    second = home()
    assert f"Downloading {NAME}" in captions(second)
    assert "in the background" in captions(second)
    assert second.button("real-model").label == "Stop"
    fetch_behind(models[NAME])
    assert fetching().under_way() == [job()]  # one for all
    second.button("real-model").click().run()
    assert ended().state == "stopped"
    first.run()
    assert first.button("real-model").label == "Resume"
    hub.slowly = 0.0
    hub.asked.clear()
    first.button("real-model").click().run()
    assert ended().state == "done"
    assert any(asked is not None for _, asked in hub.asked)  # it went on from what was there
    assert is_on_disk(models[NAME])
    second.run()
    assert f"{NAME}, is on" in captions(second)
    second.button("real-model").click().run()
    assert second.query_params["model"] == NAME
    assert "real-model" not in [button.key for button in second.button]


def test_where_it_cannot_be_had_home_says_why_and_nothing_else_breaks(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    fetch_behind(models[NAME])
    assert "could not be" in (ended().refusal or "")
    app = home()
    assert MEANWHILE in captions(app)
    assert app.button("real-model").label == "Try again"
    monkeypatch.setenv("HF_ENDPOINT", hub.address)
    app.button("real-model").click().run()
    assert ended().state == "done"


def test_a_full_disk_is_told_on_home(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda place: type("Usage", (), {"free": 10})())
    fetch_behind(models[NAME])
    ended()
    assert "the disk has" in captions(home())


def test_who_is_elsewhere_sees_it_come_but_cannot_stop_it(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("viz.views.home.explore.visitor_is_local", lambda: False)
    hub.slowly = 0.5
    fetch_behind(models[NAME])
    app = home()
    assert "in the background" in captions(app)
    assert "real-model" not in [button.key for button in app.button]
    fetching().stop(NAME)
    ended()


def test_without_the_setting_home_offers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_FETCH", "none")
    assert entry_to_fetch() is None
    app = home()
    assert models["house-gpt"].good_for in captions(app)
    assert "real-model" not in [button.key for button in app.button]


def test_a_browser_keeps_only_the_name_of_a_model_that_is_here(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[str, str] = {}
    monkeypatch.setattr("streamlit.context", type("Context", (), {"cookies": kept}))
    for name, opened in {
        "": "house-gpt",
        "minilm": "minilm",
        "somebody%2Ftiny-llama": "house-gpt",  # not on this computer
        "../../etc/passwd": "house-gpt",
    }.items():
        kept["attention-model"] = name
        assert remembered() == opened
    assert to_remember() is None


@pytest.mark.slow
@cases("name", ["smollm2-135m-instruct", "stories"])
def test_a_copy_unpacked_from_4_bits_says_so_where_the_model_is_chosen(name) -> None:
    looked_up.cache_clear()  # another test may have looked into a cache of its own
    unpacked = name != "stories" and is_unpacked(models[name])
    assert ("unpacked from 4-bit" in captions(visit("home", model=name))) == unpacked
