"""`python -m deploy.space FOLDER` fills a folder with a Space: what git knows of the app, and two files."""

import shutil
import subprocess
import sys
from pathlib import Path

from deploy.space import HERE, ROOT, contents, dockerfile


def fill(folder: Path) -> None:
    """Writes the Space into a folder. Raises FileExistsError where the folder holds something already."""
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty.")
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--", *contents(), ".dockerignore"]
    known = subprocess.run(listed, check=True, capture_output=True, text=True).stdout
    for name in filter(None, known.split("\0")):
        goal = folder / name
        goal.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, goal)
    (folder / "Dockerfile").write_text(dockerfile(), "utf-8")
    shutil.copyfile(HERE / "README.md", folder / "README.md")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Name the folder: python -m deploy.space FOLDER")
    try:
        fill(Path(sys.argv[1]))
    except FileExistsError as refusal:
        sys.exit(str(refusal))
