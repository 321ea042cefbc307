"""Plotly's script is put beside KaTeX once, whole, and again only when it changes."""

import os
from importlib.resources import files
from pathlib import Path

from viz.explorer import assets, bundle


def installed_size() -> int:
    with files("plotly").joinpath("package_data", "plotly.min.js").open("rb") as source:
        return os.fstat(source.fileno()).st_size


def test_the_script_is_copied_whole_into_a_folder_that_may_not_exist_yet(tmp_path: Path) -> None:
    made = assets.ensure_plotly(tmp_path / "static")
    assert made.stat().st_size == installed_size()
    assert [file.name for file in made.parent.iterdir()] == ["plotly.min.js"]


def test_an_older_copy_is_replaced_and_a_good_one_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "plotly.min.js"
    target.write_text("old")
    assets.ensure_plotly(tmp_path)
    assert target.stat().st_size == installed_size()
    before = target.stat().st_mtime_ns
    assets.ensure_plotly(tmp_path)
    assert target.stat().st_mtime_ns == before


def test_a_missing_file_has_no_address(tmp_path: Path) -> None:
    assert assets.addresses(tmp_path) == {"plotly": "", "katex": "", "katexStyle": ""}


def test_what_is_kept_in_the_repository_has_an_address_and_its_licence() -> None:
    addresses = assets.addresses()
    assert addresses["katex"].startswith("app/static/katex/katex.min.js?")
    assert (assets.STATIC / "katex" / "LICENSE").read_text().startswith("The MIT License")


def test_every_font_of_the_style_sheet_is_there() -> None:
    style = (assets.STATIC / "katex" / "katex.min.css").read_text()
    fonts = {part.split(".woff2")[0] for part in style.split("url(fonts/")[1:] if ".woff2)" in part}
    assert fonts
    for font in fonts:
        assert (assets.STATIC / "katex" / "fonts" / f"{font}.woff2").exists()


def test_the_joined_script_has_every_module_and_no_import_left() -> None:
    script = bundle.script()
    modules = sorted((Path(bundle.__file__).parent / "js").glob("*.js"))
    assert len(modules) > 10
    assert all(
        f"const {module.stem}_js = " in script for module in modules if module.stem != "main"
    )
    lines = script.splitlines()
    assert not [line for line in lines if line.startswith("import ")]
    assert [line for line in lines if line.startswith("export ")] == [
        "export default function mount({ data, parentElement, setStateValue }) {"
    ]
