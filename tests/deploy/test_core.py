"""The package without its extras: all public names of the core work, and the others say what to install."""

import re
import tomllib
from pathlib import Path

import pytest

from deploy.attention_lens import NEEDS
from deploy.wheel import ROOT
from model.system.extras import EXTRAS, MissingExtraError, needed_by
from tests.cases import cases
from tests.deploy.installed import Installed, install

pytestmark = pytest.mark.wheel

OF_EXTRAS = {  # names that need a package of an extra
    **{name: EXTRAS[package] for name, package in NEEDS.items()},
    **dict.fromkeys(("Profile", "labelled", "open_profile", "profile", "search"), "profile"),
}


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(wheel, tmp_path_factory.mktemp("core"), core=True)


def extras() -> dict[str, list[str]]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["attention-lens"][
        "extras"
    ]


def test_every_public_name_works_without_the_packages_of_the_extras(core: Installed) -> None:
    refused, printed, ran, packages = core.examples()
    assert printed == []
    assert ran > 50
    assert {name: re.findall(r"the extra “(\w+)”", said) for name, said in refused.items()} == {
        name: [extra] for name, extra in OF_EXTRAS.items()
    }
    assert set(packages) & {*EXTRAS, "starlette", "tornado", "ipywidgets"} == set()


@cases(
    "line",
    [[], ["house-gpt", "The cat"], ["profile", "house-gpt", "text.txt", "-o", "made"], ["mcp"]],
)
def test_the_command_says_what_to_install(line, core: Installed) -> None:
    (core.folder / "text.txt").write_text("The cat sat.")
    ended = core.run(core.command, *line)
    assert ended.returncode == 2
    extra = line[0] if line[:1] in (["profile"], ["mcp"]) else "app"
    assert re.match(r"attention-lens( \w+)?: ", ended.stderr)
    assert ended.stderr.endswith(f' "attention-lens[{extra}]".\n')
    assert "Traceback" not in ended.stderr


def test_the_commands_of_the_core_run(core: Installed) -> None:
    (core.folder / "text.txt").write_text("The cat sat.")
    line = [core.command, "record", "stories", "text.txt", "-o", "trace.safetensors"]
    assert "Wrote trace.safetensors" in core.run(*line, check=True).stderr
    asked = [core.command, "papers", "house-gpt", "--claims", "first-token", "-o", "papers.md"]
    core.run(*asked, check=True)
    assert (core.folder / "papers.md").is_file()


def test_each_package_of_an_extra_is_told_with_an_extra_that_brings_it() -> None:
    brought = {
        package.replace("-", "_"): {extra for extra, names in extras().items() if package in names}
        for names in extras().values()
        for package in names
    }
    assert EXTRAS.keys() == brought.keys()
    assert [package for package, extra in EXTRAS.items() if extra not in brought[package]] == []


def test_a_missing_package_of_no_extra_is_an_error_as_it_is() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package"), needed_by("This"):
        import no_such_package  # noqa: F401
    with pytest.raises(MissingExtraError, match="the extra “profile”"), needed_by("This"):
        raise ModuleNotFoundError(name="pyarrow.parquet")
