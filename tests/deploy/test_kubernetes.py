"""The manifests for Kubernetes: what kustomize makes of them fits the schemas, itself, the app and Ray."""

import re
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from model.system.settings import VARIABLES, read
from tests.cases import cases
from tests.deploy.kubernetes_schemas import problems
from tests.deploy.manifests import (
    PLACE,
    SIZES,
    containers,
    every_pod,
    of,
    one,
    render,
    rendered,
    selects,
)
from viz.server.starting import SECONDS_TO_END
from viz.telemetry.metrics import REGISTRY

# What Kubernetes' level "restricted" asks of every container, and what it leaves to us.
BARE = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


@cases("size", SIZES)
def test_all_manifests_fit_the_schemas(size) -> None:
    assert [problem for document in rendered(size) for problem in problems(document)] == []


# Where in a manifest of each kind a mistake is made: the path to a name, which is then misspelt.
MISTAKES = {
    "ConfigMap": "data",
    "Deployment": "spec template spec containers 0 readinessProbe httpGet path",
    "HorizontalPodAutoscaler": "spec metrics 0 pods target averageValue",
    "Ingress": "spec rules 0 http paths 0 pathType",
    "Namespace": "metadata labels",
    "NetworkPolicy": "spec podSelector",
    "PersistentVolumeClaim": "spec accessModes",
    "PodDisruptionBudget": "spec maxUnavailable",
    "PodMonitor": "spec podMetricsEndpoints 0 interval",
    "RayCluster": "spec workerGroupSpecs 0 maxReplicas",
    "Service": "spec ports 0 port",
    "StatefulSet": "spec volumeClaimTemplates 0 spec resources",
}


def test_a_mistake_is_planted_in_every_kind() -> None:
    kinds = {document["kind"] for size in SIZES for document in rendered(size)}
    assert kinds == set(MISTAKES)


@cases("kind, place", [
    *MISTAKES.items(),
    ("RayCluster", "spec authOptions mode"),
    ("RayCluster", "spec headGroupSpec template spec containers 0 readinessProbe tcpSocket"),
    ("RayCluster", "spec workerGroupSpecs 1 template spec tolerations"),
])  # fmt: skip
def test_a_misspelt_name_and_a_wrong_type_are_found(kind, place) -> None:
    *way, last = [int(step) if step.isdigit() else step for step in place.split()]
    for wrong in ("misspelt", "of another type"):
        document = deepcopy(of("gpu", kind)[0])
        inner: Any = document
        for step in way:
            inner = inner[step]
        held = inner.pop(last)
        inner[last if wrong == "of another type" else f"{last}s"] = (
            held if wrong == "misspelt" else [[{}]]
        )
        assert problems(document), wrong


