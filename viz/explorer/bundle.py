"""The component as the strings that Streamlit takes: one script, one style sheet, one skeleton.

`make bundle` makes script and style sheet of the modules in js/ and css/. They are strings, so the explorer
also runs where nothing serves static files. Streamlit takes a string of one line for a path, so the bundler
breaks lines. It sends the script again with each message of a component; our own server hands it out instead,
and a few lines in its place load it once a page.
"""

import base64
import hashlib
import re
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
BUNDLED = FOLDER / "bundled"
SCRIPTS = "app/static/scripts"  # the address of those that `viz.server` hands out
KATEX = FOLDER.parents[1] / "static" / "katex"
_FONTS = re.compile(
    r"KaTeX_(?:Main-(?:Regular|Bold)|Math-Italic|Size\d-Regular)"
)  # of our formulas
_IMPORT = 'import{mount}from"../../notebook/js/main.js";'
# The app's own address is found as js/libraries.js finds it.
_LOADER = """\
const scripts = [...document.querySelectorAll("script[src*='static/js/']")];
const known = scripts.map(({ src }) => src.split("static/js/")[0]);
const own = known.find((one) => new URL(one).origin === location.origin);
const base = own ?? new URL("./", document.baseURI).href;
const { default: mount } = await import(new URL("%s", base).href);
export default mount;
"""
_FONT_RULE = re.compile(r"@font-face\{[^}]*url\(fonts/(KaTeX_[\w-]+)\.woff2\)[^}]*\}")


def component_script(name: str) -> str:
    """A script that the bundler has made, as a component takes it: under our own server the lines that load
    it."""
    if "viz.server.asgi" not in sys.modules:
        return bundled(name)
    content = hashlib.blake2b(bundled(name).encode(), digest_size=8).hexdigest()
    return _LOADER % f"{SCRIPTS}/{name}?{content}"


def script() -> str:
    """The modules of js/ in one file, with those of notebooks (viz/notebook/js). Its default export is the
    component of the app, `mount` the widget of notebooks and of sites."""
    return bundled("explorer.js")


def style() -> str:
    """The style sheets of css/ in one file, in their order."""
    return bundled("explorer.css")


def skeleton() -> str:
    """The empty elements that the script fills."""
    return (FOLDER / "explorer.html").read_text(encoding="utf-8")


def bundled(name: str) -> str:
    """A script or style sheet that the bundler has made."""
    return (BUNDLED / name).read_text(encoding="utf-8")


def alone(name: str) -> str:
    """A bundled script without exports, as one that leaves no name in its page. Where it imports `mount` of
    `script`, that comes before it."""
    own = bundled(name)
    if _IMPORT not in own:
        return f"(() => {{\n{own}\n}})();\n"
    library, _, _ = script().rpartition("export{")
    mount = f"const mount = (() => {{\n{library}\nreturn mount;\n}})();"
    return f"(() => {{\n{mount}\n{own.replace(_IMPORT, '', 1)}\n}})();\n"


def katex() -> str:
    """KaTeX's script, for a page that has no address of it."""
    return (KATEX / "katex.min.js").read_text(encoding="utf-8")


def katex_style() -> str:
    """KaTeX's style sheet with the fonts of our formulas in it, for a page that fetches nothing."""
    return _FONT_RULE.sub(_with_its_font, (KATEX / "katex.min.css").read_text(encoding="utf-8"))


def _with_its_font(rule: re.Match[str]) -> str:
    """The rule with the font in it; nothing for a font that no formula of ours uses."""
    name = rule[1]
    if not _FONTS.fullmatch(name):
        return ""
    font = base64.b64encode((KATEX / "fonts" / f"{name}.woff2").read_bytes()).decode()
    address = f"url(data:font/woff2;base64,{font})"
    return re.sub(r"src:[^}]*", f'src:{address} format("woff2")', rule[0])
