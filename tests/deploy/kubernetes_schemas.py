"""Manifests for Kubernetes, held against the schemas of their kinds.

Kubernetes' own kinds: the schemas of its releases (`kubernetes-validate`), in which no unknown field passes.
Of the two kinds that operators add: KubeRay's own schema of a RayCluster, whose pods are Kubernetes' own,
and of the Prometheus Operator's PodMonitor the fields that are used here.
"""

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from kubernetes_validate import utils
from referencing import Registry, Resource

from tests.deploy.manifests import Document, pods

# Of Kubernetes the oldest that the manifests are for, and the newest known here; of KubeRay the oldest.
VERSIONS = "1.30", "1.37"
KUBERAY = "1.5.1"
# The openAPIV3Schema of KubeRay's ray-operator/config/crd/bases/ray.io_rayclusters.yaml (Apache 2.0).
SCHEMA = Path(__file__).with_name(f"raycluster-{KUBERAY}.json.xz")


def problems(document: Document) -> list[str]:
    """What the schemas find wrong with a manifest, each with the version of Kubernetes that says so."""
    kind = document["apiVersion"], document["kind"]
    if kind in OPERATORS:
        own = jsonschema.Draft202012Validator(OPERATORS[kind]).iter_errors(document)
        found = [f"{error.json_path}: {error.message}" for error in own]
        return found + [problem for pod in pods(document) for problem in problems(pod)]
    return [
        f"Kubernetes {version}: {error.json_path}: {error.message}"
        for version in VERSIONS
        for error in _validator(version, *kind).iter_errors(document)
    ]


@cache
def _validator(version: str, api: str, kind: str) -> jsonschema.Draft202012Validator:
    group, _, of_group = api.rpartition("/")
    name = f"{kind}-{group.split('.')[0]}-{of_group}" if group else f"{kind}-{of_group}"
    schema = utils.schema_contents(f"{_folder(version)}/{name.lower()}.json", version)
    registry = Resource.from_contents(schema) @ (_definitions(version) @ Registry())
    return jsonschema.Draft202012Validator(schema, registry=registry)


@cache
def _definitions(version: str) -> Resource[Any]:
    return Resource.from_contents(
        utils.schema_contents(f"{_folder(version)}/_definitions.json", version)
    )


def _folder(version: str) -> str:
    return f"kubernetes-json-schema/v{version}.0-local-strict"


def closed(schema: Any) -> Any:
    """A schema of Kubernetes that takes no unknown names, as `kubectl apply` does not."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(one) for name, one in schema.items()}
    return (
        made | {"additionalProperties": False}
        if isinstance(schema.get("properties"), dict)
        else made
    )


def _strict(required: str, **fields: Document) -> Document:
    """An object that has these fields and no others."""
    return closed({"type": "object", "properties": fields, "required": required.split()})


_TEXT: Document = {"type": "string"}
_TEXTS: Document = {"type": "object", "additionalProperties": _TEXT}
_ENDPOINT = _strict("port", port=_TEXT, path=_TEXT, interval=_TEXT)
_POD_MONITOR = _strict(
    "selector podMetricsEndpoints",
    podMetricsEndpoints={"type": "array", "items": _ENDPOINT},
    selector=_strict("", matchLabels=_TEXTS),
)
OPERATORS: dict[tuple[str, str], Document] = {
    ("ray.io/v1", "RayCluster"): closed(json.loads(lzma.decompress(SCHEMA.read_bytes()))),
    ("monitoring.coreos.com/v1", "PodMonitor"): _strict("apiVersion kind metadata spec",
        apiVersion=_TEXT, kind=_TEXT, metadata={"type": "object"}, spec=_POD_MONITOR),
}  # fmt: skip
