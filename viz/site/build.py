"""Builds a site: static pages that open from a disk, from a file server, or as one file. Nothing in them is
fetched from elsewhere. Their scripts are the explorer's own, as notebooks have it; a page's data stand in
classic scripts, because a page that lies on a disk may not read files in any other way."""

import base64
import gzip
import html
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import streamlit

from model.loading.registry import known, load_model
from model.system.files import write_whole
from viz.explorer import bundle
from viz.explorer.packing import FLOAT, numbers_start, packed
from viz.site.course import Course
from viz.site.model.parts import has_gpt2s_tokens, vocabulary
from viz.site.pages import SHOWING, RecordedSite, filled, json_of, navigation, page_of
from viz.site.recording import UNCHANGED, Recording, recording, site_model, slug

_PICKER = Path(__file__).parents[1] / "shell" / "head_picker" / "picker.html"

_STREAMLIT = Path(streamlit.__file__).parent / "static" / "static" / "media"
_LETTERS = {
    "Source Sans": "SourceSansVF-Upright.ttf",
    "Source Serif": "SourceSerifVariable-Roman.ttf",
    "Source Code": "SourceCodeVF-Upright.ttf",
}

# The first sentence's run comes beside the script that asks for it, unless the address names another one.
_FIRST = """<script>
if (!/[#&](sentence|text)=/.test(location.hash)) {
  const link = { rel: "preload", as: "script", href: "data/%s.js" };
  document.head.append(Object.assign(document.createElement("link"), link));
}
</script>"""

_PIECE = 2_000_000  # bytes of a script of data
_BITS, _FIRST_LETTER = 15, 0x3000  # of `wide`; js/runs.js reads it

Tell = Callable[[str], None]


def silent(sentence: str) -> None:
    """Tells nobody how far the building is."""


def site_files(course: Course, tell: Tell = silent) -> Iterator[tuple[str, bytes]]:
    """The files of a site, by their names in its folder. Raises ValueError where a sentence of the course
    cannot be recorded."""
    site = _site(course, tell, whole=False)
    for name, content in _data(site).items():
        yield from _data_files(name, content)
    yield "README.md", _front_matter(course).encode()
    yield ".nojekyll", b""  # GitHub Pages serves the files as they are
    yield "site.css", bundle.bundled("site.css").encode()
    yield "site.js", script().encode()
    yield "katex.js", katex().encode()
    yield "fonts.css", fonts().encode()
    linked = '<script src="site.js"></script>'
    facts = f'<script type="application/json" id="site">{json_of(site.facts())}</script>'
    style = '<link rel="stylesheet" href="site.css">'
    for name, file in site.files.items():
        head = style + (_FIRST % site.recordings[0].data() if name in SHOWING else "")
        yield file, _page(site, page_of(name, site), head, facts + linked)


