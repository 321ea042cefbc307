"""Positions: the sinusoidal table, learned and rotary positions, and word order (§8)."""

import math

import numpy as np

from model.arithmetic import attention, learning
from model.arithmetic import positions as arithmetic
from model.worked import latex
from model.worked.example import Array64, Sheet, given, whole, worked

_TOKENS = ("The", "Cat", "Sat")
_VECTORS = [[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 1, 1.1, 1.2]]
_LEARNED = [[0.02, -0.1, 0.05, 0], [0.1, 0.03, -0.04, 0.2], [-0.06, 0.1, 0.15, -0.1]]
_EMBEDDING = given("embedding", "Embeddings", _VECTORS, _TOKENS, "dim")
_BASE = given("base", "Base", 10_000, lowest=1, highest=1_000_000)


@worked(
    "§8",
    "The sinusoidal table",
    "Each pair of dimensions is a clock hand: its sine and cosine at this position. "
    "Later pairs turn more slowly.",
    whole("positions", "Positions", [0, 1, 2], 0, 100_000, "row"),
    whole("width", "Width d_model", 4, 2, 64),
    _BASE,
)
def sinusoidal_table(sheet: Sheet, positions: Array64, width: int, base: float) -> None:
    powers, formula = arithmetic.exponents(width), r"\frac{2i}{d_{\text{model}}}"
    sheet.step("Exponent of each dimension", formula, powers, "dim")
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
    sheet.remark("Every value lies between -1 and 1.")


@worked(
    "§8",
    "Embedding plus position",
    "What enters the first layer is the token's embedding plus the encoding of its position.",
    _EMBEDDING,
    _BASE,
)
def embedding_plus_position(sheet: Sheet, embedding: Array64, base: float) -> None:
    table = arithmetic.sinusoidal(np.arange(3.0), 4, base)
    sheet.step("Positional encoding of positions 0, 1, 2", "PE", table, _TOKENS, "dim")
    sheet.numbers(r"\text{pos 1: } @", table[1])
    total = embedding + table
    sheet.step("Embedding plus position", "E + PE", total, _TOKENS, "dim")
    sheet.numbers("@ + @ = @", embedding[1], table[1], total[1])
    sheet.remark("The same word at another position enters the model as another vector.")


@worked(
    "§8",
    "Learned positions",
    "GPT-2 learns one vector for each position instead of computing it.",
    _EMBEDDING,
    given("table", "Learned table (chosen here)", _LEARNED, _TOKENS, "dim"),
    whole("context", "Context length", 1024, 1, 1_000_000),
    whole("width", "Width", 768, 1, 16_384),
)
def learned_positions(
    sheet: Sheet, embedding: Array64, table: Array64, context: int, width: int
) -> None:
    total = embedding + table
    sheet.step("Embedding plus learned position", "E + P", total, _TOKENS, "dim")
    sheet.numbers("@ + @ = @", embedding[0], table[0], total[0])
    sheet.remark("Row p of the learned table is simply added to the token at position p.")
    count = context * width
    formula = r"0 \quad \text{and} \quad \text{context} \cdot d_{\text{model}}"
    sheet.step("Parameters of the two kinds", formula, (0, count), ("sinusoidal", "learned"))
    sheet.numbers(r"@ \cdot @ = @", context, width, count)
    sheet.remark("A learned table ends at its context length; the sinusoidal one has no end.")


_RATE = given("rate", "Angle for one position", 0.3, lowest=0, highest=3)


@worked(
    "§8",
    "Why sine and cosine",
    "A sine alone is ambiguous. With its cosine, moving by a number of positions is a rotation.",
    given("position", "Position", 3, lowest=0, highest=1000),
    given("shift", "Shift", 2, lowest=-1000, highest=1000),
    _RATE,
)
def shift_is_a_rotation(sheet: Sheet, position: float, shift: float, rate: float) -> None:
    angle, turn, names = position * rate, shift * rate, ("sine", "cosine")
    here, mirror = arithmetic.pair(angle), arithmetic.pair(math.pi - angle)
    title, formula = "Two angles with the same sine", r"\sin(a) = \sin(\pi - a)"
    sheet.step(title, formula, np.stack([here, mirror]), ("a", "π − a"), names)
    sheet.numbers(r"\sin(@) = \sin(\pi - @) = @", angle, angle, here[0])
    sheet.remark("Sine alone cannot tell these two apart; the cosine can.")

    matrix = arithmetic.shift_matrix(turn)
    formula = r"\begin{bmatrix} \cos b & \sin b \\ -\sin b & \cos b \end{bmatrix}"
    sheet.step("The rotation for this shift", formula, matrix, names, names)
    sheet.numbers(r"b = @ \cdot @ = @", shift, rate, turn)
    sheet.remark("It depends on the shift only, not on the position.")

    moved, formula = matrix @ here, r"R_b \begin{bmatrix} \sin a \\ \cos a \end{bmatrix}"
    sheet.step("The pair, rotated", formula, moved, names)
    sheet.numbers(r"\cos(@) \cdot @ + \sin(@) \cdot @ = @", turn, here[0], turn, here[1], moved[0])

    there = arithmetic.pair(angle + turn)
    formula = r"\begin{bmatrix} \sin(a + b) \\ \cos(a + b) \end{bmatrix}"
    sheet.step("The pair at the shifted position", formula, there, names)
    sheet.numbers("a + b = @", angle + turn)
    formula = r"\text{rotated} - \text{shifted}"
    sheet.difference(moved, there, "Difference", names, formula=formula)
    sheet.remark("A pair of sine and cosine makes every shift a rotation.")


