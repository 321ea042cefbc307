"""`make image-check` goes through the Dockerfile without Docker: the same commands, on this machine.

Each stage gets a folder that stands for its file system, and its commands run inside it (bubblewrap).
The base image is this machine's own Python and system. Then the image's command is started as its
user does: everything read-only but /tmp, no right to anything, no network but its own loopback; its
health check has to succeed, and every page has to draw. Needs Linux, root and `bwrap`.
"""

import argparse
import asyncio
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from deploy.space import dockerfile
from tests.deploy.dockerfile import Instruction, context, instructions

REPOSITORY = Path(__file__).resolve().parents[1]
SECONDS_TO_BUILD, SECONDS_TO_START = 1800, 180
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")


@dataclass
class Stage:
    """One stage: the folder that is its file system, and what its instructions have set so far."""

    root: Path
    variables: dict[str, str] = field(default_factory=dict)  # of ARG and ENV
    folder: str = "/"
    user: str = "root"
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)

    def inside(self, command: list[str], *options: str, **more: str) -> list[str]:
        """A command line that runs a command inside the stage, with more variables if given."""
        line = ["bwrap", "--die-with-parent", "--cap-add", "ALL", *options]
        line += ["--proc", "/proc", "--dev", "/dev"]
        for place in filter(os.path.exists, SYSTEM):
            line += ["--ro-bind", place, place]
        line += ["--ro-bind", sys.base_prefix, sys.base_prefix]
        line += ["--chdir", self.folder, "--clearenv"]
        for name, value in (self.variables | more).items():
            line += ["--setenv", name, value]
        return [*line, *command]


class Build:
    """The stages of a Dockerfile, made one after the other under one folder."""

    def __init__(self, place: Path, given: dict[str, str], shared: list[str]) -> None:
        self.place, self.given, self.shared = place, given, shared
        self.stages: dict[str, Stage] = {}
        self.pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}

    def run(self, steps: list[Instruction]) -> Stage:
        """Does every instruction; returns the last stage."""
        stage = Stage(self.place)
        for step in steps:
            print(f"{step.word} {step.rest}"[:150], flush=True)
            if step.word == "FROM":
                stage = self._stage(step)
            elif stage.root != self.place:
                getattr(self, f"_{step.word.lower()}")(stage, step)
        return stage

    def _stage(self, step: Instruction) -> Stage:
        name = step.rest.split(" AS ")[1] if " AS " in step.rest else "last"
        root = self.place / name
        for folder in ("etc", "opt", "tmp", "home", "root", "var/tmp", "app", "usr", "dev", "proc"):
            (root / folder).mkdir(parents=True)
        (root / sys.base_prefix.strip("/")).mkdir(parents=True)  # its parents open to every user
        (root / "tmp").chmod(0o1777)
        shutil.copytree("/etc", root / "etc", symlinks=True, dirs_exist_ok=True)
        for known in ("passwd", "group", "shadow", "gshadow"):
            _keep_the_systems_own(root / "etc" / known)
        path = f"{sys.base_prefix}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        self.stages[name] = Stage(root, {"PATH": path, "HOME": "/root"})
        return self.stages[name]

    def _arg(self, stage: Stage, step: Instruction) -> None:
        name, _, default = step.rest.partition("=")
        stage.variables[name] = self.given.get(name, default.strip('"'))

    def _env(self, stage: Stage, step: Instruction) -> None:
        for pair in step.filled(stage.variables).split():
            name, _, value = pair.partition("=")
            stage.variables[name] = value

    def _run(self, stage: Stage, step: Instruction) -> None:
        options = ["--bind", str(stage.root), "/"]
        for place in self.shared:
            options += ["--ro-bind", place, place]
        line = stage.inside(step.command, *options, **self.pip)
        subprocess.run(line, check=True, timeout=SECONDS_TO_BUILD)

    def _copy(self, stage: Stage, step: Instruction) -> None:
        *sources, target = step.rest.split()
        place = stage.root / os.path.join(stage.folder, target).strip("/")
        if sources[0].startswith("--from="):
            other = self.stages[sources[0].partition("=")[2]]
            shutil.copytree(other.root / sources[1].strip("/"), place, symlinks=True)
            return
        for origin in (REPOSITORY / source for source in sources):
            if origin.is_file():
                shutil.copy(origin, place)
                continue
            for file in context(REPOSITORY, (REPOSITORY / ".dockerignore").read_text()):
                if file.is_relative_to(origin):
                    goal = place / file.relative_to(origin)
                    goal.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, goal)

    def _workdir(self, stage: Stage, step: Instruction) -> None:
        stage.folder = step.rest

    def _user(self, stage: Stage, step: Instruction) -> None:
        stage.user = step.rest

    def _expose(self, stage: Stage, step: Instruction) -> None:
        """Says something to people only."""

    def _healthcheck(self, stage: Stage, step: Instruction) -> None:
        stage.health = step.command

    def _cmd(self, stage: Stage, step: Instruction) -> None:
        stage.command = step.command


