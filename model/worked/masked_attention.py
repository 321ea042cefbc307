"""Masks in attention: the four-by-four case, and two routes to causal weights."""

from model.arithmetic import attention
from model.worked import latex
from model.worked.example import Array, Sheet, given, whole, worked

_TOKENS = ("y1", "y2", "y3", "pad")
_WORDS = ("The", "Cat", "Sat")
_VECTORS = [[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 1.0, 1.1, 1.2], [0.0] * 4]


@worked(
    "§5",
    "Four tokens, one of them padding",
    "The mask hides the future and the padding before the softmax; the other keys share the weight.",
    given("vectors", "Inputs (Q = K = V)", _VECTORS, _TOKENS, "dim"),
    whole("real", "1 for a real token, 0 for padding", [1, 1, 1, 0], 0, 1, _TOKENS),
    given("mask_value", "Mask value", -1e9, lowest=-1e20, highest=0),
)
def four_by_four_masked(sheet: Sheet, vectors: Array, real: Array, mask_value: float) -> None:
    allowed = attention.causal_mask(4) * real
    blocked = allowed == 0
    products = sheet.scores(vectors, vectors, _TOKENS, cell=(1, 1))
    scaled = sheet.scaled(products, 4, _TOKENS, cell=(1, 1))
    title, formula = "Mask: look-ahead times padded keys", r"M_{ij} = m_j\ \text{where } j \le i"
    sheet.step(title, formula, allowed, _TOKENS, _TOKENS, blocked=blocked)
    sheet.numbers(r"M_{\text{pad}} = @", allowed[3])
    hidden = sheet.step(
        "Masked scores",
        r"\tilde s_{ij} = s_{ij}\ \text{where } M_{ij} = 1,\quad \text{the mask value where } M_{ij} = 0",
        attention.masked(scaled, allowed, mask_value),
        _TOKENS,
        _TOKENS,
        quantity="score",
        blocked=blocked,
    )
    sheet.numbers(r"\tilde s_{\text{y1}} = @", hidden[0])
    weights = sheet.weights(hidden, _TOKENS, row=2, allowed=allowed)
    sheet.output(weights, vectors, _TOKENS, row=1)
    hidden = attention.masked(products, allowed, mask_value)
    title = "Weights without scaling, for comparison"
    weights = sheet.weights(hidden, _TOKENS, row=2, allowed=allowed, title=title)
    sheet.remark("Without the division by 2 the weights lie further apart.")
    title = "Output without scaling, for comparison"
    sheet.output(weights, vectors, _TOKENS, row=1, title=title)


@worked(
    "§5",
    "Two routes to causal weights",
    "Write −∞ into the future before the softmax, or set it to zero after the softmax and divide "
    "each row by its sum: the weights are the same.",
    given(
        "scores",
        "Scaled scores",
        [[1, 0, 1], [0, 1, 1], [1, 1, 2]],
        _WORDS,
        _WORDS,
        lowest=-30,
        highest=30,
    ),
)
def two_routes_to_causal(sheet: Sheet, scores: Array) -> None:
    allowed = attention.causal_mask(3)
    blocked = allowed == 0
    hidden = attention.masked(scores, allowed)
    title = "Route 1: −∞ in the future, then softmax"
    first = sheet.weights(hidden, _WORDS, row=1, allowed=allowed, title=title)
    title = "Route 2: softmax over everything first"
    full = sheet.weights(scores, _WORDS, row=1, title=title)
    zeroed = full * allowed
    title = "Route 2: the future set to zero"
    sheet.step(
        title, r"a_{ij}\, M_{ij}", zeroed, _WORDS, _WORDS, quantity="weight", blocked=blocked
    )
    sheet.numbers(r"\text{Cat: } @", zeroed[1])
    sums = zeroed.sum(axis=1)
    title = "Route 2: what is left of each row"
    sheet.step(title, r"\sum_j a_{ij}\, M_{ij}", sums, _WORDS)
    sheet.numbers(r"\text{Cat: } @ = @", latex.total(zeroed[1]), sums[1])
    again = zeroed / sums[:, None]
    title = "Route 2: each row divided by its sum"
    formula = r"\frac{a_{ij}\, M_{ij}}{\sum_m a_{im}\, M_{im}}"
    sheet.step(title, formula, again, _WORDS, _WORDS, quantity="weight", blocked=blocked)
    sheet.numbers(r"\text{Cat: } \frac{@}{@} = @", zeroed[1], sums[1], again[1])
    sheet.difference(first, again, "Route 1 minus route 2", _WORDS, _WORDS)
    sheet.remark("The sum over all keys cancels, so both routes give the same weights.")
