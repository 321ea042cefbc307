"""Why it is built so: what each choice gives, beside what would happen without it."""

import numpy as np

from model.arithmetic import attention, learning, positions, sizes
from model.worked import latex
from model.worked.example import Array, Sheet, given, whole, worked
from model.worked.ladder import SQUARE_MATRICES, TOKENS, VECTORS

_PAIR = ("this token", "other token")
_DISTANCES = (1.0, 10.0, 100.0, 1_000.0, 10_000.0)


@worked(
    "§3",
    "Why a softmax, and not plain shares?",
    "A plain share is a score divided by the sum of the scores. That needs positive scores; the "
    "softmax takes any.",
    given("scores", "Scores", [2, -1, 1.5], "score"),
    given("raised", "Added to every score", 10),
)
def softmax_or_plain_shares(sheet: Sheet, scores: Array, raised: float) -> None:
    higher = scores + raised
    if scores.sum() == 0 or higher.sum() == 0:
        raise ValueError("Scores with the sum 0 have no plain shares: that is a division by 0.")
    shares, formula = scores / scores.sum(), r"\frac{s_j}{\sum_m s_m}"
    sheet.step("Plain shares", formula, shares, "score")
    sheet.numbers(r"\frac{@}{@} = @", scores[0], scores.sum(), shares[0])
    sheet.remark("Where scores differ in sign, some share is below 0.")
    weights = attention.softmax(scores)
    formula = r"\frac{e^{s_j}}{\sum_m e^{s_m}}"
    sheet.step("Softmax", formula, weights, "score", quantity="weight")
    sheet.numbers(latex.softmax(scores, weights))
    sheet.remark("Every weight is positive, and all sum to 1.")
    table = np.stack([higher / higher.sum(), attention.softmax(higher)])
    names = ("plain shares", "softmax")
    sheet.step("Both after the addition", r"s_j + c", table, names, "score")
    sheet.numbers(r"@ + @ = @", scores[0], raised, higher[0])
    sheet.remark(
        "The softmax depends on differences of scores only; plain shares depend on their size."
    )


@worked(
    "§6",
    "Why are W_Q and W_K separate?",
    "With one matrix for both, each pair of tokens would get the same score in both directions.",
    VECTORS,
    *SQUARE_MATRICES[:2],
)
def separate_queries_and_keys(sheet: Sheet, x: Array, q_matrix: Array, k_matrix: Array) -> None:
    query = sheet.project(x, q_matrix, "Q", TOKENS)
    key = sheet.project(x, k_matrix, "K", TOKENS)
    two = sheet.scores(query, key, TOKENS, title="Scores with two matrices")
    formula = r"S - S^\top"
    sheet.step("These scores minus their transpose", formula, two - two.T, TOKENS, TOKENS)
    sheet.numbers("@ - @ = @", two[0, 1], two[1, 0], two[0, 1] - two[1, 0])
    sheet.remark("Token 0 may attend to token 1 while token 1 attends elsewhere.")
    formula = r"S = Q Q^\top"
    one = sheet.scores(
        query, query, TOKENS, title="Scores with W_Q for both", formula=formula, cell=(0, 1)
    )
    sheet.difference(one, one.T, "These scores minus their transpose, again", TOKENS, TOKENS)
    sheet.remark("Always 0: no pair of tokens could attend to each other by different amounts.")


@worked(
    "§6",
    "Why several heads, and what with one?",
    "One head has one row of weights for each token; two heads have two, from as many parameters.",
    VECTORS,
    *SQUARE_MATRICES,
)
def one_head_or_two(
    sheet: Sheet, x: Array, q_matrix: Array, k_matrix: Array, v_matrix: Array, o_matrix: Array
) -> None:
    results = []
    for heads, count in ((1, "One head"), (2, "Two heads")):
        parts = [attention.split_heads(x @ each, heads) for each in (q_matrix, k_matrix, v_matrix)]
        runs = [attention.attend(*part) for part in zip(*parts, strict=True)]
        for head, run in enumerate(runs):
            which = f": weights of head {head}" if heads > 1 else ": weights"
            sheet.weights(run.scaled, TOKENS, title=count + which, row=2)
        merged = attention.merge_heads(np.stack([run.output for run in runs]))
        title = f"{count}: output through W_O"
        formula = r"Z\,W_O" if heads == 1 else r"[\,z^{(0)},\ z^{(1)}\,]\, W_O"
        sheet.step(title, formula, merged @ o_matrix, TOKENS, "dim", quantity="output")
        sheet.numbers(r"@\,W_O = @", merged[2], merged[2] @ o_matrix)
        results.append(merged @ o_matrix)
    sheet.difference(results[0], results[1], "One head minus two", TOKENS, "dim")
    sheet.remark("Two heads can read two places at once, each for its own part of the width.")
    parameters = sizes.projection_parameters(len(x[0]))
    sheet.step("Parameters", r"4\,d^2", [parameters] * 2, ("one head", "two heads"))
    sheet.numbers(r"4 \cdot @ \cdot @ = @", float(len(x[0])), float(len(x[0])), parameters)
    sheet.remark("The heads share the width, so that more of them cost nothing.")


