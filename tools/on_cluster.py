"""A cluster of two machines, both on this computer, for apps whose models lie there.

`python -m tools.on_cluster COMMAND …` runs a command with one. The browser tests that take `server` then
look at an app on it; those that harm a process or its files start an app that has its models itself.
"""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

ADDRESS = "ON_CLUSTER"  # variable of the command
MEGABYTES = 12000  # of memory for models, of each machine: it is reckoned, not taken
SETTING, TOKEN = "ATTENTION_CLUSTER", "RAY_AUTH_TOKEN"


@contextmanager
def two_machines(megabytes: int = MEGABYTES) -> Iterator[dict[str, str]]:
    """Two machines with so much memory for models each; what an app must find in its environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            TOKEN, os.environ.get(TOKEN) or secrets.token_hex(32)
        )  # before Ray is imported
        from tests.model.serving.cluster.machines import REPOSITORY, Machines

        import ray  # isort: skip

        machines = Machines()
        try:
            with pytest.MonkeyPatch.context() as of_actors:
                of_actors.setenv("PYTHONPATH", str(REPOSITORY))
                machines.start(megabytes)
                machines.start(megabytes)
            yield {SETTING: machines.address, TOKEN: os.environ[TOKEN]}
        finally:
            ray.shutdown()  # of a test that has joined it
            machines.end()


def main() -> int:
    with two_machines() as settings:
        environment = os.environ | {ADDRESS: settings[SETTING]}
        return subprocess.run(sys.argv[1:], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
