"""Builds the wheel of this tree: `make wheel`, or `pip install .`, whose build backend this is (PEP 517).

The tree stands in the wheel as one package, `attention_lens`. The same tree gives the same bytes.
"""

import hashlib
import re
import sys
import tomllib
import zlib
from array import array
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from deploy.attention_lens import NAMES
from deploy.rewriting import PACKAGE, rewritten, shown

ROOT = Path(__file__).resolve().parents[1]
TREE = ("app.py", "model", "pages", "static", "viz", "words")
LEFT_OUT = {
    "model/profile/profiles",  # the wheel has no room for them
    # No formula has letters of these fonts:
    *(f"static/katex/fonts/KaTeX_Fraktur-{weight}.woff2" for weight in ("Bold", "Regular")),
    # Of which viz/explorer/bundled is made:
    *("viz/explorer/js", "viz/explorer/css", "viz/site/js", "viz/site/css"),
    *("viz/site/model/js", "viz/shell/head_picker/picker.js", "viz/shell/head_picker/picker.css"),
    *(f"viz/notebook/js/{name}.js" for name in ("katex", "main", "model", "offline", "theme")),
    *("viz/views/training/player/player.js", "viz/views/training/player/player.css"),
}
# Streamlit looks for its settings beside the file that it starts.
SETTINGS = {".streamlit/config.toml": f"{PACKAGE}/viz/server/.streamlit/config.toml"}
PINNED = tuple(
    f"requirements{kind}.txt" for kind in ("", "-notebook", "-mcp", "-cluster", "-quantized")
)
SHIPPED = {
    ".css",
    ".html",
    ".js",
    ".json",
    ".md",
    ".py",
    ".safetensors",
    ".tiktoken",
    ".toml",
    ".woff2",
    ".zlib",
}
READ = {".md", ".toml"}  # beside Python's own: what people read of these may name modules
# What the README says of this repository, and a reader of the package has no use for:
OF_THE_REPOSITORY = ("Two commands", "The map of the house", "Start here", "How to add things")
LINKS = {  # of the project, below its address
    "Homepage": "",
    "Documentation": "/blob/main/docs/package.md",
    "Source": "",
    "Issues": "/issues",
    "Changelog": "/blob/main/CHANGELOG.md",
}
# A picture or a link to a file of this repository, and the ends of lines after it.
LINK = r"(?P<words>!?\[[^\]]*\])\((?P<place>(?!https?:|#)[^)]*)\)(?P<ends>\n*)"
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the first time that an archive can hold


def build_wheel(
    wheel_directory: str, config_settings: object = None, metadata_directory: object = None
) -> str:
    """Writes the wheel into a folder; returns its file name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    name, version = PACKAGE, project["project"]["version"]
    about = f"{name}-{version}.dist-info"
    files = dict(sorted(package().items()))
    files |= {f"{about}/{file}": content for file, content in _about(project)}
    record = f"{about}/RECORD"
    rows = [f"{file},{_digest(content)},{len(content)}\n" for file, content in files.items()]
    files[record] = "".join([*rows, f"{record},,\n"]).encode()
    wheel = f"{name}-{version}-py3-none-any.whl"
    with ZipFile(Path(wheel_directory) / wheel, "w") as archive:
        for file, content in files.items():
            entry = ZipInfo(file, LONG_AGO)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, ZIP_DEFLATED, 9)
    return wheel


def package() -> dict[str, bytes]:
    """Every file of the package, by its place in the wheel."""
    tree = dict(_tree())
    modules = {module(file) for file in tree if file.endswith(".py")}
    found = {f"{PACKAGE}/{file}": content for file, content in tree.items()}
    for file in (ROOT / "deploy" / PACKAGE).glob("*.*"):
        found[f"{PACKAGE}/{file.name}"] = file.read_bytes()
    for file, place in SETTINGS.items():
        found[place] = (ROOT / file).read_bytes()
    found = dict(_with_packed_weights(found))
    for place, content in found.items():
        suffix = Path(place).suffix
        if suffix == ".py":
            try:
                text = rewritten(content.decode(), modules, NAMES)
            except ValueError as error:
                raise ValueError(f"{place}, {error}") from error
            found[place] = text.encode()
        elif suffix in READ:
            found[place] = shown(content.decode(), NAMES).encode()
    return found


def _with_packed_weights(files: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """The files, those of shipped weights as model/loading/shipped.py reads them."""
    assets = f"{PACKAGE}/model/assets/"
    for place, content in files.items():
        if place.startswith(assets) and place.endswith(".safetensors"):
            model = f"{assets}{place.removeprefix(assets).split('/')[0]}/model.safetensors"
            yield f"{place}.packed", _packed(content, b"" if place == model else files[model])
        else:
            yield place, content


def _packed(content: bytes, model: bytes) -> bytes:
    """Its difference from the trained model in 16-bit numbers: all low bytes, then all high ones."""
    before = model or bytes(len(content))
    pairs = zip(*(memoryview(each).cast("H") for each in (content, before)), strict=True)
    halves = array("H", [(new - old) & 0xFFFF for new, old in pairs]).tobytes()
    packer = zlib.compressobj(9, strategy=zlib.Z_HUFFMAN_ONLY)
    return packer.compress(halves[0::2] + halves[1::2]) + packer.flush()


def module(file: str) -> str:
    """The dotted name of a module; a package has the name of its folder."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _tree() -> Iterator[tuple[str, bytes]]:
    for part in TREE:
        for path in [ROOT / part, *(ROOT / part).rglob("*")]:
            file = path.relative_to(ROOT)
            places = {place.as_posix() for place in (file, *file.parents)}
            ours = path.suffix in SHIPPED or path.name == "LICENSE"
            if (
                ours
                and path.is_file()
                and "__pycache__" not in file.parts
                and not places & LEFT_OUT
            ):
                yield file.as_posix(), path.read_bytes()


