"""`make wheel-check` installs the wheel with all that it needs into an empty environment, and runs it there.

pip resolves every requirement from the package index. Then, in a folder of somebody else's, a model reads a
text, the command records a file, and the app answers. Arguments are options of pip.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from deploy.wheel import build_wheel
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
        for extra in ("", "hub"):
            place = Path(folder) / (extra or "plain")
            place.mkdir()
            began = time.monotonic()
            made = install(wheel, place, extra=extra, options=options)
            told = f"{made.wheel.name}{f'[{extra}]' if extra else ''}"
            size = sum(file.lstat().st_size for file in made.packages.rglob("*")) / 1e9
            print(f"{told}: {made.wheel.stat().st_size / 1e6:.1f} MB", flush=True)
            seconds = time.monotonic() - began
            print(f"installed in {seconds:.0f} s, with all that it needs {size:.2f} GB", flush=True)
            run(made)


def run(made: Installed) -> None:
    """Raises what fails; says how long imports take."""
    for turn in ("first", "second"):  # in the first, Python compiles what it imports
        named, torch, used, check = json.loads(
            made.run(made.python, "-c", TIMED, check=True).stdout
        )
        print(f"{turn}: import attention_lens {named:.2f} s, PyTorch {torch:.2f} s, load_model "
              f"{used:.2f} s; a recorded pass is right within {check:.1e}", flush=True)  # fmt: skip
    (made.folder / "text.txt").write_text("The cat sat on the mat\n")
    line = [made.command, "record", "house-gpt", "text.txt", "-o", "trace.safetensors"]
    print(made.run(*line, check=True).stdout.strip())
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
