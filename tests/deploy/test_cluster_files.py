"""The files for clusters are what their readers take: Ray's launcher, Ray's reader of manifests, KubeRay."""

import json
import lzma
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.deploy.lock import requirements

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = REPOSITORY / "deploy" / "ray"
pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.filterwarnings("ignore")]
LAUNCHER = yaml.safe_load((FILES / "cluster.yaml").read_text())
VOLUME, MANIFEST = yaml.safe_load_all((FILES / "profile.yaml").read_text())
# The openAPIV3Schema of KubeRay's ray-operator/config/crd/bases/ray.io_rayclusters.yaml (Apache 2.0), in the
# oldest version that the manifest is for.
KUBERAY = "1.5.1"
SCHEMA = Path(__file__).with_name(f"raycluster-{KUBERAY}.json.xz")


def test_ray_s_launcher_takes_the_cluster_file_and_no_mistyped_one() -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    validate_config(prepare_config(LAUNCHER))
    with pytest.raises(jsonschema.ValidationError, match="max_worker'"):
        validate_config(prepare_config(LAUNCHER | {"max_worker": 2}))


def test_ray_reads_the_workers_of_the_manifest_with_their_gpu() -> None:
    from ray.autoscaler._private.kuberay.autoscaling_config import (
        _derive_autoscaling_config_from_ray_cr as read,
    )

    found = read(MANIFEST | {"metadata": {"name": "it", "namespace": "default"}})[
        "available_node_types"
    ]
    assert found["headgroup"]["resources"]["CPU"] == 0  # it hands out, and works not itself
    assert (found["gpu"]["resources"]["CPU"], found["gpu"]["resources"]["GPU"]) == (4, 1)
    head = MANIFEST["spec"]["headGroupSpec"]["template"]["spec"]
    assert head["volumes"][0]["persistentVolumeClaim"]["claimName"] == VOLUME["metadata"]["name"]


def test_kuberay_s_operator_takes_the_manifest_and_no_mistyped_one() -> None:
    assert f"KubeRay {KUBERAY} or newer" in (FILES / "profile.yaml").read_text()
    assert (MANIFEST["apiVersion"], MANIFEST["kind"]) == ("ray.io/v1", "RayCluster")
    operator = jsonschema.Draft7Validator(closed(json.loads(lzma.decompress(SCHEMA.read_bytes()))))
    operator.validate(MANIFEST)
    for wrong, refused in (
        ({"authOptions": {"mode": "tokens"}}, "'tokens' is not one of"),
        ({"workerGroupSpec": []}, "'workerGroupSpec' was unexpected"),
        ({"headGroupSpec": {"rayStartParams": {}}}, "'template' is a required property"),
    ):
        mistyped = deepcopy(MANIFEST)
        mistyped["spec"] |= wrong
        with pytest.raises(jsonschema.ValidationError, match=refused):
            operator.validate(mistyped)


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


def test_both_ask_for_a_token_have_no_dashboard_and_the_pinned_version_of_ray() -> None:
    for commands in (LAUNCHER["head_start_ray_commands"], LAUNCHER["worker_start_ray_commands"]):
        assert "RAY_AUTH_MODE=token" in commands[-1]
    assert "--include-dashboard=false" in LAUNCHER["head_start_ray_commands"][-1]
    assert MANIFEST["spec"]["authOptions"] == {"mode": "token"}
    assert MANIFEST["spec"]["headGroupSpec"]["rayStartParams"]["include-dashboard"] == "false"
    (pin,) = requirements(REPOSITORY / "requirements-cluster.txt")
    assert str(pin.specifier) == f"=={MANIFEST['spec']['rayVersion']}"
    assert re.findall(r"ray\[default\]==([\d.]+)", (FILES / "cluster.yaml").read_text()) == [
        MANIFEST["spec"]["rayVersion"]
    ]
