"""What the server's owner decides by environment variables, and what is safe without a decision."""

from pathlib import Path

import pytest

from model import load_model, models
from model.loading.registry import may_be_linked, others_allowed
from model.system.settings import ADDRESS, REAL_MODEL, VARIABLES, check_at_start, read
from tests.cases import cases

ROOT = Path(__file__).resolve().parents[3]
NONSENSE = {
    "ATTENTION_MODELS": ("gpt2,,minilm", ","),
    "ATTENTION_OTHER_MODELS": ("yes", "1", "ON"),
    "ATTENTION_FOLDERS": ("true", ),
    "ATTENTION_MODEL_MB": ("lots", "-1", "0", "1e3", "9" * 40, "٣"),
    "ATTENTION_TRACE_MB": ("0", "1.5"),
    "ATTENTION_LONGEST_TEXT": ("3", "1000001"),
    "ATTENTION_PASS_SECONDS": ("0", "soon"),
    "ATTENTION_LINE": ("0", ),
    "ATTENTION_THREADS": ("0", "all"),
    "ATTENTION_DEVICE": ("gpu", "cuda:x", "cpu; rm"),
    "ATTENTION_METRICS": ("yes", ),
    "ATTENTION_FRAME_ANCESTORS": (*("*", "https:", "https://*", "https://*.org",
        "class.example.org", "ftp://class.example.org"), *("https://a.example; script-src *",
        "https://a.example\nSet-Cookie: a=b", "https://a.example,https://b"),
        *("https://a.example/page", "https://a.example:0", "https://a.example:65536",
        "https://a.example:*"), *("https://user@a.example", "https://-a.example",
        "https://ä.example", "https://[::1]", "'none'", "self")),
    "HF_ENDPOINT": ("hub.example", "file:///etc"),
}  # fmt: skip


@cases("variable, value", [(name, value) for name, values in NONSENSE.items() for value in values])
def test_nonsense_is_refused_with_the_variables_name(variable, value) -> None:
    with pytest.raises(ValueError, match=f"^{variable} is ['\"].*; it must be .*\\.$"):
        read({variable: value})


def test_a_folder_that_is_none_is_refused_at_the_start(subtests: pytest.Subtests) -> None:
    for variable, value in [
        ("ATTENTION_CACHE", __file__),
        ("HF_HUB_CACHE", "/" + "a" * 300),
        ("XDG_CACHE_HOME", f"{__file__}/below"),
    ]:
        with subtests.test(variable=variable), pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setenv(variable, value)
            with pytest.raises(ValueError, match=f"^{variable} is .*; it must be a folder"):
                check_at_start()


def test_who_may_frame_the_app_is_a_list_of_origins() -> None:
    assert read({}).frame_ancestors == ()
    listed = "https://Class.example.org  http://localhost:8000 https://*.example.org 'self' http://localhost:8000"
    assert read({"ATTENTION_FRAME_ANCESTORS": listed}).frame_ancestors == (
        *("https://class.example.org", "http://localhost:8000"),
        *("https://*.example.org", "'self'"),
    )


@cases("address", ["0.0.0.0", "::", "192.168.1.5", "class.example"])
def test_a_server_that_others_reach_opens_no_folder_and_downloads_nothing_unasked(address) -> None:
    found = read({ADDRESS: address})
    assert not found.folders
    assert not found.other_models
    asked = read({ADDRESS: address, "ATTENTION_FOLDERS": "on", "ATTENTION_OTHER_MODELS": "on"})
    assert asked.folders
    assert asked.other_models


@cases("address", ["", "127.0.0.1", "localhost", "::1", "[::1]"])
def test_on_ones_own_computer_everything_is_open(address) -> None:
    found = read({ADDRESS: address})
    assert found.is_local
    assert found.folders
    assert found.other_models


def test_a_folder_that_may_not_be_opened_is_as_if_it_were_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert models.found(str(tmp_path)) is not None
    assert may_be_linked(str(tmp_path))
    monkeypatch.setenv(ADDRESS, "0.0.0.0")
    assert models.found(str(tmp_path)) is models.found(str(tmp_path / "nothing")) is None
    assert not may_be_linked(str(tmp_path))
    with pytest.raises(ValueError, match="There is no model"):
        load_model(str(tmp_path))
    with pytest.raises(ValueError, match="The models are house-gpt"):
        load_model("openai-community/gpt2")
    assert not others_allowed()
    assert "minilm" in models


def test_a_list_of_models_is_all_there_is_beside_the_registered_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registered = list(models)
    monkeypatch.setenv("ATTENTION_MODELS", "gpt2, some/body")
    assert list(models) == [*registered, "gpt2", "some/body"]
    assert len(models) == len(registered) + 2
    assert "gpt2" in models
    assert "distilgpt2" not in models
    assert models.found("openai-community/gpt2") is models["gpt2"]  # the same by its hub id
    assert models.found("distilgpt2") is None
    assert not others_allowed()


@cases("environment, fetched", [
    ({}, REAL_MODEL),
    ({ADDRESS: "0.0.0.0"}, None),
    ({"ATTENTION_MODELS": "gpt2"}, None),
    ({"ATTENTION_MODELS": f"gpt2,{REAL_MODEL}"}, REAL_MODEL),
    ({"ATTENTION_FETCH": "none"}, None),
    ({"ATTENTION_FETCH": "gpt2", ADDRESS: "0.0.0.0"}, "gpt2"),
])  # fmt: skip
def test_a_real_model_is_fetched_unasked_at_ones_own_computer_only(environment, fetched) -> None:
    assert read(environment).fetch == fetched
    through_a_proxy = read(environment, asked_here=False).fetch
    assert through_a_proxy == (
        fetched if environment.keys() & {"ATTENTION_FETCH", "ATTENTION_MODELS"} else None
    )


def test_what_the_owner_has_fetched_may_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS, "0.0.0.0")
    assert models.found("gpt2") is None
    monkeypatch.setenv("ATTENTION_FETCH", "gpt2")
    assert models.found("openai-community/gpt2") is models.found("gpt2") is not None
    assert models.found("distilgpt2") is None


def test_no_other_module_reads_the_environment() -> None:
    """Three others set variables before a library is imported: viz/__init__ for numpy, cluster for Ray, which
    has its own for a token, and classroom for Streamlit, because the settings read the address there."""
    readers = {
        str(path.relative_to(ROOT))
        for room in ("model", "viz", "pages")
        for path in (ROOT / room).rglob("*.py")
        if "environ" in (text := path.read_text(encoding="utf-8")).replace("environment", "")
        or "getenv" in text
    }
    assert readers == {
        "model/system/cluster.py",
        "model/system/settings.py",
        "viz/__init__.py",
        "viz/command/classroom.py",
    }


def test_every_setting_has_its_words() -> None:
    assert all(field.description and field.title for field in VARIABLES.values())
