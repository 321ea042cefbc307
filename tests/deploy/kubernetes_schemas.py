"""Manifests for Kubernetes, held against the schemas of their kinds.

Kubernetes' own kinds: the schemas of its releases (`kubernetes-validate`), in which no unknown field passes.
Of the two kinds that operators add, the fields that are used here: KubeRay's RayCluster (ray.io/v1, as of
its release 1.7) and the Prometheus Operator's PodMonitor. The pods in a RayCluster are Kubernetes' own again.
"""

from functools import cache
from typing import Any

import jsonschema
from kubernetes_validate import utils
from referencing import Registry, Resource

from tests.deploy.manifests import Document, pods

VERSIONS = (
    "1.30",
    "1.37",
)  # of Kubernetes: the oldest that the manifests are for, and the newest known here


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


def _strict(required: str = "", **fields: Document) -> Document:
    """An object that has these fields and no others."""
    return {
        "type": "object",
        "properties": fields,
        "required": required.split(),
        "additionalProperties": False,
    }


def _one_of(*values: str) -> Document:
    return {"enum": list(values)}


_TEXT: Document = {"type": "string"}
_YES: Document = {"type": "boolean"}
_COUNT: Document = {"type": "integer", "minimum": 0}
_OBJECT: Document = {"type": "object"}  # looked at elsewhere: it is one of Kubernetes' own
_LIST: Document = {"type": "array", "items": _OBJECT}
_TEXTS: Document = {"type": "object", "additionalProperties": _TEXT}
_HEAD = {
    "headService": _OBJECT,
    "labels": _TEXTS,
    "rayStartParams": _TEXTS,
    "serviceType": _one_of("ClusterIP", "NodePort", "LoadBalancer"),
    "template": _OBJECT,
}
_WORKERS = {
    "groupName": _TEXT,
    "idleTimeoutSeconds": _COUNT,
    "labels": _TEXTS,
    "maxReplicas": _COUNT,
    "minReplicas": _COUNT,
    "rayStartParams": _TEXTS,
    "replicas": _COUNT,
    "template": _OBJECT,
}
_RAY_CLUSTER = _strict(
    "headGroupSpec",
    authOptions=_strict(mode=_one_of("disabled", "token"), secretName=_TEXT),
    autoscalerOptions=_strict(
        env=_LIST,
        idleTimeoutSeconds=_COUNT,
        image=_TEXT,
        resources=_OBJECT,
        securityContext=_OBJECT,
        upscalingMode=_one_of("Default", "Aggressive", "Conservative"),
        version=_one_of("v1", "v2"),
        volumeMounts=_LIST,
    ),
    enableInTreeAutoscaling=_YES,
    gcsFaultToleranceOptions=_strict(
        externalStorageNamespace=_TEXT,
        redisAddress=_TEXT,
        redisPassword=_OBJECT,
        redisUsername=_OBJECT,
    ),
    headGroupSpec=_strict("template rayStartParams", **_HEAD),
    rayVersion=_TEXT,
    suspend=_YES,
    upgradeStrategy=_strict(type=_one_of("Recreate", "None")),
    workerGroupSpecs={
        "type": "array",
        "items": _strict("groupName template rayStartParams", **_WORKERS),
    },
)
_POD_MONITOR = _strict(
    "selector podMetricsEndpoints",
    podMetricsEndpoints={
        "type": "array",
        "items": _strict("port", port=_TEXT, path=_TEXT, interval=_TEXT),
    },
    selector=_strict(matchLabels=_TEXTS),
)


def _kind(spec: Document) -> Document:
    return _strict(
        "apiVersion kind metadata spec", apiVersion=_TEXT, kind=_TEXT, metadata=_OBJECT, spec=spec
    )


OPERATORS = {
    ("ray.io/v1", "RayCluster"): _kind(_RAY_CLUSTER),
    ("monitoring.coreos.com/v1", "PodMonitor"): _kind(_POD_MONITOR),
}
