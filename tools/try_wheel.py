"""`make wheel-check` installs the wheel with all that it needs into an empty environment, and runs it there:
without extras, with the app, and with the oldest versions that it takes.

pip resolves every requirement from the package index. Then, in a folder of somebody else's, a model reads a
text, the examples of the reference run, the command records a file, and the app answers, or says what to
install. Arguments are options of pip.
"""

import json
import os
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

from deploy.wheel import ROOT, build_wheel, requirements
from tests.deploy.installed import Installed, install
from tests.server import Server

TIMED = """
import json, sys, time
began = time.perf_counter()
import attention_lens
named = time.perf_counter()
import torch
started = time.perf_counter()
from attention_lens import load_model
used = time.perf_counter()
trace = load_model("house-gpt").trace("The cat sat on the mat")
print(json.dumps([named - began, started - named, used - started, trace.check()]))
"""


def main(options: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        wheel = Path(folder) / build_wheel(folder)
        ends = Path(folder) / "oldest.txt"
        ends.write_text("\n".join(oldest()), encoding="utf-8")
        every = "app,hub,notebook,profile"
        for extra, more in (("", ()), ("app", ()), (every, ("-c", str(ends)))):
            place = Path(folder) / (extra or "core")
            place.mkdir()
            began = time.monotonic()
            made = install(wheel, place, extra=extra, options=[*more, *options])
            asked = f"{made.wheel.name}{f'[{extra}]' if extra else ''}"
            print(f"{asked}: {made.wheel.stat().st_size / 1e6:.1f} MB", flush=True)
            seconds, needed = time.monotonic() - began, size(made.packages) / 1e9
            print(
                f"installed in {seconds:.0f} s, with all that it needs {needed:.2f} GB", flush=True
            )
            run(made)
            (start if extra else refuse)(made)


def oldest() -> Iterator[str]:
    """The oldest version of each package that the wheel takes, as constraints of pip."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for line in requirements(project):
        if line.startswith("Requires-Dist: "):
            needed = Requirement(line.removeprefix("Requires-Dist: "))
            ends = {one.operator: one.version for one in needed.specifier}
            yield f"{needed.name}=={ends['>=']}"


def size(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    return sum(one.lstat().st_size for one in (path, *path.rglob("*")) if not one.is_dir())


def imported(made: Installed) -> list[float]:
    """Seconds of the imports of the package's name, of PyTorch and of `load_model`; and how far a recorded
    pass is from its check."""
    numbers: list[float] = json.loads(made.run(made.python, "-c", TIMED, check=True).stdout)
    return numbers


def run(made: Installed) -> None:
    """Raises what fails; says how long imports take."""
    for turn in ("first", "second"):  # in the first, Python compiles what it imports
        named, torch, used, check = imported(made)
        print(f"{turn}: import attention_lens {named:.2f} s, PyTorch {torch:.2f} s, load_model "
              f"{used:.2f} s; a recorded pass is right within {check:.1e}", flush=True)  # fmt: skip
    refused, printed, ran, _ = made.examples()
    if printed:
        raise RuntimeError("".join(printed))
    print(f"{ran} lines of the reference's examples ran; refused: {', '.join(refused) or 'none'}")
    (made.folder / "text.txt").write_text("The cat sat on the mat\n")
    line = [made.command, "record", "house-gpt", "text.txt", "-o", "trace.safetensors"]
    print(made.run(*line, check=True).stdout.strip())


def refuse(made: Installed) -> None:
    """Raises RuntimeError where the command does not say what to install for the app."""
    ended = made.run(made.command, "house-gpt")
    if ended.returncode != 2 or "attention-lens[app]" not in ended.stderr:
        raise RuntimeError(f"The app was not refused in a sentence: {ended.stderr}")
    print(ended.stderr.strip())


def start(made: Installed) -> None:
    """Starts the app, and says how long it took."""
    server = Server(
        made.place / "log",
        ("attention_lens", "house-gpt", "The cat sat on the mat"),
        {"STREAMLIT_SERVER_HEADLESS": "true", "PYTHONPATH": ""},
        python=made.python,
        folder=made.folder,
    )
    began = time.monotonic()
    server.start()
    try:
        server.wait()
        print(f"the app was ready after {time.monotonic() - began:.1f} s", flush=True)
    finally:
        server.end()


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    main(sys.argv[1:])
