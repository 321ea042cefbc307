"""Positions: the sinusoidal table by hand, sums with embeddings, and learned positions."""

import numpy as np

from model.arithmetic import positions as arithmetic
from model.worked.example import Array, Sheet, given, whole, worked

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
def sinusoidal_table(sheet: Sheet, positions: Array, width: int, base: float) -> None:
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
def embedding_plus_position(sheet: Sheet, embedding: Array, base: float) -> None:
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
    sheet: Sheet, embedding: Array, table: Array, context: int, width: int
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
