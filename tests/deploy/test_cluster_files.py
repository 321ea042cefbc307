"""The files for clusters are what their readers take: Ray's launcher, Ray's reader of manifests, KubeRay."""

import re
from copy import deepcopy
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.deploy.kubernetes_schemas import KUBERAY, OPERATORS
from tests.deploy.lock import requirements

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = REPOSITORY / "deploy" / "ray"
pytestmark = [pytest.mark.ray, pytest.mark.xdist_group("ray"), pytest.mark.filterwarnings("ignore")]
LAUNCHER = yaml.safe_load((FILES / "cluster.yaml").read_text())
VOLUME, MANIFEST = yaml.safe_load_all((FILES / "profile.yaml").read_text())


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
    operator = jsonschema.Draft7Validator(OPERATORS["ray.io/v1", "RayCluster"])
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
