"""What is shipped to a server fits together: image, composition, proxy, and the reading of an audit."""

import json
import re
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
import yaml

from deploy.audit import report
from deploy.healthy import healthy
from deploy.space import HERE, dockerfile
from deploy.space.__main__ import fill
from model.system.settings import read
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
        *("app.py", "pages", "viz", "model", "static", "words", "deploy"),
        *("requirements.txt", "requirements.lock"),
        *("requirements-cluster.lock", "requirements-uv.lock"),
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


@pytest.mark.parametrize("ready", [200, 503])
def test_a_server_that_has_not_loaded_its_model_is_not_healthy(ready: int) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(ready if self.path == "/readyz" else 200)
            self.end_headers()

        def log_message(self, *said: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        answering = Thread(target=server.handle_request)
        answering.start()
        assert healthy(server.server_port) is (ready == 200)
        answering.join()


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


def test_a_space_builds_the_same_image_for_its_own_user_port_and_frame() -> None:
    said = yaml.safe_load((HERE / "README.md").read_text().split("---")[1])
    assert {"title", "emoji", "colorFrom", "colorTo", "license"} < said.keys()
    assert said["sdk"] == "docker"
    assert len(said["short_description"]) <= 60  # a longer one is refused
    space = instructions(dockerfile())
    assert space[: len(STEPS)] == STEPS
    added = space[len(STEPS) :]
    variables = dict(
        pair.split("=", 1) for step in added if step.word == "ENV" for pair in step.rest.split()
    )
    assert variables["STREAMLIT_SERVER_PORT"] == str(said["app_port"])
    assert [step.rest for step in added if step.word == "EXPOSE"] == [str(said["app_port"])]
    assert read(variables).frame_ancestors == ("https://huggingface.co",)
    assert "--uid 1000" in next(step.rest for step in added if step.word == "RUN")
    assert [step.rest for step in added if step.word == "USER"][-1] == "visitor"


def test_a_space_holds_what_its_image_takes(tmp_path: Path) -> None:
    fill(tmp_path)
    held = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert held >= {"README.md", "Dockerfile", ".dockerignore", "app.py", "viz/server/asgi.py"}
    image = context(tmp_path, (tmp_path / ".dockerignore").read_text())
    assert {str(file.relative_to(tmp_path)) for file in image} == inside()
    with pytest.raises(FileExistsError):
        fill(tmp_path)
