"""The wheel holds the tree as one package: no name of the tree is left in it, and every line stays."""

import ast
import csv
import hashlib
import re
import subprocess
import tomllib
from base64 import urlsafe_b64encode
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from zipfile import Path as ZipPlace
from zipfile import ZipFile

import pytest
from packaging.metadata import Metadata

import model
from deploy.attention_lens import NAMES, __all__
from deploy.rewriting import PACKAGE, ROOTS, rewritten
from deploy.wheel import LEFT_OUT, OF_THE_REPOSITORY, ROOT, TREE, _about, _tree, build_wheel, module
from model.hub.library import OLDEST
from model.loading.shipped import is_packed, unpacked
from model.system.version import VERSION
from tests.cases import cases
from tests.deploy.lock import requirements as pinned

TEXTS = (".py", ".toml", ".md", ".html", ".css")
SHOWN = re.compile(rf"python -m (?:{'|'.join(ROOTS)})\b|from (?:{'|'.join(ROOTS)})[\w.]* import")


@pytest.fixture(scope="module")
def files(wheel: Path) -> dict[str, bytes]:
    """Every file of the package, by its place in the wheel."""
    with ZipFile(wheel) as archive:
        return {
            file: archive.read(file)
            for file in archive.namelist()
            if file.startswith(f"{PACKAGE}/")
        }


@pytest.fixture(scope="module")
def sources(files: dict[str, bytes]) -> dict[str, str]:
    return {file: content.decode() for file, content in files.items() if file.endswith(".py")}


@pytest.fixture(scope="module")
def modules(sources: dict[str, str]) -> set[str]:
    return {module(file.removeprefix(f"{PACKAGE}/")) for file in sources}


