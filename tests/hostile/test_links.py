"""No link breaks a page: it is read, or what cannot be read is named in a sentence."""

import random
from itertools import product
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from tests.cases import cases
from tests.hostile import laws
from tests.hostile.words import any_words
from tools import fuzz
from viz.server.security import HEADER_BYTES
from viz.state.link import LINK_BYTES, PARAMETERS, View, from_link, short_link, to_link

names = st.sampled_from([*sorted(PARAMETERS), "other", ""])
values = st.one_of(
    any_words,
    st.sampled_from([*fuzz.VALUES, b"", ["1"], {"a": 1}, object(), 1.5, True]),
    st.text("0123456789:,.-+einfa", max_size=40),
)


@settings(max_examples=150)
@given(st.dictionaries(names, values))
def test_from_link_never_raises_and_names_what_it_left_out(parameters: dict[str, object]) -> None:
    view, problems = from_link(parameters)
    assert isinstance(view, View)
    for problem in problems:
        assert laws.is_sentence(ValueError(problem)), problem
    again, none = from_link(to_link(view))
    assert (again, none) == (view, ())


@cases("size, name", product([5_000, 1_000_000], sorted(PARAMETERS)))
def test_an_oversized_parameter_is_read_or_named_at_once(size, name) -> None:
    for part in ("9", "a", "1,", "1:2,", "\x00", "\ud800", "٣"):
        view, problems = from_link({name: part * (size // len(part))})
        written = to_link(view)
        assert problems or len(written.get(name, "")) <= 20_000


def test_numbers_are_ordinary_digits() -> None:
    for name in ("head", "query", "key", "seed", "scale", "fill", "dropout"):
        for written in (
            "٣",
            "²",
            "１",
            "1_0",
            " 1",
            "1 ",
            "0x1",
            "1e",
            "nan",
            "--1",
            "",
            "9" * 400,
        ):
            view, problems = from_link({name: written})
            assert view == View(), (name, written)
            assert len(problems) == 1
    assert from_link({"head": "0000000009999999999"})[0] == View()


@settings(max_examples=30)
@given(any_words, any_words, st.sampled_from(["", "猫" * 20_000, "<" * 20_000, "a" * 20_000]))
def test_a_link_is_never_longer_than_the_server_takes(text: str, second: str, long: str) -> None:
    view = View(text=text, second_text=second, target=long or None, head=3)
    parameters, left_out = short_link(view)
    assert len(urlencode(parameters)) <= LINK_BYTES < HEADER_BYTES - 4_000
    assert parameters == {
        name: value for name, value in to_link(view).items() if name not in left_out
    }
    assert bool(left_out) == (len(urlencode(to_link(view))) > LINK_BYTES)
    reopened, problems = from_link(dict(parse_qsl(urlencode(parameters), keep_blank_values=True)))
    assert problems == ()
    assert reopened.head == 3


LINKS: dict[str, dict[str, str]] = {
    "huge numbers": {"head": "999999", "query": "999999", "key": "999999", "seed": "999999999",
                     "hidden": "999999999", "blocked": "999999999:999999999"},
    "at the edges": {"scale": "-1e6", "fill": "3e38", "dropout": "0.999999999"},
    "next to nothing": {"scale": "5e-324", "fill": "-1e-320", "dropout": "1e-300"},
    "no numbers": {"scale": "nan", "fill": "inf", "dropout": "-1", "head": "1.5", "stage": "<b>"},
    "other digits": {"head": "٣", "query": "²", "scale": "１", "hidden": "٣"},
    "markup": {"place": "<b>hx</b>", "show": "**hx**", "model": "../../etc", "only": "<b>hx</b>",
               "second_model": "/etc/passwd", "ablated": ":red[hx]:1", "text": "\x00\u202e<b>hx</b>"},
    "a million letters": {"place": "b" * 10**6, "hidden": "1," * 500_000, "show": "d" * 10**6},
    "many": {"hidden": ",".join(map(str, range(4_000))), "only": "decoder.0.self",
             "blocked": ",".join(f"{at}:{at + 1}" for at in range(1_800))},
    "empty": dict.fromkeys(sorted(PARAMETERS - {"text"}), ""),
    "of other pages": {"example": "<b>hx</b>", "step": "1e9", "term": "**hx**", "tour": "x"},
}  # fmt: skip
REPOSITORY = Path(__file__).resolve().parents[2]
FILES = ("pages/home.py", "pages/experiments.py", "pages/all_heads.py", "pages/positions.py")


@cases("kind", LINKS)
def test_a_page_opens_on_any_link(kind) -> None:
    page = FILES[random.Random(kind).randrange(len(FILES))]
    app = AppTest.from_file(str(REPOSITORY / page), default_timeout=120)
    for name, value in LINKS[kind].items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    assert app.title
    for warning in app.warning:
        assert "<b>hx" not in warning.value
        assert ":red[" not in warning.value