@cases("size", SIZES)
def test_no_pod_has_rights_it_does_not_need(size) -> None:
    (namespace,) = of(size, "Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    for pod in every_pod(size):
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["enableServiceLinks"] is False
        head = (
            pod["metadata"]["labels"].get("ray.io/node-type") == "head"
        )  # its autoscaler speaks with Kubernetes
        assert head or spec["automountServiceAccountToken"] is False
        for container in containers(pod):
            assert container["securityContext"] == BARE, container["name"]
            assert {"cpu", "memory"} <= set(container["resources"]["limits"])
    for cluster in of(size, "RayCluster"):
        assert cluster["spec"]["autoscalerOptions"]["securityContext"] == BARE


@cases("size", SIZES)
def test_names_point_at_something(size) -> None:
    known = {(document["kind"], document["metadata"]["name"]) for document in rendered(size)}
    labels = [pod["metadata"]["labels"] for pod in every_pod(size)]
    assert {document["metadata"].get("namespace", "attention") for document in rendered(size)} == {
        "attention"
    }
    for service in of(size, "Service"):
        selector = service["spec"].get("selector")
        assert selector is None or any(selects({"matchLabels": selector}, pod) for pod in labels)
    for kind, selector_of in {
        "Deployment": "selector",
        "StatefulSet": "selector",
        "PodDisruptionBudget": "selector",
        "PodMonitor": "selector",
        "NetworkPolicy": "podSelector",
    }.items():
        for document in of(size, kind):
            selector = document["spec"][selector_of]
            assert any(selects(selector, pod) for pod in labels), document["metadata"]["name"]
    for path in one(size, "Ingress")["spec"]["rules"][0]["http"]["paths"]:
        assert ("Service", path["backend"]["service"]["name"]) in known
    for scaler in of(size, "HorizontalPodAutoscaler"):
        target = scaler["spec"]["scaleTargetRef"]
        assert (target["kind"], target["name"]) in known
    for pod in every_pod(size):
        mounted = {mount["name"] for one in containers(pod) for mount in one["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
        assert mounted - {"data"} <= set(volumes)  # Redis' own is a claim of its set
        for volume in volumes.values():
            claim = volume.get("persistentVolumeClaim", {}).get("claimName")
            assert claim is None or ("PersistentVolumeClaim", claim) in known


@cases("size", SIZES)
def test_the_settings_are_the_app_s_and_the_host_is_one_and_the_same(size) -> None:
    settings = one(size, "ConfigMap")["data"]
    app = one(size, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    names = {*settings, *(variable["name"] for variable in app["env"])} - {"ATTENTION_CLUSTER"}
    assert {name for name in names if name.startswith("ATTENTION_")} <= set(VARIABLES)
    assert (
        read({name: text for name, text in settings.items() if name in VARIABLES}).metrics == "on"
    )
    ingress = one(size, "Ingress")["spec"]
    assert ingress["rules"][0]["host"] == settings["HOST"]
    assert ingress["tls"][0]["hosts"] == [settings["HOST"]]
    (visitors,) = (
        policy for policy in of(size, "NetworkPolicy") if policy["metadata"]["name"] == "visitors"
    )
    (rule,) = visitors["spec"]["ingress"]
    (namespace,) = rule["from"][0]["namespaceSelector"]["matchExpressions"]
    assert namespace["values"] == [settings["INGRESS_NAMESPACE"]]
    held = one(size, "ConfigMap")["metadata"][
        "name"
    ]  # with the hash: another setting is a rolling update
    assert re.fullmatch(r"attention-settings-\w{10}", held)
    assert app["envFrom"] == [{"configMapRef": {"name": held}}]


@cases("size", ["school", "gpu"])
def test_other_names_are_taken_everywhere(size, tmp_path: Path) -> None:
    place = Path(shutil.copytree(PLACE, tmp_path / "kubernetes"))
    (place / size / "settings.env").write_text(
        "HOST=lab.example.edu\nINGRESS_NAMESPACE=doors\nCLUSTER=models-b\n"
    )
    made = yaml.safe_dump_all(render(place / size))
    old = ["example.org", "ingress-nginx", "models-a"]
    found = [name for name in old if re.search(rf"(?<!registry\.){re.escape(name)}", made)]
    assert found == []
    assert [made.count(name) for name in ("lab.example.edu", "doors", "models-b")] == [3, 2, 3]


@cases("size", SIZES)
def test_an_update_takes_no_replica_before_another_is_ready(size) -> None:
    deployment = one(size, "Deployment")["spec"]
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    spec = deployment["template"]["spec"]
    (app,) = spec["containers"]
    told = app["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert spec["terminationGracePeriodSeconds"] >= told + SECONDS_TO_END + 10
    assert app["readinessProbe"]["httpGet"]["path"] == "/readyz"
    # More replicas, or another number from the autoscaler, and never both.
    assert ("replicas" in deployment) != bool(of(size, "HorizontalPodAutoscaler"))
    assert of(size, "PodDisruptionBudget")


def test_visitors_stay_with_a_replica_and_their_sentences_out_of_the_log_and_the_metrics_inside() -> (
    None
):
    ingress = one("class", "Ingress")
    said = {
        name.removeprefix("nginx.ingress.kubernetes.io/"): value
        for name, value in ingress["metadata"]["annotations"].items()
    }
    assert (said["affinity"], said["enable-access-log"]) == ("cookie", "false")
    service = next(one for one in of("class", "Service") if one["metadata"]["name"] == "attention")
    assert service["metadata"]["annotations"]["traefik.ingress.kubernetes.io/service.sticky.cookie"]
    paths = {
        path["path"]: path["backend"]["service"]["name"]
        for path in ingress["spec"]["rules"][0]["http"]["paths"]
    }
    assert paths == {"/metrics": "attention-nowhere", "/": "attention"}
    nowhere = next(
        one for one in of("class", "Service") if one["metadata"]["name"] == paths["/metrics"]
    )
    assert "selector" not in nowhere["spec"]


@cases("size", SIZES)
def test_what_is_not_allowed_is_refused_by_the_network(size) -> None:
    policies = {policy["metadata"]["name"]: policy["spec"] for policy in of(size, "NetworkPolicy")}
    assert policies["nothing"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    open_to_all = {
        name
        for name, policy in policies.items()
        if any("from" not in rule for rule in policy.get("ingress", []))
        or any("to" not in rule for rule in policy.get("egress", []))
    }
    assert open_to_all <= {"ray-autoscaler"}  # to the API server, wherever that is
    for policy in policies.values():
        for rule in policy.get("ingress", []) + policy.get("egress", []):
            assert rule["ports"]


def test_the_autoscaler_asks_for_a_number_that_the_app_s_metrics_give() -> None:
    (pods_metric,) = (
        metric["pods"]["metric"]["name"]
        for metric in one("school", "HorizontalPodAutoscaler")["spec"]["metrics"]
        if metric["type"] == "Pods"
    )
    adapter = yaml.safe_load((PLACE / "parts/autoscaling/adapter.yaml").read_text())
    (rule,) = adapter["rules"]["custom"]
    assert rule["name"]["as"] == pods_metric
    series = {sample.name for metric in REGISTRY.collect() for sample in metric.samples}
    asked = set(re.findall(r"\battention_\w+(?=\{)", rule["seriesQuery"] + rule["metricsQuery"]))
    assert len(asked) == 2
    assert asked <= series
    for monitor in of("school", "PodMonitor"):
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        for pod in every_pod("school"):
            if selects(monitor["spec"]["selector"], pod["metadata"]["labels"]):
                ports = {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
                assert endpoint["port"] in ports


def test_every_part_is_used(subtests: pytest.Subtests) -> None:
    for part in sorted(place.name for place in (PLACE / "parts").iterdir()):
        with subtests.test(part=part):
            named = [(PLACE / size / "kustomization.yaml").read_text() for size in SIZES]
            assert any(f"../parts/{part}" in text for text in named)
