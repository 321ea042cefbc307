"""`make cluster-check` starts the pods of deploy/kubernetes/school on this machine, without Kubernetes.

Each pod has a network of its own, with an address in one bridge; each container has processes of its own,
and files that are read-only but for the volumes of its manifest (bubblewrap). The raylet runs as
the manifest says, head and worker as KubeRay makes it of `rayStartParams`. This machine's Python stands for
the image, and a small program for the app. Needs Linux, root, `bwrap`, `ip` and `ss`.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.deploy.manifests import Document, of, one, rendered

REPOSITORY = Path(__file__).resolve().parents[1]
SIZE = "school"
ADDRESSES = {"head": "10.89.0.2", "worker": "10.89.0.3", "app": "10.89.0.4"}
OURS = {"/dev", "/models", "/proc", "/run", "/tmp"}  # of the root: made anew for each container
SECONDS = 120
# What the engine does: named actors by bytes of memory, an answer too large for a message.
DRIVER = """
import json, os, ray
ray.init(address=os.environ["ATTENTION_CLUSTER"], log_to_driver=False, namespace="check")
@ray.remote(num_cpus=0)
class Model:
    def place(self):
        return ray.util.get_node_ip_address()
    def answer(self):
        return bytes(5_000_000)
made = [
    Model.options(name=f"model-{number}", lifetime="detached", memory=500_000_000).remote()
    for number in range(4)
]
places = ray.get([model.place.remote() for model in made], timeout=60)
sizes = {len(answer) for answer in ray.get([model.answer.remote() for model in made], timeout=60)}
free = {node["NodeManagerAddress"]: node["Resources"].get("memory", 0) for node in ray.nodes()}
print("FOUND", json.dumps([places, sorted(sizes), free]))
"""


@dataclass(frozen=True)
class Pod:
    """A pod: its name here, and the folder of its volumes."""

    name: str
    spec: Document
    volumes: Path

    def line(self, container: Document, command: list[str], **more: str) -> list[str]:
        """A command line that runs a command as a container of this pod."""
        line = ["ip", "netns", "exec", self.name, "bwrap", "--die-with-parent", "--unshare-pid"]
        line += ["--dev", "/dev", "--proc", "/proc"]
        for place in sorted({f"/{name}" for name in os.listdir("/")} - OURS):
            line += ["--ro-bind", place, place]
        line += ["--ro-bind", str(self.volumes.parent / "hosts"), "/etc/hosts"]
        for mount in sorted(container["volumeMounts"], key=lambda mount: mount["mountPath"]):
            bound = "--ro-bind" if mount.get("readOnly") else "--bind"
            line += [bound, str(self._volume(mount["name"])), mount["mountPath"]]
        line += ["--remount-ro", "/", "--chdir", str(REPOSITORY), "--clearenv"]
        environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", **more}
        for name, value in (environment | variables(container)).items():
            line += ["--setenv", name, value]
        person = str(self.spec["securityContext"]["runAsUser"])
        line += ["setpriv", f"--reuid={person}", f"--regid={person}", "--clear-groups"]
        return [*line, "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", *command]

    def _volume(self, name: str) -> Path:
        folder = self.volumes / name
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o777)
        volume = next((one for one in self.spec["volumes"] if one["name"] == name), {})
        if "secret" in volume:
            shutil.copy(self.volumes.parent / "auth_token", folder / "auth_token")
        return folder


def variables(container: Document) -> dict[str, str]:
    """The environment of a container, with $(NAME) replaced as Kubernetes does."""
    settings = one(SIZE, "ConfigMap")["data"]
    found: dict[str, str] = {}
    for variable in container.get("env", []):
        source = variable.get("valueFrom", {}).get("configMapKeyRef", {})
        value = settings[source["key"]] if source else variable["value"]
        for name, known in found.items():
            value = value.replace(f"$({name})", known)
        found[variable["name"]] = value.replace("/app", str(REPOSITORY))
    return found


def started_by_kuberay(group: Document, head: str = "") -> list[str]:
    """The command that KubeRay makes for the head, or for a worker that joins a head."""
    asked = group["rayStartParams"] | {"metrics-export-port": "8080"}
    (container,) = group["template"]["spec"]["containers"]
    asked = {"num-cpus": container["resources"]["limits"]["cpu"]} | asked
    first = [f"--address={head}"] if head else ["--head"]
    options = [f"--{name}={value}" for name, value in asked.items()]
    return ["ray", "start", *first, "--block", *options]


@contextmanager
def network() -> Iterator[None]:
    """Pods' networks, joined by a bridge. It lies in a network of its own, which goes with this process."""
    setup = ["ip link set lo up", "ip link add pods type bridge", "ip link set pods up"]
    for name, address in ADDRESSES.items():
        setup += [
            f"ip netns add {name}",
            f"ip link add {name} type veth peer name eth0 netns {name}",
            f"ip link set {name} master pods up",
            f"ip -n {name} addr add {address}/24 dev eth0",
            f"ip -n {name} link set eth0 up",
            f"ip -n {name} link set lo up",
            f"ip -n {name} route add default via 10.89.0.1",  # where Ray looks for its own address
        ]
    for line in setup:
        subprocess.run(line.split(), check=True)
    yield
    for name in ADDRESSES:
        subprocess.run(["ip", "netns", "delete", name], check=True)


