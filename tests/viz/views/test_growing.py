"""The text so far: what was written is marked, and tokens that carry spaces get none between them."""

import re

from model.trace.records import Token
from viz.views.prediction.writing import SHOWN, marked_text


def words(given: list[Token], new: list[Token]) -> str:
    return re.sub("<.*?>", "", marked_text(given, new, len(new)))


def test_only_words_of_a_closed_list_get_spaces_between_them() -> None:
    start = Token(1, "<|im_start|>", special=True)  # of a chat: no letters of its own
    pieces = [Token(2, " H", b" H"), Token(3, "ugging", b"ugging")]
    assert (
        words([start, *pieces], [Token(4, " Face", b" Face")]) == "&lt;|im_start|&gt; Hugging Face"
    )
    assert words([Token(5, "le"), Token(6, "chat")], [Token(7, "noir")]) == "le chat noir"


def test_a_long_text_shows_its_end_and_the_token_of_the_step_is_underlined() -> None:
    given = [Token(0, f"{number} ", b"x") for number in range(2 * SHOWN)]
    new = [Token(1, "a", b"a"), Token(2, "b", b"b"), Token(3, "c", b"c")]
    shown = marked_text(given, new, 2)
    assert "… " in shown
    assert f"{SHOWN - 2}␣" not in shown
    assert re.search("<mark[^>]*>a<b><u>b</u></b>c</mark>", shown)
    spaced = marked_text([], [Token(1, "le"), Token(2, "chat"), Token(3, "noir")], 2)
    assert re.search("<mark[^>]*>le <b><u>chat</u></b> noir</mark>", spaced)
