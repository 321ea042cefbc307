"""The files for clusters are what Ray reads: its launcher's schema, and its reader of KubeRay's manifests."""

import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.deploy.lock import requirements

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = REPOSITORY / "deploy" / "ray"
pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.filterwarnings("ignore")]
LAUNCHER = yaml.safe_load((FILES / "cluster.yaml").read_text())
VOLUME, MANIFEST = yaml.safe_load_all((FILES / "profile.yaml").read_text())
# Of KubeRay's definition of a RayCluster (ray.io/v1), whose operator refuses other names.
SPEC = {"authOptions", "headGroupSpec", "rayVersion", "workerGroupSpecs"}
GROUP = {"groupName", "maxReplicas", "minReplicas", "rayStartParams", "replicas", "template"}


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
    assert (MANIFEST["apiVersion"], MANIFEST["kind"]) == ("ray.io/v1", "RayCluster")
    assert set(MANIFEST["spec"]) == SPEC
    assert {name for one in MANIFEST["spec"]["workerGroupSpecs"] for name in one} == GROUP
    assert set(MANIFEST["spec"]["headGroupSpec"]) <= GROUP | {"serviceType"}
    head = MANIFEST["spec"]["headGroupSpec"]["template"]["spec"]
    assert head["volumes"][0]["persistentVolumeClaim"]["claimName"] == VOLUME["metadata"]["name"]


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
