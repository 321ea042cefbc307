"""How one product is cut into heads, and how wide a head is."""

import numpy as np

from model.arithmetic import attention, sizes
from model.worked.example import Array, Sheet, numbered, whole, worked
from model.worked.ladder import Q_MATRIX, TOKENS, VECTORS

_MODELS = ("first model", "second model")
_ENDS = ("first column", "last column")


@worked(
    "§7",
    "One large matrix, then a split",
    "The queries of all heads come from one product; each head takes its own columns.",
    VECTORS,
    Q_MATRIX,
    whole("heads", "Heads", 2, 1, 4),
)
def one_matrix_then_split(sheet: Sheet, x: Array, q_matrix: Array, heads: int) -> None:
    width = sizes.head_width(len(q_matrix), heads)
    query = sheet.project(x, q_matrix, "Q", TOKENS, title="One large product")
    for head, part in enumerate(attention.split_heads(query, heads)):
        start, end = head * width, (head + 1) * width
        title = f"Head {head}: columns {start} to {end - 1} of it"
        formula, columns = r"Q^{(h)} = Q_{:,\ h d_k : (h+1) d_k}", numbered("dim", width, start)
        sheet.step(title, formula, part, TOKENS, columns, quantity="query")
        sheet.numbers(r"\text{token 0: } @", part[0])
    small = np.concatenate([x @ columns for columns in np.split(q_matrix, heads, axis=1)], axis=1)
    title = "Large product minus the small ones, concatenated"
    sheet.difference(query, small, title, TOKENS, "dim")
    sheet.remark("h small matrices or one large one: the same products, computed in one go.")


@worked(
    "§7",
    "How wide is a head?",
    "The heads share the width of the model equally.",
    whole("widths", "Widths of two models", [512, 256], 1, 16_384, _MODELS),
    whole("heads", "Heads of each", [8, 8], 1, 128, _MODELS),
)
def head_widths(sheet: Sheet, widths: Array, heads: Array) -> None:
    pairs = zip(widths, heads, strict=True)
    each = np.array([sizes.head_width(int(width), int(count)) for width, count in pairs])
    models = tuple(f"width {width:g}" for width in widths)
    formula = r"d_k = \frac{d_{\text{model}}}{h}"
    sheet.step("Width of each head", formula, each, models)
    sheet.numbers(r"\frac{@}{@} = @", widths[0], heads[0], each[0])

    ends, formula = (0, each[1] - 1), r"0\ \text{to}\ d_k - 1"
    sheet.step("Columns of the first head", formula, ends, _ENDS)
    sheet.numbers(r"0\ \text{to}\ @ - 1 = @", each[1], ends[1])
    sheet.remark("The notes count it as head 1; on these pages heads are numbered from 0.")

    starts = np.arange(heads[1]) * each[1]
    table = np.stack([starts, starts + each[1] - 1], axis=1)
    title = f"Columns of every head at width {widths[1]:g}"
    formula = r"h\,d_k\ \text{to}\ (h+1)\,d_k - 1"
    sheet.step(title, formula, table, "head", _ENDS)
    sheet.numbers(r"\text{head } @: @\ \text{to}\ @", len(table) - 1, *table[-1])
