"""Positions: the sinusoidal table, learned and rotary positions, and word order (§8)."""

import math

import numpy as np

from model.arithmetic import attention, learning
from model.arithmetic import positions as arithmetic
from model.system.words import Words
from model.worked import latex
from model.worked.example import Array64, Sheet, given, whole, worked

say = Words("worked.positions")

_TOKENS = ("The", "Cat", "Sat")
_VECTORS = [[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 1, 1.1, 1.2]]
_LEARNED = [[0.02, -0.1, 0.05, 0], [0.1, 0.03, -0.04, 0.2], [-0.06, 0.1, 0.15, -0.1]]
_EMBEDDING = given("embedding", "Embeddings", _VECTORS, _TOKENS, "dim")
_BASE = given("base", "Base", 10_000, lowest=1, highest=1_000_000)


@worked(
    "§8",
    "The sinusoidal table",
    say("pair_dimensions_clock"),
    whole("positions", "Positions", [0, 1, 2], 0, 100_000, "row"),
    whole("width", "Width d_model", 4, 2, 64),
    _BASE,
)
def sinusoidal_table(sheet: Sheet, positions: Array64, width: int, base: float) -> None:
    powers, formula = arithmetic.exponents(width), r"\frac{2i}{d_{\text{model}}}"
    sheet.step(say("exponent_dimension"), formula, powers, "dim")
    sheet.numbers("@", powers)
    rows = tuple(f"pos {position:g}" for position in positions)
    angles = arithmetic.angles(positions, width, base)
    sheet.step("Angles", r"\frac{\text{pos}}{10000^{2i/d_{\text{model}}}}", angles, rows, "dim")
    sheet.numbers(r"\frac{@}{@^{@}} = @", positions[-1], base, powers[-1], angles[-1, -1])
    table = arithmetic.sinusoidal(positions, width, base)
    formula = (
        r"PE_{(\text{pos}, 2i)} = \sin(\text{angle}),\quad "
        r"PE_{(\text{pos}, 2i+1)} = \cos(\text{angle})"
    )
    sheet.step("Positional encoding", formula, table, rows, "dim")
    sheet.numbers(r"\text{@: } @", rows[-1], table[-1])
    sheet.remark(say("every_value_lies"))


@worked(
    "§8",
    "Embedding plus position",
    say("enters_first_layer"),
    _EMBEDDING,
    _BASE,
)
def embedding_plus_position(sheet: Sheet, embedding: Array64, base: float) -> None:
    table = arithmetic.sinusoidal(np.arange(3.0), 4, base)
    sheet.step(say("positional_encoding_positions"), "PE", table, _TOKENS, "dim")
    sheet.numbers(r"\text{pos 1: } @", table[1])
    total = embedding + table
    sheet.step("Embedding plus position", "E + PE", total, _TOKENS, "dim")
    sheet.numbers("@ + @ = @", embedding[1], table[1], total[1])
    sheet.remark(say("same_word_another"))


@worked(
    "§8",
    "Learned positions",
    say("gpt_2_learns_vector"),
    _EMBEDDING,
    given("table", say("learned_table_chosen"), _LEARNED, _TOKENS, "dim"),
    whole("context", "Context length", 1024, 1, 1_000_000),
    whole("width", "Width", 768, 1, 16_384),
)
def learned_positions(
    sheet: Sheet, embedding: Array64, table: Array64, context: int, width: int
) -> None:
    total = embedding + table
    sheet.step(say("embedding_plus_learned"), "E + P", total, _TOKENS, "dim")
    sheet.numbers("@ + @ = @", embedding[0], table[0], total[0])
    sheet.remark(say("row_p_learned_table"))
    count = context * width
    formula = r"0 \quad \text{and} \quad \text{context} \cdot d_{\text{model}}"
    sheet.step(say("parameters_kinds"), formula, (0, count), ("sinusoidal", "learned"))
    sheet.numbers(r"@ \cdot @ = @", context, width, count)
    sheet.remark(say("learned_table_ends"))


_RATE = given("rate", say("angle_position"), 0.3, lowest=0, highest=3)


