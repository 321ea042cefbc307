"""The Ray cluster of the manifests for Kubernetes: its ports, its resources, its token, its version."""

import re
from copy import deepcopy
from pathlib import Path

import pytest

from tests.cases import cases
from tests.deploy.lock import requirements
from tests.deploy.manifests import SIZES, Document, containers, every_pod, of, one

REPOSITORY = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.ray, pytest.mark.xdist_group("ray"), pytest.mark.filterwarnings("ignore")]


def parameters(cluster: Document) -> list[dict[str, str]]:
    """`rayStartParams` of the head, and of each group of workers."""
    groups = [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]
    return [group["rayStartParams"] for group in groups]


@cases("size", ["school", "gpu"])
def test_ray_listens_where_its_members_may_reach_it_and_nowhere_else(size) -> None:
    policies = {policy["metadata"]["name"]: policy["spec"] for policy in of(size, "NetworkPolicy")}
    allowed = {
        port
        for rule in policies["ray"]["ingress"][0]["ports"]
        for port in range(rule["port"], rule["endPort"] + 1)
    }
    assert policies["ray"]["egress"][0]["ports"] == policies["ray"]["ingress"][0]["ports"]
    (raylet,) = one(size, "Deployment")["spec"]["template"]["spec"]["initContainers"]
    sidecar = dict(
        argument.removeprefix("--").split("=") for argument in raylet["args"] if "=" in argument
    )
    local = {
        "dashboard-agent-listen-port",
        "metrics-export-port",
    }  # of nobody's use here, or Prometheus'
    ports = [
        {name: int(port) for name, port in said.items() if name.endswith("-port")}
        for said in (sidecar, *parameters(one(size, "RayCluster")))
    ]
    assert all(found == ports[0] for found in ports)
    assert len(ports[0]) == 8  # all that Ray would otherwise choose by chance
    assert {port for name, port in ports[0].items() if name not in local} | {6379} <= allowed
    assert 8501 not in allowed
    assert not any(ports[0][name] in allowed for name in local)


@cases("size", ["school", "gpu"])
def test_replicas_and_head_hold_no_models_and_workers_less_than_their_memory(size) -> None:
    from ray.autoscaler._private.kuberay.autoscaling_config import (
        _derive_autoscaling_config_from_ray_cr as read_cluster,
    )

    (raylet,) = one(size, "Deployment")["spec"]["template"]["spec"]["initContainers"]
    assert raylet["restartPolicy"] == "Always"
    assert {"--num-cpus=0", "--num-gpus=0", "--memory=0"} <= set(raylet["args"])
    cluster = one(size, "RayCluster")
    found = read_cluster(deepcopy(cluster))["available_node_types"]
    resources = {name: node["resources"] for name, node in found.items()}
    head = resources.pop("headgroup")
    assert (head["CPU"], head["memory"], head.get("GPU", 0)) == (0, 0, 0)
    assert {name: node.get("GPU", 0) for name, node in resources.items()} == (
        {"cpu": 0} if size == "school" else {"cpu": 0, "gpu": 1}
    )
    for group in cluster["spec"]["workerGroupSpecs"]:
        (worker,) = group["template"]["spec"]["containers"]
        limit = worker["resources"]["limits"]["memory"]
        given = int(group["rayStartParams"]["memory"]) + int(
            group["rayStartParams"]["object-store-memory"]
        )
        assert 0 < given < 0.8 * int(limit.removesuffix("Gi")) * 2**30
        assert (
            worker["resources"]["requests"]["memory"] == limit
        )  # none is ended for another's sake


@cases("size", ["school", "gpu"])
def test_a_token_is_asked_for_and_lies_in_no_file_of_ours(size) -> None:
    cluster = one(size, "RayCluster")
    assert cluster["spec"]["authOptions"] == {"mode": "token"}
    assert cluster["spec"]["headGroupSpec"]["rayStartParams"]["include-dashboard"] == "false"
    assert cluster["spec"]["headGroupSpec"]["serviceType"] == "ClusterIP"
    assert of(size, "Secret") == []
    spec = one(size, "Deployment")["spec"]["template"]["spec"]
    (token,) = (volume["secret"] for volume in spec["volumes"] if volume["name"] == "token")
    name = one(size, "ConfigMap")["data"]["CLUSTER"]
    assert token["secretName"] == cluster["metadata"]["name"] == name  # KubeRay's, of this cluster
    for container in spec["initContainers"] + spec["containers"]:
        said = {variable["name"]: variable.get("value") for variable in container["env"]}
        assert (said["RAY_AUTH_MODE"], said["RAY_AUTH_TOKEN_PATH"]) == (
            "token",
            "/run/ray/auth_token",
        )
        assert said["ATTENTION_CLUSTER"] == "$(CLUSTER)-head-svc:6379"


def test_the_version_of_ray_and_the_images_are_those_of_the_project() -> None:
    (pin,) = requirements(REPOSITORY / "requirements-cluster.txt")
    assert str(pin.specifier) == f"=={one('gpu', 'RayCluster')['spec']['rayVersion']}"
    version = re.search(r'^version = "(.*)"', (REPOSITORY / "pyproject.toml").read_text(), re.M)
    for size in SIZES:
        ours = {container["image"] for pod in every_pod(size) for container in containers(pod)} - {
            "redis:7.4-alpine"
        }
        assert {image.rpartition(":")[2].split("-")[0] for image in ours} == {version[1]}
        assert all(image.startswith("registry.example.org/attention-visualizer:") for image in ours)
    dockerfile = (REPOSITORY / "Dockerfile").read_text()
    person = one("class", "Deployment")["spec"]["template"]["spec"]["securityContext"]
    assert re.findall(r"useradd --uid (\d+)", dockerfile) == [str(person["runAsUser"])]