@contextmanager
def running(line: list[str], log: Path) -> Iterator[None]:
    with log.open("wb") as said:
        process = subprocess.Popen(line, stdout=said, stderr=said, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_for_port(pod: str, port: int, log: Path) -> None:
    """Waits until a port of a pod is listened on: what the probes of the manifests ask."""
    deadline = time.monotonic() + SECONDS
    while port not in listening(pod):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{pod} does not listen on {port}:\n{log.read_text()[-3000:]}")
        time.sleep(0.5)


def listening(pod: str) -> set[int]:
    """The ports that others could reach in a pod."""
    line = ["ip", "netns", "exec", pod, "ss", "-Hltn"]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    places = [row.split()[3].rpartition(":") for row in said.splitlines()]
    return {int(port) for host, _, port in places if not host.startswith(("127.", "[::1]"))}


def allowed() -> set[int]:
    """The ports of the policies, for Ray and for Prometheus, and that of Ray's agent, closed to all."""
    policy = next(one for one in of(SIZE, "NetworkPolicy") if one["metadata"]["name"] == "ray")
    ranges = policy["spec"]["ingress"][0]["ports"]
    return {8080, 52365} | {
        port for one in ranges for port in range(one["port"], one["endPort"] + 1)
    }


def pods(place: Path) -> dict[str, Pod]:
    """The pods to start; their volumes lie in a folder."""
    cluster = one(SIZE, "RayCluster")["spec"]
    name = one(SIZE, "ConfigMap")["data"]["CLUSTER"]
    (place / "hosts").write_text(f"127.0.0.1 localhost\n{ADDRESSES['head']} {name}-head-svc\n")
    (place / "auth_token").write_text(os.urandom(32).hex())
    specs = {
        "head": cluster["headGroupSpec"]["template"]["spec"],
        "worker": cluster["workerGroupSpecs"][0]["template"]["spec"],
        "app": one(SIZE, "Deployment")["spec"]["template"]["spec"],
    }
    return {name: Pod(name, spec, place / name) for name, spec in specs.items()}


def prove(what: str, holds: bool) -> None:
    print(f"{'yes' if holds else 'NO '}  {what}", flush=True)
    if not holds:
        raise SystemExit(1)


def check(place: Path, stack: ExitStack) -> None:
    """Starts head, worker and replica, and tries what they promise."""
    made, cluster = pods(place), one(SIZE, "RayCluster")["spec"]
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": (place / "auth_token").read_text()}
    address = f"{one(SIZE, 'ConfigMap')['data']['CLUSTER']}-head-svc:6379"
    groups = {
        "head": (cluster["headGroupSpec"], ""),
        "worker": (cluster["workerGroupSpecs"][0], address),
    }
    for (name, (group, head)), port in zip(groups.items(), (6379, 6380), strict=True):
        (container,) = made[name].spec["containers"]
        line = made[name].line(container, started_by_kuberay(group, head), **token)
        stack.enter_context(running(line, place / f"{name}.log"))
        wait_for_port(name, port, place / f"{name}.log")
    (raylet,), (app,) = made["app"].spec["initContainers"], made["app"].spec["containers"]
    arguments = [one.replace("$(ATTENTION_CLUSTER)", address) for one in raylet["args"]]
    line = made["app"].line(raylet, [*raylet["command"], *arguments])
    stack.enter_context(running(line, place / "raylet.log"))
    wait_for_port("app", 6380, place / "raylet.log")
    driver = made["app"].line(app, [sys.executable, "-c", DRIVER])
    found = subprocess.run(driver, capture_output=True, text=True, timeout=SECONDS)
    answers = [line for line in found.stdout.splitlines() if line.startswith("FOUND ")]
    if not answers:
        raise SystemExit(f"The driver failed:\n{found.stdout[-2000:]}{found.stderr[-4000:]}")
    places, sizes, memory = json.loads(answers[0].removeprefix("FOUND "))
    prove("a program beside the raylet, with other processes, joins the cluster", True)
    prove("models lie with the worker, and nowhere else", set(places) == {ADDRESSES["worker"]})
    prove("large answers arrive", sizes == [5_000_000])
    offers = {name for name, where in ADDRESSES.items() if memory.get(where)}
    prove("neither head nor replica offers memory for models", offers == {"worker"})
    for name in ADDRESSES:
        strange = listening(name) - allowed()
        prove(f"{name} listens on ports of the policies only {sorted(strange) or ''}", not strange)
    wrong = made["app"].line(app, ["ray", "health-check", "--address", address])
    wrong[wrong.index("RAY_AUTH_TOKEN_PATH") + 1] = "/etc/hostname"
    refused = subprocess.run(wrong, capture_output=True, timeout=SECONDS).returncode
    prove("another token is refused", refused != 0)
    right = made["app"].line(app, ["ray", "health-check", "--address", address])
    prove("ours is not", subprocess.run(right, timeout=SECONDS).returncode == 0)


def main() -> None:
    if os.geteuid() != 0 or not all(map(shutil.which, ("bwrap", "ip", "ss"))):
        sys.exit("This needs root, bwrap, ip and ss (Debian: bubblewrap, iproute2).")
    if sys.argv[1:] != ["inside"]:
        line = ["unshare", "--net", "--mount", sys.executable, "-m", __spec__.name, "inside"]
        sys.exit(subprocess.run(line, cwd=REPOSITORY, check=False).returncode)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    rendered(SIZE)
    with tempfile.TemporaryDirectory(prefix="cluster-") as place, network(), ExitStack() as stack:
        Path(place).chmod(0o755)
        check(Path(place), stack)


if __name__ == "__main__":
    main()