@worked(
    "§7",
    "Which heads share a key head?",
    "In grouped-query attention several query heads use the same keys and values, so that fewer "
    "have to be kept while the model writes.",
    whole("key_heads", "Key heads", 3, 1, 128),
    whole("group", "Query heads for each", 3, 1, 128),
    whole("width", "Width of a head", 64, 1, 1_024),
    whole("length", "Tokens kept", 1024, 1, 1_000_000),
)
def grouped_queries(sheet: Sheet, key_heads: int, group: int, width: int, length: int) -> None:
    heads = key_heads * group
    shared = np.arange(heads) // group
    formula = r"\left\lfloor \frac{\text{head}}{h / g} \right\rfloor"
    sheet.step("The key head of each query head", formula, shared, "head")
    sheet.numbers(r"h / g = \frac{@}{@} = @", float(heads), float(key_heads), float(group))
    sheet.remark("Neighbouring heads form a group: the same keys, each with its own queries.")
    kept = 2 * width * np.array([heads, key_heads, 1.0])
    names = ("a key head each", f"{key_heads} key heads", "one for all")
    sheet.step("Numbers kept for each token", r"2\,g\,d_k", kept, names)
    sheet.numbers(r"2 \cdot @ \cdot @ = @", float(key_heads), float(width), kept[1])
    sheet.remark("Keys and values of earlier tokens are kept in each layer: the KV cache.")
    sheet.step("Numbers kept for all tokens", r"2\,g\,d_k\,n", kept * length, names)
    sheet.numbers(r"@ \cdot @ = @", kept[1], float(length), kept[1] * length)


