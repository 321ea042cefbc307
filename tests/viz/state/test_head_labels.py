"""What All heads and the questions call a head holds on its rows; a sink or a single row is no label."""

import re
from types import SimpleNamespace

import numpy as np

from model import Trace
from model.analysis.heads.ranking import scores
from model.analysis.heads.statistics import Family, families, prefix_matching
from model.trace.arrays import Array
from tests.cases import cases
from tests.model.made_trace import made_trace
from tests.model.tiny import loaded
from viz.questions.question import Scene
from viz.questions.rows import copying_head, previous_head
from viz.views.all_heads.patterns import _look_for, _role

LIST = "a b c d e a b c d e a b"  # seven tokens come back
STOPS = "x . a b . c d . a b . c ."
SINK = "w ball . u ball v ball s ball t"


def causal(rows: Array) -> Array:
    """Rows of weights that see only what stands before them and sum to 1."""
    seen = np.tril(rows + 1e-6)
    return (seen / seen.sum(-1, keepdims=True)).astype(np.float32)


def on(cells: dict[int, int], length: int, *, rest: int | None = 0) -> Array:
    """One key a row; the other rows look at the key `rest`, or spread evenly."""
    rows = np.zeros((length, length), dtype=np.float32)
    for query in range(length):
        key = cells.get(query, rest)
        rows[query, :] = 1.0 if key is None else 0.0
        if key is not None:
            rows[query, key] = 1.0
    return causal(rows)


def copying(words: str) -> dict[int, int]:
    """The row of each token that comes back: the key after its last earlier occurrence."""
    tokens = words.split()
    found = {}
    for query, token in enumerate(tokens):
        earlier = [at for at in range(query - 1) if tokens[at] == token]
        if earlier:
            found[query] = earlier[-1] + 1
    return found


def told(trace: Trace, family: Family | None = None) -> tuple[str, list[str]]:
    """What the grid says above the tiles, and over each tile."""
    known = scores(trace, family or families(trace)[0])
    seen = SimpleNamespace(trace=trace)
    return _look_for(seen, known), [_role(known, head) for head in known.heads]


def test_a_head_that_copies_is_called_an_induction_head() -> None:
    above, roles = told(made_trace([on(copying(LIST), 12)], LIST))
    assert "induction head (L0H0: 1.00)" in above
    assert roles == ["induction: 1.00"]


def test_a_column_on_which_every_row_rests_is_no_induction_head() -> None:
    """What followed the first "ball" is the full stop, on which all rows rest, those of "ball" too."""
    rest = on({}, 10, rest=2)
    above, roles = told(made_trace([rest], SINK))
    assert prefix_matching(rest, [SINK.split().index(word) for word in SINK.split()]) > 0.99
    assert "induction" not in above
    assert not any("induction" in role for role in roles)


@cases("words", ["a b c a", "a b c d a b", "the cat saw the"])
def test_one_or_two_tokens_that_come_back_are_too_few(words) -> None:
    above, roles = told(made_trace([on(copying(words), len(words.split()))], words))
    assert "induction" not in above
    assert not any("induction" in role for role in roles)


def test_one_clear_row_among_several_is_too_few() -> None:
    one_row = dict(list(copying(LIST).items())[:1])
    assert "induction" not in told(made_trace([on(one_row, 12)], LIST))[0]
    even = on({}, 12, rest=None)
    assert "induction" not in told(made_trace([even], LIST))[0]


def test_the_token_before_is_no_induction_although_it_followed_the_same_token() -> None:
    words = "x a b a b a b a b"
    before = on({query: query - 1 for query in range(1, 9)}, 9)
    above, roles = told(made_trace([before], words))
    assert "induction" not in above
    assert "previous-token head (L0H0: 1.00)" in above
    assert roles == ["previous token: 1.00"]