@worked(
    "§8",
    say("why_sine_cosine"),
    say("sine_alone_ambiguous"),
    given("position", "Position", 3, lowest=0, highest=1000),
    given("shift", "Shift", 2, lowest=-1000, highest=1000),
    _RATE,
)
def shift_is_a_rotation(sheet: Sheet, position: float, shift: float, rate: float) -> None:
    angle, turn, names = position * rate, shift * rate, ("sine", "cosine")
    here, mirror = arithmetic.pair(angle), arithmetic.pair(math.pi - angle)
    title, formula = say("angles_same_sine"), r"\sin(a) = \sin(\pi - a)"
    sheet.step(title, formula, np.stack([here, mirror]), ("a", "π − a"), names)
    sheet.numbers(r"\sin(@) = \sin(\pi - @) = @", angle, angle, here[0])
    sheet.remark(say("sine_alone_cannot"))

    matrix = arithmetic.shift_matrix(turn)
    formula = r"\begin{bmatrix} \cos b & \sin b \\ -\sin b & \cos b \end{bmatrix}"
    sheet.step(say("rotation_shift"), formula, matrix, names, names)
    sheet.numbers(r"b = @ \cdot @ = @", shift, rate, turn)
    sheet.remark(say("depends_shift_only"))

    moved, formula = matrix @ here, r"R_b \begin{bmatrix} \sin a \\ \cos a \end{bmatrix}"
    sheet.step("The pair, rotated", formula, moved, names)
    sheet.numbers(r"\cos(@) \cdot @ + \sin(@) \cdot @ = @", turn, here[0], turn, here[1], moved[0])

    there = arithmetic.pair(angle + turn)
    formula = r"\begin{bmatrix} \sin(a + b) \\ \cos(a + b) \end{bmatrix}"
    sheet.step(say("pair_shifted_position"), formula, there, names)
    sheet.numbers("a + b = @", angle + turn)
    formula = r"\text{rotated} - \text{shifted}"
    sheet.difference(moved, there, "Difference", names, formula=formula)
    sheet.remark(say("pair_sine_cosine"))


@worked(
    "§8",
    "Rotary positions",
    say("rotary_positions_rotate"),
    given("query", "Query", [1, 0.5], "dim"),
    given("key", "Key", [0.8, -0.3], "dim"),
    given("m", say("position_query"), 5, lowest=0, highest=1000),
    given("n", say("position_key"), 2, lowest=0, highest=1000),
    given("shift", "Shift", 7, lowest=0, highest=1000),
    _RATE,
)
def rotary_positions(
    sheet: Sheet, query: Array64, key: Array64, m: float, n: float, shift: float, rate: float
) -> None:
    turned = np.stack([arithmetic.rotated(query, m * rate), arithmetic.rotated(key, n * rate)])
    title = say("query_key_rotated")
    rows = (f"query at {m:g}", f"key at {n:g}")
    sheet.step(title, r"R_{m\theta}\, q,\quad R_{n\theta}\, k", turned, rows, "dim")
    line = r"\cos(@) \cdot @ - \sin(@) \cdot @ = @"
    sheet.numbers(line, m * rate, query[0], m * rate, query[1], turned[0, 0])

    places = ((m, n), (m + shift, n + shift), (m + shift, n))
    scores = np.array(
        [arithmetic.rotated(query, q * rate) @ arithmetic.rotated(key, k * rate) for q, k in places]
    )
    formula = r"(R_{m\theta}\, q) \cdot (R_{n\theta}\, k)"
    columns = tuple(f"query {q:g}, key {k:g}" for q, k in places)
    sheet.step("Their scores", formula, scores, columns, quantity="score")
    sheet.numbers("@", scores)
    sheet.remark(say("moving_both_changes"))


_LION, _TIGER = ("Lion", "kills", "tiger"), ("tiger", "kills", "Lion")
_ANIMALS = [[1, 0.2, 0, 0.5], [0.3, 0.9, 0.4, 0], [0.1, 0, 1, 0.7]]


@worked(
    "§8",
    say("lion_kills_tiger_tiger"),
    say("without_positions_attention"),
    given("embedding", "Embeddings (chosen here)", _ANIMALS, _LION, "dim"),
)
def lion_kills_tiger(sheet: Sheet, embedding: Array64) -> None:
    def output(title: str, vectors: Array64, words: tuple[str, ...]) -> Array64:
        result = attention.attend(vectors, vectors, vectors).output
        formula = r"\mathrm{softmax}\!\left(\frac{X X^\top}{\sqrt{d_k}}\right) X"
        sheet.step(title, formula, result, words, "dim", quantity="output")
        sheet.numbers(r"\text{@: } @", words[0], result[0])
        return result

    turned, table = embedding[::-1], arithmetic.sinusoidal(np.arange(3.0), 4)
    one = output(say("lion_kills_tiger"), embedding, _LION)
    other = output(say("tiger_kills_lion"), turned, _TIGER)
    sheet.difference(one, other[::-1], say("difference_word_word"), _LION, "dim")
    sheet.remark(say("without_positions_word"))
    one = output(say("lion_kills_tiger_positions"), embedding + table, _LION)
    other = output(say("tiger_kills_lion_positions"), turned + table, _TIGER)
    sheet.difference(one, other[::-1], "Difference with positions", _LION, "dim")
    sheet.remark(say("positions_sentences_differ"))