@worked(
    "§8",
    "Why are positions added, and not appended?",
    "A sum keeps the width. Its score holds all that the appended one would, and two more parts "
    "(here with W_Q = W_K = I).",
    given("words", "Word vectors (chosen here)", [[0.9, 0.1, 0.4], [0.3, 0.8, 0.2]], _PAIR, "dim"),
    given("places", "Position vectors (chosen here)", [[0, 1, 0.5], [0.8, 0.5, 0.9]], _PAIR, "dim"),
)
def added_or_appended(sheet: Sheet, words: Array, places: Array) -> None:
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
def why_ten_thousand(sheet: Sheet, width: int, bases: Array) -> None:
    if width % 2:
        raise ValueError(f"A width of {width} has no whole number of pairs.")
    rows = tuple(f"base {base:,.10g}" for base in bases)
    powers = positions.exponents(width)[[0, width // 2 - width // 2 % 2, -1]]
    turns = 2 * np.pi * bases[:, None] ** powers
    names = ("first pair", "middle pair", "last pair")
    formula = r"2\pi \cdot \text{base}^{2i/d_{\text{model}}}"
    sheet.step("Tokens for one full turn", formula, turns, rows, names)
    sheet.numbers(r"2 \cdot \pi \cdot @^{@} = @", bases[0], powers[2], turns[0, 2])
    sheet.remark("The first pair turns once in 6.28 tokens whatever the base is.")
    tables = [positions.sinusoidal(np.array((0.0, *_DISTANCES)), width, base) for base in bases]
    alike = np.array([[learning.cosine(table[0], row) for row in table[1:]] for table in tables])
    distances = tuple(f"{distance:,g} apart" for distance in _DISTANCES)
    title, formula = "How alike two positions are", r"\cos(PE_0,\ PE_n)"
    sheet.step(title, formula, alike, rows, distances)
    sheet.numbers(r"\text{@, @: } @", rows[1], distances[2], alike[1, 2])
    sheet.remark(
        "With a small base near positions soon look as unlike as far ones; with a large one even far "
        "positions look alike. 10,000 is the choice of the paper."
    )


@worked(
    "§10",
    "Why four times as wide?",
    "The feed-forward layer widens each vector, four times in most models. That is a choice, and "
    "it settles where most parameters lie.",
    whole("width", "Width d_model", 768, 1, 16_384),
    whole("factors", "Times as wide", [1, 2, 4, 8], 1, 64, "choice"),
)
def how_wide_inside(sheet: Sheet, width: int, factors: Array) -> None:
    names = tuple(f"{factor:g} × d" for factor in factors)
    inside = factors * width
    sheet.step("Neurons", r"f \cdot d", inside, names)
    sheet.numbers(r"@ \cdot @ = @", factors[-1], float(width), inside[-1])
    sheet.remark("Each neuron looks for one direction in the vector and writes another.")
    own = np.array([sizes.feed_forward_parameters(width, int(each)) for each in inside])
    sheet.step("Parameters of the layer", r"2\,f\,d^2 + (f + 1)\,d", own, names)
    products = (2 * factors[-1] * width**2, (factors[-1] + 1) * width)
    sheet.numbers("@ + @ = @", *products, own[-1])
    shares = 100 * own / (own + sizes.projection_parameters(width))
    formula = r"\frac{100 \cdot \text{feed-forward}}{\text{feed-forward} + 4\,d^2}"
    sheet.step("Share beside attention, in percent", formula, shares, names)
    four = sizes.projection_parameters(width)
    sheet.numbers(r"\frac{100 \cdot @}{@ + @} = @", own[-1], own[-1], four, shares[-1])
    sheet.remark("At four times the width it is about two thirds.")


@worked(
    "§12",
    "How does an encoder make one vector of a sentence?",
    "It takes the mean of the tokens' last vectors, without the padding, and brings it to length 1.",
    given(
        "tokens",
        "Last vectors of the tokens (chosen here)",
        [[0.8, 0.1, 0.5], [0.4, 0.9, -0.2], [0.6, 0.2, 0.3], [0.1, -0.7, 0.9]],
        "token",
        "dim",
    ),
    whole("mask", "1 for a token, 0 for padding", [1, 1, 1, 0], 0, 1, "token"),
    given("other", "Vector of another sentence (chosen here)", [0.5, 0.6, 0.1], "dim"),
)
def sentence_vector(sheet: Sheet, tokens: Array, mask: Array, other: Array) -> None:
    count = mask.sum()
    if count == 0:
        raise ValueError("Every token is padding, so there is nothing to take the mean of.")
    total = sheet.step("Sum without the padding", r"\sum_i m_i x_i", mask @ tokens, "dim")
    sheet.numbers(r"\text{token 0: } @,\ \text{sum: } @", tokens[0], total)
    mean = sheet.step("Mean", r"\frac{\sum_i m_i x_i}{\sum_i m_i}", total / count, "dim")
    sheet.numbers(r"\frac{@}{@} = @", total[0], count, mean[0])
    size = float(np.linalg.norm(mean))
    unit = mean / size if size else mean
    sheet.step("Brought to length 1", r"\frac{x}{|x|}", unit, "dim", quantity="output")
    sheet.numbers(r"|x| = @,\ @ \to @", size, mean, unit)
    padded = tokens.mean(axis=0)
    pooled = np.array([learning.cosine(each, other) for each in (mean, tokens[0], padded)])
    names = ("mean", "first token alone", "mean with the padding")
    sheet.step("Cosine with the other sentence", r"\cos(x,\ y)", pooled, names)
    sheet.numbers("@", pooled)
    sheet.remark("BERT's [CLS] is a first token that can be taken alone; MiniLM takes the mean.")


@worked(
    "§13",
    "Beam search beside greedy",
    "Greedy takes the most probable word each time. A beam of two keeps two beginnings, and may "
    "find a more probable sentence.",
    given("first", "First word (chosen here)", [0.55, 0.45], ("A", "B"), lowest=0, highest=1),
    given(
        "second",
        "Second word after each (chosen here)",
        [[0.4, 0.35, 0.25], [0.9, 0.06, 0.04]],
        ("after A", "after B"),
        ("x", "y", "z"),
        lowest=0,
        highest=1,
    ),
)
def beam_beside_greedy(sheet: Sheet, first: Array, second: Array) -> None:
    both = first[:, None] * second
    rows, columns = ("A", "B"), ("x", "y", "z")
    sheet.step("Probability of each sentence", r"p(w_1)\,p(w_2 \mid w_1)", both, rows, columns)
    sheet.numbers(r"@ \cdot @ = @", first[0], second[0, 0], both[0, 0])
    taken = int(first.argmax())
    then = int(second[taken].argmax())
    greedy = both[taken, then]
    formula = r"\max_{w_2}\ p(w_2 \mid \text{the most probable } w_1)"
    sheet.step("What greedy finds", formula, greedy)
    sheet.numbers(r"@ \cdot @ = @", first[taken], second[taken, then], greedy)
    sheet.remark(f"It writes “{rows[taken]} {columns[then]}”.")
    start, end = np.unravel_index(both.argmax(), both.shape)
    best = both[start, end]
    sheet.step("What a beam of two finds", r"\max_{w_1, w_2}\ p(w_1)\,p(w_2 \mid w_1)", best)
    sheet.numbers(r"@ \cdot @ = @", first[start], second[start, end], best)
    sheet.remark(
        f"It writes “{rows[start]} {columns[end]}”. With two first words it sees every sentence of "
        "two words, but not of three."
    )
