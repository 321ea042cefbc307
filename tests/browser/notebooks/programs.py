"""Real notebook programs on this machine alone: each in a folder of its own, on a free port, with a token."""

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.server import REPOSITORY, Server, free_port

GUARD = Path(__file__).with_name("guard")


@dataclass
class Program:
    """A notebook program that runs, and the folder that it shows."""

    server: Server
    folder: Path
    token: str

    @property
    def way_out(self) -> Path:
        """What its processes, kernels included, tried to reach beyond this machine; no file while nothing."""
        return way_out(self.folder)


def way_out(folder: Path) -> Path:
    return folder.parent / "way_out"


def surroundings(folder: Path) -> dict[str, str]:
    """The environment of a program and of its kernels."""
    paths = [str(GUARD), str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
    homes = {f"XDG_{name}_HOME": str(folder.parent / name) for name in ("CONFIG", "STATE", "DATA")}
    return {"PYTHONPATH": os.pathsep.join(paths), "WAY_OUT": str(way_out(folder)), **homes}


@contextmanager
def running(
    folder: Path, module: str, arguments: list[str], until: str, more: dict[str, str], token: str
) -> Iterator[Program]:
    server = Server(
        folder.parent / "said", (module, *arguments), surroundings(folder) | more, free_port()
    )
    server.program = [part.replace("PORT", str(server.port)) for part in server.program]
    server.start()
    try:
        server.wait(until)
        yield Program(server, folder, token)
    finally:
        server.end()


@contextmanager
def jupyterlab(folder: Path, theme: str = "JupyterLab Light") -> Iterator[Program]:
    """JupyterLab, without its own questions for news and newer versions."""
    themes = folder.parent / "settings/@jupyterlab/apputils-extension/themes.jupyterlab-settings"
    themes.parent.mkdir(parents=True)
    themes.write_text(json.dumps({"theme": theme}))
    token = secrets.token_hex(16)
    arguments = [
        "--no-browser",
        "--allow-root",
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.port=PORT",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={folder}",
        f"--IdentityProvider.token={token}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
    ]
    kinds = ("JUPYTER_CONFIG", "JUPYTER_DATA", "JUPYTER_RUNTIME")
    more = {f"{kind}_DIR": str(folder.parent / kind) for kind in kinds}
    more |= {
        "JUPYTERLAB_SETTINGS_DIR": str(folder.parent / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder.parent / "workspaces"),
        "IPYTHONDIR": str(folder.parent / "ipython"),
    }
    with running(folder, "jupyterlab", arguments, "/api", more, token) as program:
        yield program


@contextmanager
def marimo(notebook: Path) -> Iterator[Program]:
    """marimo with one notebook, whose cells it runs at once, without its question for newer versions."""
    token = secrets.token_hex(16)
    settings = notebook.parents[1] / "CONFIG" / "marimo" / "marimo.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("[runtime]\nauto_instantiate = true\n", encoding="utf-8")
    arguments = ["edit", str(notebook), "--headless", "--no-sandbox", "--skip-update-check"]
    arguments += ["--host", "127.0.0.1", "--port", "PORT", "--token-password", token]
    with running(notebook.parent, "marimo", arguments, "/health", {}, token) as program:
        yield program