def _keep_the_systems_own(file: Path) -> None:
    """Leaves this machine's people out of a list of users or groups: no base image has them."""
    people = {user.pw_name for user in pwd.getpwall() if 1000 <= user.pw_uid < 65534}
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if line.partition(":")[0] not in people))


def user_of(stage: Stage) -> tuple[int, str]:
    """The number and the home of the image's user. Raises ValueError where that is root."""
    lines = (stage.root / "etc/passwd").read_text().splitlines()
    found = next(line.split(":") for line in lines if line.split(":")[0] == stage.user)
    if int(found[2]) == 0:
        raise ValueError("The image runs as root.")
    return int(found[2]), found[5]


@contextmanager
def started(stage: Stage, log: Path) -> Iterator[int]:
    """Starts the image's command as `docker run --read-only --tmpfs /tmp` does; gives its process."""
    reading, writing = os.pipe()
    alone = [f"--unshare-{what}" for what in ("pid", "net", "ipc", "uts", "cgroup")]
    line = as_visitor(stage, stage.command, *alone, "--info-fd", str(writing))
    with log.open("wb") as said:
        process = subprocess.Popen(
            line, stdin=subprocess.DEVNULL, stdout=said, stderr=said, pass_fds=[writing]
        )
        os.close(writing)
        try:
            with os.fdopen(reading) as told:
                yield int(json.load(told)["child-pid"])
        finally:
            process.terminate()
            process.wait(timeout=30)


def as_visitor(stage: Stage, command: list[str], *options: str) -> list[str]:
    """A command as the image's user, who may write in /tmp only and has no rights."""
    number, home = user_of(stage)
    become = ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups"]
    become += ["--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"]
    places = ["--ro-bind", str(stage.root), "/", "--perms", "1777", "--tmpfs", "/tmp"]
    return stage.inside([*become, *command], *options, *places, HOME=home)


def wait_until_healthy(stage: Stage, process: int, log: Path) -> float:
    """Runs the health check until it succeeds; returns the seconds. Raises TimeoutError."""
    began = time.monotonic()
    line = ["nsenter", f"--target={process}", "--net", *as_visitor(stage, stage.health)]
    while time.monotonic() - began < SECONDS_TO_START:
        if subprocess.run(line, timeout=60, check=False).returncode == 0:
            return time.monotonic() - began
        time.sleep(0.5)
    raise TimeoutError(f"The health check never succeeded:\n{log.read_text()[-4000:]}")


async def draw_every_page(port: int) -> None:
    """Opens every page by the websocket. Raises ValueError where one shows an error."""
    from tests.visitor import Visitor
    from viz.state.navigation import PAGES

    for page in PAGES:
        async with Visitor(port, page.address, "") as visitor:
            print(f"  /{page.address}: {visitor.bytes:,} bytes", flush=True)
            if visitor.troubles:
                raise ValueError(f"/{page.address} says: {visitor.troubles}")


def check(stage: Stage, log: Path) -> None:
    """Starts the image, waits for its health check, draws every page, reads its log."""
    with started(stage, log) as process:
        print(f"healthy after {wait_until_healthy(stage, process, log):.1f} s")
        port = stage.variables["STREAMLIT_SERVER_PORT"]
        inside = ["nsenter", f"--target={process}", "--net", sys.executable, "-m", __spec__.name]
        drawn = subprocess.run([*inside, "--draw", port], cwd=REPOSITORY, timeout=300).returncode
    said = log.read_text()
    wrong = [word for word in ("Traceback", "Read-only", "Permission denied") if word in said]
    if wrong or drawn != 0:
        raise ValueError(f"A page shows an error, or the log speaks of {wrong}:\n{said[-4000:]}")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE")
    asked.add_argument("--share", action="append", default=[], help="a folder that pip may read")
    asked.add_argument("--draw", type=int, metavar="PORT", help=argparse.SUPPRESS)
    asked.add_argument("--space", action="store_true", help="the image of a Space of Hugging Face")
    given = asked.parse_args()
    if given.draw:
        asyncio.run(draw_every_page(given.draw))
        return
    if os.geteuid() != 0 or shutil.which("bwrap") is None:
        sys.exit("This needs root and bwrap (Debian: apt-get install bubblewrap).")
    with tempfile.TemporaryDirectory(prefix="image-") as place:
        arguments = dict(pair.split("=", 1) for pair in given.build_arg)
        build = Build(Path(place), arguments, given.share)
        text = dockerfile() if given.space else (REPOSITORY / "Dockerfile").read_text()
        stage = build.run(instructions(text))
        check(stage, Path(place) / "log")
    print("The image builds, starts without a right or a network, and draws every page.")


if __name__ == "__main__":
    main()
