"""Roles are found by their words, and whatever cannot be found is said before the first pass."""

import pandas as pd
import pytest

from model.many import Prompt, logit_difference, measure, patch_all
from model.many.prompts import answer_id, placed, prompts_of
from tests.cases import cases
from tests.model.tiny import loaded

TEXT = "When Mary and John went home, John gave a book to"


def words_of(text: str, roles: dict[str, str], name: str = "house-gpt") -> dict[str, str]:
    """The tokens of each role, joined."""
    model = loaded(name)
    one, tokens = placed(model, Prompt(text, roles=roles)), model.tokens(text)
    return {role: "".join(tokens[at].text for at in places) for role, places in one.roles.items()}


def test_a_role_is_every_token_of_its_words() -> None:
    found = words_of("The unfathomable key to the old cabinets is lost", {"a": "unfathomable key"})
    assert found == {"a": " unfathomable key"}


def test_a_word_within_another_is_not_the_word() -> None:
    assert words_of("The cats saw the cat.", {"a": "cat", "stop": "."}) == {
        "a": " cat",
        "stop": ".",
    }


def test_brackets_choose_one_of_two_equal_words() -> None:
    roles = {"s1": "and [John]", "s2": "[John] gave"}
    one = placed(loaded("house-gpt"), Prompt(TEXT, roles=roles))
    texts = [token.text for token in loaded("house-gpt").tokens(TEXT)]
    first, second = (at for at, text in enumerate(texts) if text == " John")
    assert one.roles == {"s1": (first,), "s2": (second,)}


def test_brackets_that_stand_in_the_text_are_text() -> None:
    assert words_of("a [b] c b", {"x": "[b]"})["x"].strip() == "[b]"


def test_words_of_a_script_without_spaces_are_found() -> None:
    assert words_of("我喜欢猫", {"cat": "猫"})["cat"] != ""


@cases("role, words", [
    ("giver", "nowhere in"),
    ("John", "2 times in"),
    ("nd", "nowhere in"),
    (" ", "nowhere in"),
    ("[Peter] gave", "nowhere in"),
])  # fmt: skip
def test_a_role_that_is_not_there_once_is_quoted(role, words) -> None:
    with pytest.raises(ValueError, match=words) as refusal:
        measure(loaded("house-gpt"), [TEXT, Prompt(TEXT, roles={"subject": role})])
    assert all(quoted in str(refusal.value) for quoted in ("“subject”", f"“{role}”", f"“{TEXT}”"))


def test_the_first_and_the_last_token_have_roles_always() -> None:
    model = loaded("house-gpt")
    frame = measure(model, [TEXT], weights=[("last", "first"), ("first", "first")])
    weights = model.trace(TEXT).attention[2].weights(5)
    of_head = frame[(frame["layer"] == "decoder.2.self") & (frame["head"] == 5)]["weight"]
    assert of_head.tolist() == pytest.approx([weights[-1, 0], 1.0])
    with pytest.raises(ValueError, match="called “last”"):
        Prompt(TEXT, roles={"last": "to"})


def test_a_pair_of_an_unknown_role_is_refused_with_the_known_ones() -> None:
    prompts = [Prompt(TEXT, roles={"io": "Mary"}), Prompt(TEXT)]
    with pytest.raises(ValueError, match="no role “io”; it has first, last"):
        measure(loaded("house-gpt"), prompts, weights=[("last", "io")])


def test_an_answer_is_the_token_that_would_follow() -> None:
    model = loaded("house-gpt")
    ids = {token.text: token.id for token in model.tokens(f"{TEXT} Mary, {TEXT} John")}
    assert answer_id(model, Prompt(TEXT), "Mary") == ids[" Mary"]
    assert answer_id(model, Prompt(TEXT), " John") == ids[" John"]
    assert answer_id(model, Prompt(TEXT), ",") == ids[","]
    assert answer_id(model, Prompt(TEXT), 17) == 17
    assert answer_id(loaded("stories"), Prompt("tom saw a"), "dog") >= 0


@cases("prompt, words", [
    (Prompt(TEXT, answers=("Mary", "Nebuchadnezzar")), "“Nebuchadnezzar” is not one token after"),
    (Prompt(TEXT + " ", answers=("Mary", "John")), "ends in a space"),
    (Prompt(TEXT, answers=("Mary", )), "needs 2 answers"),
    (Prompt(TEXT), "needs 2 answers"),
    (Prompt(TEXT, answers=(1, 10**9)), "none has the id 1000000000"),
])  # fmt: skip
def test_an_answer_that_is_no_token_is_quoted(prompt, words) -> None:
    with pytest.raises(ValueError, match=words):
        measure(loaded("house-gpt"), [prompt], metric=logit_difference())


def test_an_encoder_has_no_answers() -> None:
    with pytest.raises(ValueError, match="does not continue the text"):
        answer_id(loaded("bert"), Prompt("the cat"), "saw")


def test_three_answers_are_one_too_many() -> None:
    with pytest.raises(ValueError, match="3 answers"):
        Prompt(TEXT, answers=("a", "b", "c"))


def test_texts_dictionaries_and_tables_are_prompts() -> None:
    rows = [{"text": "a b", "condition": "x"}, {"text": "c d", "condition": "y"}]
    expected = [Prompt("a b", "x"), Prompt("c d", "y")]
    assert prompts_of(rows) == expected
    assert prompts_of(pd.DataFrame(rows)) == expected
    assert prompts_of("a b") == [Prompt("a b")]
    assert prompts_of(["a b", expected[1]]) == [Prompt("a b"), expected[1]]


@cases("given, words", [
    ([{"text": "a", "role": "b"}], "no 'role'; it has text, condition,"),
    ([{"condition": "b"}], "has no text"),
    ([3], "3 is no prompt"),
])  # fmt: skip
def test_what_is_no_prompt_is_refused(given, words) -> None:
    with pytest.raises(ValueError, match=words):
        prompts_of(given)
    with pytest.raises(ValueError, match="weights is \\('last"):
        measure(loaded("gpt"), ["the cat"], weights=("last", "first"))  # type: ignore[arg-type]


def test_a_corrupt_text_of_another_length_is_refused() -> None:
    model, answers = loaded("house-gpt"), ("Mary", "John")
    with pytest.raises(ValueError, match="no corrupt text"):
        patch_all(model, [Prompt(TEXT, answers=answers)], logit_difference())
    with pytest.raises(ValueError, match="same number of tokens"):
        patch_all(model, [Prompt(TEXT, answers=answers, corrupt="He")], logit_difference())
