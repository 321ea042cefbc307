"""The wheel in an environment of its own, and a folder of somebody else's to run it in."""

import json
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from zipfile import Path as ZipPlace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.rewriting import PACKAGE
from model.system.version import VERSION
from tests.deploy.lock import asked
from tools.reference import LETTERS, MODULES, TEXT

# What the wheel needs only for models of Hugging Face's library or for notebooks, and may miss.
EXTRAS = ("gguf", "sentencepiece", "transformers", "anywidget")
THEIRS = {
    "model.py": 'raise RuntimeError("somebody else\'s model.py was imported")\n',
    "app.py": 'raise RuntimeError("somebody else\'s app.py was imported")\n',
    "viz/__init__.py": 'raise RuntimeError("somebody else\'s viz was imported")\n',
    "pages/home.py": 'raise RuntimeError("somebody else\'s page was run")\n',
    "static/katex/katex.min.js": "somebody else's",
    ".streamlit/config.toml": '[server]\nenableStaticServing = false\nallowedHosts = ["elsewhere"]\n',
}


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, without the packages of its extras."""

    place: Path
    wheel: Path

    @property
    def python(self) -> Path:
        return self.place / "environment" / "bin" / "python"

    @property
    def command(self) -> Path:
        return self.python.with_name("attention-lens")

    @property
    def packages(self) -> Path:
        """Where the wheel was unpacked."""
        return next(self.place.glob("environment/lib/python*/site-packages"))

    @property
    def folder(self) -> Path:
        """Somebody else's, whose files have the names of ours."""
        return self.place / "theirs"

    def run(self, *command: str | Path, **how: object) -> subprocess.CompletedProcess[str]:
        """Runs a program of the environment in the folder, to its end."""
        return subprocess.run(
            list(map(str, command)), cwd=self.folder, capture_output=True, text=True, **how
        )

    def examples(self) -> tuple[dict[str, str], list[str], int, list[str]]:
        """What `core_examples.py` tells of the package and of its modules whose names are all public."""
        whole = [
            f"{PACKAGE}.{name}"
            for name, names in MODULES.items()
            if not names and self.packages.joinpath(PACKAGE, *name.split(".")).is_dir()
        ]
        (self.folder / "letters.txt").write_text(LETTERS, encoding="utf-8")
        program = Path(__file__).with_name("core_examples.py")
        ended = self.run(self.python, program, TEXT, PACKAGE, *whole, check=True)
        refused, printed, ran, packages = json.loads(ended.stdout)
        return refused, printed, ran, packages


def install(
    wheel: Path,
    place: Path,
    *,
    extra: str | None = None,
    core: bool = False,
    options: Sequence[str] = (),
) -> Installed:
    """Installs a wheel into an empty environment.

    extra: with all that it needs and this extra ("": none), from the package index. None: what it needs comes
    from the environment of the tests, by links. core: of these only what it needs without any extra. options:
    of pip.
    """
    made = Installed(place, wheel)
    venv.create(place / "environment", with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(made.python), "install", "--quiet"]
    pip += ["--no-compile", "--disable-pip-version-check", "--no-input"]
    if extra is None:
        _share(place / "shared", made.packages, {*_files(wheel)} if core else None)
        pip += ["--no-deps", "--no-index"]
    wanted = f"{made.wheel}[{extra}]" if extra else str(made.wheel)
    subprocess.run([*pip, *options, wanted], check=True, timeout=1800)
    for name, content in THEIRS.items():
        file = made.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return made


def _share(place: Path, packages: Path, names: set[str] | None) -> None:
    """Lends another environment the packages of this one: files and folders of these names; None: all but
    those of `EXTRAS`."""
    ours = Path(sysconfig.get_path("purelib"))
    shared = place / ours.name  # Streamlit asks for this name
    shared.mkdir(parents=True)
    for path in ours.iterdir():
        lent = not path.name.startswith(EXTRAS) if names is None else path.name in names
        if path.suffix != ".pth" and lent:
            (shared / path.name).symlink_to(path)
    (packages / "shared.pth").write_text(f"{shared}\n")


def _files(wheel: Path) -> Iterator[str]:
    """What lies in the folder of packages of what a wheel needs without extras, and of what that needs."""
    about = metadata.PathDistribution(ZipPlace(wheel) / f"{PACKAGE}-{VERSION}.dist-info")
    wanted = [Requirement(line) for line in about.requires or ()]
    for name in {canonicalize_name(line.name) for _, line in asked(wanted, {})}:
        yield from {file.parts[0] for file in metadata.files(name) or ()}
