"""What is shipped to a server fits together: image, composition, proxy, and the reading of an audit."""

import json
import re
from pathlib import Path

import pytest
import yaml

from deploy.audit import report
from deploy.healthy import healthy
from tests.deploy.dockerfile import Instruction, context, instructions

REPOSITORY = Path(__file__).resolve().parents[1]
STEPS = instructions((REPOSITORY / "Dockerfile").read_text())
COMPOSITION = yaml.safe_load((REPOSITORY / "compose.yaml").read_text())
PROXY = (REPOSITORY / "deploy/Caddyfile").read_text()


def steps(word: str) -> list[Instruction]:
    return [step for step in STEPS if step.word == word]


def inside() -> set[str]:
    found = context(REPOSITORY, (REPOSITORY / ".dockerignore").read_text())
    return {str(file.relative_to(REPOSITORY)) for file in found}


def test_the_image_holds_what_the_app_runs_and_nothing_else() -> None:
    files = inside()
    assert {"app.py", "viz/server/asgi.py", "deploy/healthy.py", ".streamlit/config.toml"} <= files
    assert {f"model/assets/{name}/model.safetensors" for name in ("house-gpt", "stories")} <= files
    rooms = {name.split("/")[0] for name in files}
    assert rooms == {
        *("app.py", "pages", "viz", "model", "static", "deploy"),
        *("requirements.txt", "requirements.lock", "requirements-uv.lock"),
        *(".streamlit", "LICENSE"),
    }
    unwanted = ("__pycache__", "secrets", "books")
    assert not [name for name in files if any(word in name for word in unwanted)]


def test_the_packages_are_a_layer_before_the_code() -> None:
    text = (REPOSITORY / "Dockerfile").read_text()
    assert text.index("COPY requirements.txt") < text.index("pip install") < text.index("COPY . .")


def test_the_image_runs_as_a_visitor_without_rights_and_says_how_it_is() -> None:
    order = [step.word for step in STEPS]
    assert steps("USER")[-1].rest == "visitor"
    assert order.index("USER") < order.index("CMD")
    assert steps("CMD")[-1].command == ["python", "-m", "viz.server"]
    assert steps("HEALTHCHECK")[-1].command == ["python", "-m", "deploy.healthy"]


def test_where_nothing_answers_is_not_healthy() -> None:
    assert not healthy(1)


def test_every_path_and_variable_of_the_composition_exists() -> None:
    text = (REPOSITORY / "compose.yaml").read_text()
    app, proxy = COMPOSITION["services"]["app"], COMPOSITION["services"]["proxy"]
    arguments = {step.rest.partition("=")[0] for step in steps("ARG")}
    assert set(app["build"]["args"]) <= arguments
    mounted = [volume.split(":") for volume in proxy["volumes"]]
    assert {source for source, *_ in mounted if not source.startswith(".")} <= set(
        COMPOSITION["volumes"]
    )
    assert all((REPOSITORY / source).exists() for source, *_ in mounted if source.startswith("."))
    assert set(re.findall(r"\{\$(\w+)", PROXY)) <= set(proxy["environment"])
    guide = (REPOSITORY / "docs/serving-a-class.md").read_text()
    for variable in set(re.findall(r"\$\{(\w+)", text)):
        assert f"`{variable}`" in guide, variable


def test_the_app_is_reached_through_the_proxy_only() -> None:
    app, proxy = COMPOSITION["services"]["app"], COMPOSITION["services"]["proxy"]
    assert "ports" not in app
    assert app["networks"] == ["inside"]
    assert COMPOSITION["networks"]["inside"]["internal"]
    assert "/metrics" in PROXY
    assert {True} == {app["read_only"], proxy["read_only"]}
    assert app["cap_drop"] == proxy["cap_drop"] == ["ALL"]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ([{"name": "a", "version": "1", "vulns": []}], 0),
        ([{"name": "a", "version": "1", "vulns": [{"id": "X", "fix_versions": ["2"]}]}], 1),
        ([{"name": "a", "skip_reason": "not found"}], 2),
        ([], 2),
    ],
    ids=["clean", "weak", "not looked up", "nothing said"],
)
def test_an_audit_that_could_not_ask_is_no_all_clear(
    said: list[dict[str, object]], status: int
) -> None:
    found, sentences = report(json.loads(json.dumps(said)))
    assert found == status
    assert ("no all-clear" in sentences) == (status == 2)