def _about(project: dict[str, dict[str, object]]) -> Iterator[tuple[str, bytes]]:
    """The files about the wheel, by their names."""
    facts = project["project"]
    home = str(project["tool"]["attention-lens"]["home"]).rstrip("/")
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {facts['name']}",
        f"Version: {facts['version']}",
        f"Summary: {facts['description']}",
        f"Author: {', '.join(author['name'] for author in facts['authors'])}",
        *(f"Project-URL: {name}, {home}{place}" for name, place in LINKS.items() if home),
        f"Requires-Python: {facts['requires-python']}",
        f"License-Expression: {facts['license']}",
        *(f"License-File: {file}" for file in facts["license-files"]),
        f"Keywords: {','.join(facts['keywords'])}",
        *(f"Classifier: {each}" for each in facts["classifiers"]),
        *requirements(project),
        "Description-Content-Type: text/markdown",
    ]
    readme = (ROOT / facts["readme"]).read_text(encoding="utf-8")
    files = f"{home}/{{kind}}/v{facts['version']}/{{file}}" if home else ""
    yield "METADATA", ("\n".join(lines) + "\n\n" + _description(readme, files)).encode()
    yield (
        "WHEEL",
        b"Wheel-Version: 1.0\nGenerator: deploy.wheel\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    )
    groups = {"console_scripts": facts["scripts"], **facts["entry-points"]}
    entries = [
        "".join([f"[{group}]\n", *(f"{name} = {call}\n" for name, call in named.items())])
        for group, named in groups.items()
    ]
    yield "entry_points.txt", "\n".join(entries).encode()
    for file in facts["license-files"]:
        yield f"licenses/{file}", (ROOT / file).read_bytes()


def _description(readme: str, files: str) -> str:
    """The README for a reader of the package: its name in the examples, without the repository's commands.
    Lines that say that they are about this repository stay as they are.

    files: the address of a file of the repository, with places for its {kind} and {file}. Without one,
    pictures of the repository are left out, and a link to a page of it is its words.
    """

    def linked(found: re.Match[str]) -> str:
        words, place = found["words"], found["place"]
        picture = words.startswith("!")
        if not files:
            return "" if picture else words[1:-1] + found["ends"]
        kind = "raw" if picture else "tree" if (ROOT / place).is_dir() else "blob"
        return f"{words}({files.format(kind=kind, file=place)}){found['ends']}"

    for heading in OF_THE_REPOSITORY:
        readme = re.sub(rf"^## {heading}\n.*?(?=^## )", "", readme, flags=re.M | re.S)
    readme = re.sub(r"<!--.*?-->\n+", "", readme)
    readme = re.sub(r'make wheel\npip install "dist/[^"\[]*', 'pip install "attention-lens', readme)
    readme = re.sub(LINK, linked, readme)
    lines = readme.splitlines(keepends=True)
    return "".join(line if "in this repository" in line else shown(line, NAMES) for line in lines)


def requirements(project: dict[str, dict[str, object]]) -> Iterator[str]:
    """What the wheel needs, and what only its extras do: what the app and its notebooks pin, from the oldest
    version that was tried to the next large one."""
    wheel = project["tool"]["attention-lens"]
    yield from (f"Provides-Extra: {extra}" for extra in wheel["extras"])
    lines = [line for file in PINNED for line in (ROOT / file).read_text("utf-8").splitlines()]
    for line in lines:
        name, pinned, version = line.partition("==")
        if pinned:
            oldest, newest = (wheel[end].get(name, version) for end in ("oldest", "newest"))
            large, small = (int(number) for number in newest.split(".")[:2])
            below = f"{large}.{small + 1}" if name in wheel["inner"] else f"{large + 1}"
            only = " or ".join(
                f'extra == "{extra}"' for extra, names in wheel["extras"].items() if name in names
            )
            yield f"Requires-Dist: {name}>={oldest},<{below}{only and f'; {only}'}"


def _digest(content: bytes) -> str:
    digest = urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / build_wheel(str(folder))
    print(f"{made}: {made.stat().st_size / 1e6:.1f} MB")
