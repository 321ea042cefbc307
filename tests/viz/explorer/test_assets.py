"""The browser is told where Plotly and KaTeX lie, and that is where they are."""

from pathlib import Path

from plotly.offline import get_plotlyjs

from viz.explorer import assets


def test_plotlys_script_is_that_of_the_installed_package() -> None:
    said = assets.addresses()["plotly"]
    assert said == f"{assets.PLOTLY_ADDRESS}?{assets.PLOTLY.stat().st_size}"
    assert get_plotlyjs()[:200] == assets.PLOTLY.read_text(encoding="utf-8")[:200]


def test_a_missing_file_has_no_address(tmp_path: Path) -> None:
    assert assets.addresses(tmp_path, tmp_path / "plotly.min.js") == {
        "plotly": "",
        "katex": "",
        "katexStyle": "",
    }


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