def _data_files(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """The scripts that bring a block of data. A large one comes in several, so that a browser unpacks one
    while the next is on its way."""
    pieces = [content[start : start + _PIECE] for start in range(0, len(content), _PIECE)]
    for n, piece in enumerate(pieces):
        file = f"{name}.{n}" if n else name
        said = f'{json_of(file)}, "{wide(piece)}", {len(piece)}, {len(pieces)}'
        script = f"attentionSite.take({said});\n"
        yield f"data/{file}.js", script.encode("utf-16")  # whose mark a browser reads


def _front_matter(course: Course) -> str:
    """What makes a static Space of Hugging Face of the folder (hub documentation, Spaces Configuration
    Reference); other hosts of files serve it as one more."""
    named = (
        known(name).hub for name in (*course.in_browser, *(s.view.model for s in course.sentences))
    )
    facts: dict[str, object] = {
        "title": course.title,
        "emoji": "🔎",
        "colorFrom": "purple",
        "colorTo": "indigo",
        "sdk": "static",
        "app_file": "index.html",
        "tags": ["attention", "education", "interpretability", "transformers", "visualization"],
        "models": list(dict.fromkeys(filter(None, named))),
    }
    lines = "".join(
        f"{name}: {json.dumps(fact, ensure_ascii=False)}\n" for name, fact in facts.items()
    )
    return f"---\n{lines}---\n\n{course.introduction}\n"


def one_file(course: Course, tell: Tell = silent) -> bytes:
    """A site as one page. Raises as `site_files` does."""
    site = _site(course, tell, whole=True)
    data = "".join(
        f'<script type="text/plain" id="data-{name}">{base64.b64encode(content).decode()}</script>'
        for name, content in _data(site).items()
    )
    facts = f'<script type="application/json" id="site">{json_of(site.facts())}</script>'
    scripts = "".join(f"<script>{_inline(text)}</script>" for text in (katex(), script()))
    style = f"<style>{bundle.bundled('site.css')}{fonts()}</style>"
    pages = "".join(page_of(name, site) for name in course.pages)
    return _page(site, pages, style, data + facts + scripts)


def write_site(folder: Path, course: Course, tell: Tell = silent) -> dict[str, int]:
    """Writes a site into a folder, which is made if it is not there; returns the bytes of each file.

    Raises ValueError as `site_files` does, before anything is written, and where a file cannot be written.
    """
    files = dict(site_files(course, tell))
    for name, content in files.items():
        _write(folder / name, content)
    return {name: len(content) for name, content in files.items()}


def write_lesson(file: Path, course: Course, tell: Tell = silent) -> int:
    """Writes the lesson of a course, and what it opens, into one file; returns its bytes. Raises ValueError
    as `write_site` does."""
    content = one_file(course.alone, tell)
    _write(file, content)
    return len(content)


def _write(file: Path, content: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, content)
    except OSError as error:
        raise ValueError(f"{file}: {error.strerror}.") from error


def script() -> str:
    """The script of all pages, after the skeletons and style sheets that it mounts."""
    picker = _PICKER.read_text(encoding="utf-8")
    parts = {
        "bar": f'<div class="work"><p class="about"></p>{picker}</div>',
        "docked": f'<p class="about" hidden></p>{picker}',
        "barStyle": bundle.bundled("notebook.css"),
        "explorer": bundle.skeleton(),
        "explorerStyle": bundle.style(),
    }
    return f"globalThis.attentionSite = {{ parts: {json_of(parts)} }};\n{bundle.alone('site.js')}"


def katex() -> str:
    """KaTeX and its style sheet, which follow when a formula is to be drawn."""
    return f"{bundle.katex()}\nglobalThis.katexStyle = {json_of(bundle.katex_style())};\n"


def fonts() -> str:
    """The letters of the app, which are Streamlit's, as a style sheet that fetches nothing."""
    rules = []
    for family, file in _LETTERS.items():
        (found,) = _STREAMLIT.glob(f"{file}.*.woff2")
        letters = base64.b64encode(found.read_bytes()).decode()
        rules.append(
            f'@font-face{{font-family:"{family}";font-weight:200 900;font-display:swap;'
            f'src:url(data:font/woff2;base64,{letters}) format("woff2")}}'
        )
    return "".join(rules)


def _site(course: Course, tell: Tell, *, whole: bool) -> RecordedSite:
    """Runs the sentences of a course, and takes the models that its pages can run."""
    recordings = tuple(_recordings(course, tell))
    shown = course.in_browser if {*SHOWING} & {*course.pages} else ()
    taken = tuple(site_model(load_model(name)) for name in shown)
    return RecordedSite(course, recordings, taken, whole)


def _recordings(course: Course, tell: Tell) -> Iterator[Recording]:
    names: list[str] = []
    opened, model = "", None  # one model at a time
    for example in course.sentences:
        tell(f"{example.view.model}: {example.view.text[:60]}")
        names.append(slug(example.title, names))
        if model is None or opened != example.view.model:
            opened, model = example.view.model, load_model(example.view.model)
        yield recording(example, model, names[-1], course.sentences)


def _data(site: RecordedSite) -> Mapping[str, bytes]:
    """The runs of each sentence, each of a switch after the unchanged one; the weights that those of a model
    share; and the models that run in the browser, by their names."""
    blocks = {}
    for one in site.recordings:
        unchanged = one.runs[UNCHANGED]
        blocks[one.data()] = packed(unchanged)
        blocks |= {one.data(x.name): packed(one.runs[x.name], unchanged) for x in one.switches}
    weights = {site.weights(one.view.model): one.shared for one in site.recordings}
    blocks |= {name: packed({"weights": shared}) for name, shared in weights.items()}
    blocks |= {f"model-{slug(one.name)}": packed(one.parts) for one in site.models}
    if any(has_gpt2s_tokens(one.name) for one in site.models):
        blocks["vocabulary"] = packed(vocabulary())
    return {name: compressed(block) for name, block in blocks.items()}


def compressed(block: bytes) -> bytes:
    """A block of bytes as it is sent. The same bytes give the same ones.

    After the words stand the first bytes of all numbers, then the second ones, and so on: exponents are
    alike, so floats take an eighth to a fifth less.
    """
    start = numbers_start(block)
    numbers = np.frombuffer(block, np.uint8, offset=start).reshape(-1, FLOAT)
    return gzip.compress(block[:start] + numbers.T.tobytes(), 6, mtime=0)


def wide(content: bytes) -> str:
    """Bytes as a text with a letter for every 15 bits: as UTF-16 a fifth shorter than base64. None of the
    letters ends a string of a script, and none is half of a pair."""
    bits = np.unpackbits(np.frombuffer(content, np.uint8))
    rows = np.pad(bits, (0, -len(bits) % _BITS)).reshape(-1, _BITS)
    numbers = np.packbits(np.pad(rows, ((0, 0), (1, 0)))).view(">u2")
    return (numbers + np.uint16(_FIRST_LETTER)).astype("<u2").tobytes().decode("utf-16-le")


def _inline(script_text: str) -> str:
    """A script that stands in a page, where nothing in it may end it."""
    return script_text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _page(site: RecordedSite, pages: str, style: str, scripts: str) -> bytes:
    title = html.escape(site.course.title)
    page = filled(
        "page.html",
        title=title,
        style=style,
        name=title,
        nav=navigation(site),
        pages=pages,
        scripts=scripts,
    )
    return page.encode("utf-8", "replace")
