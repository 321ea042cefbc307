"""Why sine and cosine come in pairs, rotary positions, and what is lost without positions."""

import math

import numpy as np

from model.arithmetic import Array, attention, positions
from model.worked.example import Sheet, given, worked

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
    here, mirror = positions.pair(angle), positions.pair(math.pi - angle)
    title, formula = "Two angles with the same sine", r"\sin(a) = \sin(\pi - a)"
    sheet.step(title, formula, np.stack([here, mirror]), ("a", "π − a"), names)
    sheet.numbers(r"\sin(@) = \sin(\pi - @) = @", angle, angle, here[0])
    sheet.remark("Sine alone cannot tell these two apart; the cosine can.")

    matrix = positions.shift_matrix(turn)
    formula = r"\begin{bmatrix} \cos b & \sin b \\ -\sin b & \cos b \end{bmatrix}"
    sheet.step("The rotation for this shift", formula, matrix, names, names)
    sheet.numbers(r"b = @ \cdot @ = @", shift, rate, turn)
    sheet.remark("It depends on the shift only, not on the position.")

    moved, formula = matrix @ here, r"R_b \begin{bmatrix} \sin a \\ \cos a \end{bmatrix}"
    sheet.step("The pair, rotated", formula, moved, names)
    sheet.numbers(r"\cos(@) \cdot @ + \sin(@) \cdot @ = @", turn, here[0], turn, here[1], moved[0])

    there = positions.pair(angle + turn)
    formula = r"\begin{bmatrix} \sin(a + b) \\ \cos(a + b) \end{bmatrix}"
    sheet.step("The pair at the shifted position", formula, there, names)
    sheet.numbers("a + b = @", angle + turn)
    sheet.step("Difference", r"\text{rotated} - \text{shifted}", moved - there, names)
    sheet.largest_difference(moved - there)
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
    sheet: Sheet, query: Array, key: Array, m: float, n: float, shift: float, rate: float
) -> None:
    turned = np.stack([positions.rotated(query, m * rate), positions.rotated(key, n * rate)])
    title = "Query and key, each rotated by its position"
    rows = (f"query at {m:g}", f"key at {n:g}")
    sheet.step(title, r"R_{m\theta}\, q,\quad R_{n\theta}\, k", turned, rows, "dim")
    line = r"\cos(@) \cdot @ - \sin(@) \cdot @ = @"
    sheet.numbers(line, m * rate, query[0], m * rate, query[1], turned[0, 0])

    places = ((m, n), (m + shift, n + shift), (m + shift, n))
    scores = np.array(
        [positions.rotated(query, q * rate) @ positions.rotated(key, k * rate) for q, k in places]
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
def lion_kills_tiger(sheet: Sheet, embedding: Array) -> None:
    def output(title: str, vectors: Array, words: tuple[str, ...]) -> Array:
        result = attention.attend(vectors, vectors, vectors).output
        formula = r"\mathrm{softmax}\!\left(\frac{X X^\top}{\sqrt{d_k}}\right) X"
        sheet.step(title, formula, result, words, "dim", quantity="output")
        sheet.numbers(r"\text{@: } @", words[0], result[0])
        return result

    turned, table = embedding[::-1], positions.sinusoidal(np.arange(3.0), 4)
    one = output("Lion kills tiger, without positions", embedding, _LION)
    other = output("Tiger kills lion, without positions", turned, _TIGER)
    sheet.difference(one, other[::-1], "Difference word by word", _LION, "dim")
    sheet.remark("Without positions each word gets the same vector in both sentences.")
    one = output("Lion kills tiger, with positions", embedding + table, _LION)
    other = output("Tiger kills lion, with positions", turned + table, _TIGER)
    sheet.difference(one, other[::-1], "Difference with positions", _LION, "dim")
    sheet.remark("With positions the two sentences differ.")