def test_neither_an_encoder_nor_a_translators_decoder_has_induction_heads() -> None:
    weights = on(copying(LIST), 12)
    for trace in (
        made_trace([weights], LIST, kind="self"),
        made_trace([weights], "un deux", target=LIST),
    ):
        above, roles = told(trace)
        assert "induction" not in above
        assert not any("induction" in role for role in roles)
        assert "continues the text" in scores(trace, families(trace)[0]).refused["induction"]


@cases("words", ["a", "a b", "a b c", "a a a a"])
def test_short_texts_and_equal_tokens_make_no_label_of_what_cannot_be_otherwise(words) -> None:
    length = len(words.split())
    even = on({}, length, rest=None)
    above, roles = told(made_trace([even, even], words))
    assert "L0H" not in above
    assert not any(":" in role for role in roles)


def test_a_first_column_is_no_line_below_the_diagonal() -> None:
    """In three rows the first is also the token before; the other rows rest on it too."""
    above, roles = told(made_trace([on({}, 4)], "a b c d"))
    assert "previous-token" not in above
    assert re.fullmatch(r"A strong first column [^;]*\(L0H0: 1\.00\)\.", above)
    assert roles == ["first token: 1.00"]


@cases("model, text, heads", [
    ("stories", "cat dog mat hat cup cat dog mat hat cup cat", {"L1H0", "L1H1", "L1H2", "L1H3"}),
    ("induction", "q f m b t x k q f m b t x k q f", {"L1H0", "L1H1", "L1H2", "L1H3"}),
])  # fmt: skip
def test_the_shipped_models_heads_that_copy_are_called_so(model, text, heads) -> None:
    trace = loaded(model).trace(text)
    known = scores(trace, families(trace)[0])
    called = {f"L{name.split('.')[1]}H{head}" for (name, head), _ in known.called("induction")}
    assert called == heads
    assert "induction head" in told(trace)[0]


@cases("model", ["minilm", "translate-en-fr"])
def test_no_head_of_a_model_that_reads_or_translates_is_called_one(model) -> None:
    text = "the black cat sees the white cat" if model != "minilm" else LIST
    trace = loaded(model).trace(text)
    for family in families(trace):
        above, roles = told(trace, family)
        assert "induction" not in above + " ".join(roles)


def test_the_default_sentence_has_too_few_rows_for_an_induction_head() -> None:
    trace = loaded("house-gpt").trace("Tom Hill saw a red ball. Anna gave the ball to Tom")
    above, roles = told(trace)
    assert "previous-token head (L0H2: 1.00)" in above
    assert "induction" not in above + " ".join(roles)


def scene(trace: Trace, head: int = 0) -> Scene:
    place = trace.attention[0].name
    return Scene(lambda intervention: trace, lambda ids: (), place, head, lambda stream: stream)


def test_a_question_asks_for_no_copying_head_where_the_best_is_a_sink() -> None:
    length = len(STOPS.split())
    idle = [on({}, length)] * 3
    assert (
        copying_head(scene(made_trace([on(copying(STOPS), length), *idle], STOPS)), 0) is not None
    )
    words = STOPS.split()
    sink = {
        q: max((at for at in range(q + 1) if words[at] == "."), default=0) for q in range(length)
    }
    assert copying_head(scene(made_trace([on(sink, length), *idle], STOPS)), 0) is None
    weights = [on(copying(STOPS), length), *idle]
    assert copying_head(scene(made_trace(weights, STOPS, kind="self")), 0) is None


def test_a_question_asks_for_the_token_before_only_where_most_rows_have_it() -> None:
    idle = on({query: query for query in range(6)}, 6)
    line = on({query: query - 1 for query in range(1, 6)}, 6)
    assert previous_head(scene(made_trace([line, idle, idle, idle], "a b c d e f")), 0) is not None
    two = on({1: 0}, 2)
    alone = on({1: 1}, 2)
    assert previous_head(scene(made_trace([two, alone, alone, alone], "a b")), 0) is None
