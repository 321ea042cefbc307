"""A Space of Hugging Face that runs this app: the Dockerfile it builds, and the files it holds."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


def dockerfile() -> str:
    """The app's own Dockerfile, and after it what a Space needs."""
    return "\n".join(file.read_text("utf-8") for file in (ROOT / "Dockerfile", HERE / "Dockerfile"))


def contents() -> list[str]:
    """The files and folders that the image takes, as .dockerignore names them."""
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    return [line.removeprefix("!") for line in lines if line.startswith("!")]