_PAIR = ("this token", "other token")
_DISTANCES = (1.0, 10.0, 100.0, 1_000.0, 10_000.0)


@worked(
    "§8",
    say("why_positions_added"),
    say("sum_keeps_width"),
    given("words", say("word_vectors_chosen"), [[0.9, 0.1, 0.4], [0.3, 0.8, 0.2]], _PAIR, "dim"),
    given("places", say("position_vectors_chosen"), [[0, 1, 0.5], [0.8, 0.5, 0.9]], _PAIR, "dim"),
)
def added_or_appended(sheet: Sheet, words: Array64, places: Array64) -> None:
    added = words + places
    sheet.step("Added", "E + P", added, _PAIR, "dim")
    sheet.numbers("@ + @ = @", words[0], places[0], added[0])
    appended = np.concatenate([words, places], axis=1)
    sheet.step("Appended", r"[\,E,\ P\,]", appended, _PAIR, "dim")
    sheet.numbers(r"@,\ @ \to @", words[0], places[0], appended[0])
    parts = np.array([words[0] @ words[1], words[0] @ places[1], places[0] @ words[1]])
    parts = np.append(parts, places[0] @ places[1])
    names = ("word · word", "word · position", "position · word", "position · position")
    formula = r"(e + p) \cdot (e' + p') = e \cdot e' + e \cdot p' + p \cdot e' + p \cdot p'"
    sheet.step(say("parts_added_score"), formula, parts, names)
    sheet.numbers("@ = @", latex.total(parts), parts.sum())
    scores = np.array([added[0] @ added[1], appended[0] @ appended[1]])
    sheet.step("The scores", r"q \cdot k", scores, ("added", "appended"), quantity="score")
    sheet.numbers(r"@ + @ = @", parts[0], parts[3], scores[1])
    sheet.remark(say("appended_score_first"))
    width = words.shape[1]
    sizes_of = np.array([width**2, (2 * width) ** 2])
    sheet.step("Parameters of W_Q", r"d^2", sizes_of, ("added", "appended"))
    sheet.numbers(r"@ \cdot @ = @", 2.0 * width, 2.0 * width, sizes_of[1])
    sheet.remark(say("appended_positions_make"))


@worked(
    "§8",
    "Why 10,000?",
    say("base_sets_slowly"),
    whole("width", "Width d_model", 512, 2, 4_096),
    given("bases", "Bases", [100, 10_000, 1_000_000], "base", lowest=1, highest=1e9),
)
def why_ten_thousand(sheet: Sheet, width: int, bases: Array64) -> None:
    if width % 2:
        raise ValueError(f"A width of {width} has no whole number of pairs.")
    rows = tuple(f"base {base:,.10g}" for base in bases)
    powers = arithmetic.exponents(width)[[0, width // 2 - width // 2 % 2, -1]]
    turns = 2 * np.pi * bases[:, None] ** powers
    names = ("first pair", "middle pair", "last pair")
    formula = r"2\pi \cdot \text{base}^{2i/d_{\text{model}}}"
    sheet.step(say("tokens_full_turn"), formula, turns, rows, names)
    sheet.numbers(r"2 \cdot \pi \cdot @^{@} = @", bases[0], powers[2], turns[0, 2])
    sheet.remark(say("first_pair_turns"))
    tables = [arithmetic.sinusoidal(np.array((0.0, *_DISTANCES)), width, base) for base in bases]
    alike = np.array([[learning.cosine(table[0], row) for row in table[1:]] for table in tables])
    distances = tuple(f"{distance:,g} apart" for distance in _DISTANCES)
    title, formula = say("alike_positions"), r"\cos(PE_0,\ PE_n)"
    sheet.step(title, formula, alike, rows, distances)
    sheet.numbers(r"\text{@, @: } @", rows[1], distances[2], alike[1, 2])
    sheet.remark(say("small_base_near"))