def left_over(source: str, modules: set[str]) -> list[str]:
    """What in a source names a module of the tree: imports, and strings that are the name of one."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.append(str(node.module))
        elif isinstance(node, ast.Constant) and node.value in modules:
            found.append(str(node.value) if "." in str(node.value) else "")
    return [name for name in found if name.split(".")[0] in ROOTS]


@pytest.mark.wheel
def test_no_import_of_the_tree_is_left_in_the_package(
    sources: dict[str, str], modules: set[str]
) -> None:
    left = {file: left_over(source, modules) for file, source in sources.items()}
    assert {file: names for file, names in left.items() if names} == {}
    both = left_over("def f():\n import viz.figures as f\n f('model.run.model')", modules)
    assert both == ["viz.figures", "model.run.model"]


@pytest.mark.wheel
def test_no_text_for_readers_names_the_tree(files: dict[str, bytes]) -> None:
    texts = {file: content.decode() for file, content in files.items() if file.endswith(TEXTS)}
    assert [file for file, text in texts.items() if SHOWN.search(text)] == []


def test_every_import_of_the_package_is_in_it(sources: dict[str, str], modules: set[str]) -> None:
    asked = {
        (file, node.module)
        for file, source in sources.items()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(f"{PACKAGE}.")
    }
    assert len(asked) > 1000
    assert {
        (file, name) for file, name in asked if name.removeprefix(f"{PACKAGE}.") not in modules
    } == set()


def test_each_line_is_that_of_the_tree_but_for_the_name_of_the_package(
    sources: dict[str, str],
) -> None:
    def public(found: re.Match[str]) -> str:
        return f"from {NAMES[found[1]][1:]} import {found[1]}"

    for file, source in sources.items():
        tree = ROOT / file.removeprefix(f"{PACKAGE}/")
        if tree.exists():
            plain = re.sub(rf"\b{PACKAGE}\.(?=(?:{'|'.join(ROOTS)})\b)", "", source)
            plain = re.sub(rf"from {PACKAGE} import (\w+)", public, plain)
            assert plain.splitlines() == tree.read_text(encoding="utf-8").splitlines(), file


def test_a_source_is_rewritten(subtests: pytest.Subtests) -> None:
    for tree, wheel in [
        ("from model.nn import attention", "from attention_lens.model.nn import attention"),
        ("import viz.figures as f  # it", "import attention_lens.viz.figures as f  # it"),
        ("if a: from viz import b; from model import c", "if a: from attention_lens.viz import b; "
         "from attention_lens.model import c"),
        ("é = 'from'\n\tfrom model import (\n  a)".replace("\t", ""),
         "é = 'from'\nfrom attention_lens.model import (\n  a)"),
        ("from .model import a", "from .model import a"),
        ("from models import model, viz", "from models import model, viz"),
        ("import_module('model.run.model')", "import_module('attention_lens.model.run.model')"),
        ("WEIGHTS = 'model.safetensors', 'model', 'pages/home.py'",) * 2,
        ("def f():\n    yield from model.parts\n    raise a from model",) * 2,
        ("'''\n>>> from model import load_model, models\n'''",
         "'''\n>>> from attention_lens import load_model, models\n'''"),
        ("f'from model.code import {name}'", "f'from attention_lens.model.code import {name}'"),
        ("'from model import load_model, secret'",
         "'from attention_lens.model import load_model, secret'"),
        ("'trace = model.trace(text)  # from model to trace'",) * 2,
        ("'python -m viz.command'", "'python -m attention_lens.viz.command'"),
    ]:  # fmt: skip
        with subtests.test(tree=tree, wheel=wheel):
            assert rewritten(tree, {"model", "model.run.model", "viz"}, NAMES) == wheel


@cases("line", [
    "import model", "import model.nn, os", "import viz.figures", "import os, model.nn",
    "import os, model.nn as n",
])  # fmt: skip
def test_an_import_without_an_equal_is_refused_with_its_line(line) -> None:
    with pytest.raises(ValueError, match="line 2"):
        rewritten(f"import os\n{line}\n", {"model", "viz"}, NAMES)


def test_the_face_has_the_public_names_of_the_tree() -> None:
    assert sorted(NAMES) == sorted(__all__)
    assert {*model.__all__} <= {*NAMES}
    for name, source in NAMES.items():
        home = import_module(source[1:])
        assert hasattr(home, name) or import_module(f"{home.__name__}.{name}"), name


@cases(
    "name",
    ["model", "model.analysis", "model.papers", "model.profile", "viz.figures", "viz.notebook"],
)
def test_public_names_are_listed_before_they_are_used(name) -> None:
    listed = import_module(name)
    assert {*listed.__all__} <= {*dir(listed)}


@pytest.mark.wheel
def test_the_same_tree_gives_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    assert (tmp_path / build_wheel(str(tmp_path))).read_bytes() == wheel.read_bytes()


def test_the_record_of_the_wheel_names_each_file_with_its_hash(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/RECORD")]
        record = archive.read(f"{PACKAGE}-{version()}.dist-info/RECORD").decode()
        rows = {name: digest for name, digest, _ in csv.reader(record.splitlines()) if digest}
        for name in names:
            digest = urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).rstrip(b"=")
            assert rows.pop(name) == f"sha256={digest.decode()}"
    assert rows == {}


def version() -> str:
    return str(project()["project"]["version"])


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def in_tree(name: str) -> str:
    """The module of the tree that became this one of the package."""
    face = f"deploy.{name}"
    return face if name.count(".") == 1 else name.removeprefix(f"{PACKAGE}.")


@pytest.fixture(scope="module")
def told(wheel: Path) -> Metadata:
    """What the wheel says of itself."""
    with ZipFile(wheel) as archive:
        return Metadata.from_email(archive.read(f"{PACKAGE}-{version()}.dist-info/METADATA"))


def test_the_product_names_the_version_of_the_wheel() -> None:
    assert version() == VERSION


def test_the_wheel_says_what_it_is(told: Metadata, wheel: Path) -> None:
    about = f"{PACKAGE}-{version()}.dist-info"
    names = set(ZipFile(wheel).namelist())
    assert (told.name, str(told.version)) == ("attention-lens", version())
    assert {f"{about}/licenses/{file}" for file in told.license_files or ()} <= names
    assert {f"{PACKAGE}/py.typed", f"{about}/entry_points.txt"} <= names
    for entry in metadata.PathDistribution(ZipPlace(wheel) / about).entry_points:
        assert hasattr(import_module(in_tree(entry.module)), entry.attr), entry
    description = str(told.description)
    assert "from attention_lens import load_model" in description
    kept = re.findall(".*in this repository.*", (ROOT / "README.md").read_text("utf-8"))
    assert len(kept) == 1
    assert {*kept} <= {*description.splitlines()}
    links = re.findall(r"\]\(([^)]*)\)", description)
    assert [link for link in links if not link.startswith(("https:", "#"))] == []
    assert told.keywords == project()["project"]["keywords"]
    assert told.classifiers == project()["project"]["classifiers"]


def test_the_description_begins_with_what_this_is_and_has_no_command_of_the_repository(
    told: Metadata,
) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    description = str(told.description)
    first = readme.split("\n\n")[1]
    assert description.strip().split("\n\n")[1] == first
    assert {f"## {heading}" for heading in OF_THE_REPOSITORY} <= {*readme.splitlines()}
    assert len(description) > len(readme) / 3
    commands = "".join(re.findall(r"```\n(.*?)```", description, re.DOTALL))
    assert 'pip install "attention-lens[app]"' in commands
    assert not re.search(r"^make |dist/", commands, re.MULTILINE)
    headings = {line.strip("# ").lower().replace(" ", "-") for line in description.splitlines()}
    assert {*re.findall(r"\]\(#([^)]*)\)", description)} <= headings


def test_links_of_the_project_follow_from_its_address_and_there_are_none_without(
    told: Metadata,
) -> None:
    assert told.author == "The attention-lens maintainers"
    assert project()["tool"]["attention-lens"]["home"] == ""
    assert told.project_urls is None
    moved = project()
    moved["tool"]["attention-lens"]["home"] = home = "https://example.org/lens"
    published = Metadata.from_email(dict(_about(moved))["METADATA"])
    urls = published.project_urls or {}
    assert [*urls] == ["Homepage", "Documentation", "Source", "Issues", "Changelog"]
    assert all(url.startswith(home) for url in urls.values())
    readme, description = (ROOT / "README.md").read_text("utf-8"), str(published.description)
    links = re.findall(r"\]\(([^)#]+)", description)
    below = rf"{home}/(?:blob|tree|raw)/(?:main|v{re.escape(version())})/(.*)"
    files = [found[1] for link in [*links, *urls.values()] if (found := re.match(below, link))]
    assert len(files) > 5
    assert all((ROOT / file).exists() for file in files)
    assert [link for link in links if not link.startswith("https:")] == []
    pictures = re.findall(r"!\[[^\]]*\]\((.*?)\)", readme)
    assert f"]({home}/raw/v{version()}/{pictures[0]})" in description


@cases("name", ["notes.txt", ".DS_Store", "old.py.orig"])
def test_a_file_of_no_kind_of_ours_is_left_out(
    name, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for file in ("model/nn.py", f"model/{name}"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("")
    monkeypatch.setattr("deploy.wheel.ROOT", tmp_path)
    assert dict(_tree()) == {"model/nn.py": b""}


def test_the_wheel_leaves_out_no_file_of_the_repository() -> None:
    listed = subprocess.run(
        ["git", "ls-files", *TREE], cwd=ROOT, check=True, capture_output=True, text=True
    )
    left_out = {*listed.stdout.splitlines()} - {file for file, _ in _tree()}
    assert [file for file in left_out if not file.startswith(tuple(LEFT_OUT))] == []


def test_the_wheel_needs_what_the_app_needs(told: Metadata) -> None:
    needed = told.requires_dist or []
    kinds = ("", "-notebook", "-mcp", "-cluster", "-quantized")
    files = [f"requirements{kind}.txt" for kind in kinds]
    app = [line.name for file in files for line in pinned(ROOT / file)]
    assert [line.name for line in needed] == app
    extras = project()["tool"]["attention-lens"]["extras"]
    assert told.provides_extra == list(extras)
    for line in needed:
        assert line.specifier.contains(metadata.version(line.name)), line
        named = [extra for extra, names in extras.items() if line.name in names]
        holds = [
            extra for extra in extras if line.marker and line.marker.evaluate({"extra": extra})
        ]
        assert (holds, line.marker is None) == (named, not named), line


def test_the_core_needs_no_package_of_the_app_or_of_the_tests(told: Metadata) -> None:
    """What it needs is what its modules import."""
    core = {line.name.replace("-", "_") for line in told.requires_dist or () if not line.marker}
    imported = {
        name.split(".")[0]
        for file in (ROOT / "model").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert core - imported == {"plotly"}  # of viz.figures
    assert core & {"streamlit", "duckdb", "pyarrow", "prometheus_client", "segno"} == set()


def test_the_wheel_takes_the_versions_that_were_tried(told: Metadata) -> None:
    allowed = {line.name: line.specifier for line in told.requires_dist or ()}
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["attention-lens"]
    for name, version in (*wheel["oldest"].items(), *wheel["newest"].items()):
        assert allowed[name].contains(version), name
    for name, version in {"numpy": "1.26.4", "pandas": "2.2.3", "pyarrow": "17.0.0"}.items():
        assert allowed[name].contains(version), name
    assert allowed["transformers"].contains("5.24.0")
    assert not allowed["transformers"].contains("5.25.0")
    assert allowed["transformers"].contains(OLDEST)
    assert not allowed["transformers"].contains("4.57.1")


def test_a_package_whose_inner_parts_we_use_may_change_less(told: Metadata) -> None:
    allowed = {line.name: line.specifier for line in told.requires_dist or ()}
    assert not allowed["streamlit"].contains("1.99")
    assert allowed["numpy"].contains("2.99")
    assert not allowed["numpy"].contains("3.0")


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size <= 30.5e6


def test_packed_weights_are_those_of_the_tree_bit_for_bit(
    files: dict[str, bytes], tmp_path: Path
) -> None:
    stored = [file for file in files if file.endswith(".packed")]
    for name in stored:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(files[name])
    assert len(stored) > 20
    for name in stored:
        file = tmp_path / name.removesuffix(".packed")
        model = tmp_path.joinpath(*file.relative_to(tmp_path).parts[:4], "model.safetensors")
        tree = ROOT / file.relative_to(tmp_path / PACKAGE)
        assert is_packed(file)
        assert unpacked(file, model) == tree.read_bytes(), name


@pytest.mark.parametrize("damage", [lambda packed: packed[:-9], lambda packed: b"no" + packed[2:]])
def test_packed_weights_that_are_damaged_are_refused(
    damage: Callable[[bytes], bytes], files: dict[str, bytes], tmp_path: Path
) -> None:
    name = next(file for file in files if file.endswith("/model.safetensors.packed"))
    (tmp_path / "model.safetensors.packed").write_bytes(damage(files[name]))
    file = tmp_path / "model.safetensors"
    with pytest.raises(ValueError, match="its packed bytes are damaged"):
        unpacked(file, file)