@worked(
    "§8",
    "Rotary positions",
    "Rotary positions rotate the query and the key themselves, "
    "so that the score depends on their distance.",
    given("query", "Query", [1, 0.5], "dim"),
    given("key", "Key", [0.8, -0.3], "dim"),
    given("m", "Position of the query", 5, lowest=0, highest=1000),
    given("n", "Position of the key", 2, lowest=0, highest=1000),
    given("shift", "Shift", 7, lowest=0, highest=1000),
    _RATE,
)
def rotary_positions(
    sheet: Sheet, query: Array64, key: Array64, m: float, n: float, shift: float, rate: float
) -> None:
    turned = np.stack([arithmetic.rotated(query, m * rate), arithmetic.rotated(key, n * rate)])
    title = "Query and key, each rotated by its position"
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
    sheet.remark(
        "Moving both changes nothing; only the distance between them counts. "
        "(Rotary positions go beyond the notes.)"
    )


_LION, _TIGER = ("Lion", "kills", "tiger"), ("tiger", "kills", "Lion")
_ANIMALS = [[1, 0.2, 0, 0.5], [0.3, 0.9, 0.4, 0], [0.1, 0, 1, 0.7]]


@worked(
    "§8",
    "Lion kills tiger, tiger kills lion",
    "Without positions attention sees a bag of words: who kills whom is lost.",
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
    one = output("Lion kills tiger, without positions", embedding, _LION)
    other = output("Tiger kills lion, without positions", turned, _TIGER)
    sheet.difference(one, other[::-1], "Difference word by word", _LION, "dim")
    sheet.remark("Without positions each word gets the same vector in both sentences.")
    one = output("Lion kills tiger, with positions", embedding + table, _LION)
    other = output("Tiger kills lion, with positions", turned + table, _TIGER)
    sheet.difference(one, other[::-1], "Difference with positions", _LION, "dim")
    sheet.remark("With positions the two sentences differ.")


_PAIR = ("this token", "other token")
_DISTANCES = (1.0, 10.0, 100.0, 1_000.0, 10_000.0)


@worked(
    "§8",
    "Why are positions added, and not appended?",
    "A sum keeps the width. Its score holds all that the appended one would, and two more parts "
    "(here with W_Q = W_K = I).",
    given("words", "Word vectors (chosen here)", [[0.9, 0.1, 0.4], [0.3, 0.8, 0.2]], _PAIR, "dim"),
    given("places", "Position vectors (chosen here)", [[0, 1, 0.5], [0.8, 0.5, 0.9]], _PAIR, "dim"),
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
    sheet.step("The parts of the added score", formula, parts, names)
    sheet.numbers("@ = @", latex.total(parts), parts.sum())
    scores = np.array([added[0] @ added[1], appended[0] @ appended[1]])
    sheet.step("The scores", r"q \cdot k", scores, ("added", "appended"), quantity="score")
    sheet.numbers(r"@ + @ = @", parts[0], parts[3], scores[1])
    sheet.remark("The appended score has the first and the last part only.")
    width = words.shape[1]
    sizes_of = np.array([width**2, (2 * width) ** 2])
    sheet.step("Parameters of W_Q", r"d^2", sizes_of, ("added", "appended"))
    sheet.numbers(r"@ \cdot @ = @", 2.0 * width, 2.0 * width, sizes_of[1])
    sheet.remark("Appended positions make W_Q four times as large.")


@worked(
    "§8",
    "Why 10,000?",
    "The base sets how slowly the last pair turns, and so how far positions can be told apart.",
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
    sheet.step("Tokens for one full turn", formula, turns, rows, names)
    sheet.numbers(r"2 \cdot \pi \cdot @^{@} = @", bases[0], powers[2], turns[0, 2])
    sheet.remark("The first pair turns once in 6.28 tokens whatever the base is.")
    tables = [arithmetic.sinusoidal(np.array((0.0, *_DISTANCES)), width, base) for base in bases]
    alike = np.array([[learning.cosine(table[0], row) for row in table[1:]] for table in tables])
    distances = tuple(f"{distance:,g} apart" for distance in _DISTANCES)
    title, formula = "How alike two positions are", r"\cos(PE_0,\ PE_n)"
    sheet.step(title, formula, alike, rows, distances)
    sheet.numbers(r"\text{@, @: } @", rows[1], distances[2], alike[1, 2])
    sheet.remark(
        "With a small base near positions soon look as unlike as far ones; with a large one even far "
        "positions look alike. 10,000 is the choice of the paper."
    )
