"""What an example says of a run is what the run shows, changed or not; its links lead to what they name."""

import re
from collections.abc import Callable

import pytest

from model.nn.intervention import Intervention
from model.run.model import Model
from model.trace.trace import Trace
from tests.cases import cases
from tests.model.tiny import loaded
from viz.explorer.message import HeadClaim, LinkedWords, Ring
from viz.questions.claims import claims
from viz.state.presets import EXAMPLES, SentenceExample

by_title = pytest.mark.parametrize(
    "example",
    [
        pytest.param(example, id=example.title, marks=() if number % 8 == 0 else pytest.mark.slow)
        for number, example in enumerate(EXAMPLES)
    ],
)
TOKEN = re.compile(r"(?:(?P<ordinal>\w+) )?“(?P<text>[^”]+)”")
CHANGES: dict[str, Callable[[SentenceExample, Model], Intervention]] = {
    "no scaling": lambda example, model: Intervention(scale=1.0),
    "another mask": lambda example, model: Intervention(
        mask="none" if model.config.masks_future else "causal"
    ),
    "a token hidden": lambda example, model: Intervention(hidden=frozenset({example.view.key})),
}


def own(example: SentenceExample, before: Trace, after: Trace, change: Intervention) -> HeadClaim:
    """What is said of the example's own head."""
    said = claims(example.view, before, after, change)
    at = (example.view.place, example.view.head)
    return next(claim for claim in said if (claim.place, claim.head) == at)


def links(claim: HeadClaim) -> list[LinkedWords]:
    return [words for words in claim.words if words.rings or words.place]


@by_title
def test_the_unchanged_run_is_told_in_the_examples_own_words_with_links(
    example: SentenceExample,
) -> None:
    trace = loaded(example.view.model).trace(example.view.text)
    claim = own(example, trace, trace, Intervention())
    assert claim.text == example.look_for
    assert links(claim)
    attention = trace.find(example.view.place)
    lines = trace.queries_of(attention), trace.keys_of(attention)
    for words in links(claim):
        named = TOKEN.fullmatch(words.text)
        for ring in words.rings if named else ():
            axis, at = (1, ring.key) if ring.key is not None else (0, ring.query)
            assert at is not None
            assert lines[axis][at].text.strip() == named["text"], words


@by_title
@cases("change", CHANGES)
def test_a_changed_run_is_told_by_its_own_numbers(change, example: SentenceExample) -> None:
    model, view = loaded(example.view.model), example.view
    intervention = CHANGES[change](example, model)
    before, after = (model.trace(view.text), model.trace(view.text, intervention=intervention))
    said = own(example, before, after, intervention).text
    row = after.find(view.place).weights(view.head)[view.query]
    keys = after.keys_of(after.find(view.place))
    was = before.find(view.place).weights(view.head)[view.query, view.key]
    assert said != example.look_for
    (earlier,) = re.findall(r"before the change (\d\.\d+)|got (\d\.\d+) before", said)
    assert float("".join(earlier)) == pytest.approx(was, abs=0.006)
    for text, position, weight in re.findall(r"“([^”]+)” \((\d+)\)(?: gets|:) (\d\.\d+)", said):
        assert keys[int(position)].text.strip() == text.strip("·")
        assert row[int(position)] == pytest.approx(float(weight), abs=0.006)
    if "largest weight to" in said:
        found = re.search(r"largest weight to “[^”]+” \((\d+)\)", said)
        assert int(found[1]) == row.argmax()
    elif "tokens" in said:
        count, weight = re.findall(r"gives (\d+) tokens (\d\.\d+) each", said)[0]
        assert int(count) == (row >= row.max() * 0.9999).sum()
        assert float(weight) == pytest.approx(row.max(), abs=0.006)
    else:
        assert "attends to nothing" in said
        assert row.max() == 0


def test_a_row_that_is_masked_whole_and_a_head_without_output_are_said_to_be_so() -> None:
    model, example = loaded("house-gpt"), EXAMPLES[0]
    view, before = example.view, loaded("house-gpt").trace(example.view.text)
    cut = frozenset((view.query, key) for key in range(view.query + 1))
    for change, words in (
        (Intervention(blocked=cut), "attends to nothing: every key is masked"),
        (Intervention(ablated=frozenset({(view.place, view.head)})), "is set to zero"),
    ):
        after = model.trace(view.text, intervention=change)
        assert words in own(example, before, after, change).text


def test_words_that_name_a_row_a_line_or_a_head_lead_there() -> None:
    model, first = loaded("house-gpt"), EXAMPLES[0]
    trace = model.trace(first.view.text)
    last = len(trace.tokens) - 1
    text = "The last token, the diagonal, just below the diagonal, the first column, L0H2, L0H8, “nothing”."
    example = SentenceExample("made up", first.view, text)
    (claim,) = claims(first.view, trace, trace, Intervention(), [example])
    assert [(words.text, words.rings, words.place, words.head) for words in links(claim)] == [
        ("The last token", (Ring(query=last),), None, None),
        ("the diagonal", (Ring(diagonal=0),), None, None),
        ("just below the diagonal", (Ring(diagonal=-1),), None, None),
        ("the first column", (Ring(key=0),), None, None),
        ("L0H2", (), "decoder.0.self", 2),
    ]
    assert claim.text == text
