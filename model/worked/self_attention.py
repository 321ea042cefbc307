"""Self-attention by hand, why scores are divided by √d_k, the softmax and its gradient (§1 to §4)."""

import numpy as np

from model.arithmetic import attention
from model.system.words import Words
from model.worked import latex
from model.worked.example import Array64, Sheet, given, numbered, whole, worked
from model.worked.notes import TWO_LAYERS

say = Words("worked.self_attention")

_TOKENS = ("The", "Cat", "Sat")


@worked(
    "§1",
    say("cat_sat_self_attention"),
    say("token_compares_query"),
    given("embedding", "Embeddings E", [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1]], _TOKENS, "dim"),
    given("q_matrix", "W_Q", np.eye(4), "dim", "dim"),
    given("k_matrix", "W_K", np.eye(4), "dim", "dim"),
    given("v_matrix", "W_V", np.eye(4), "dim", "dim"),
)
def the_cat_sat(
    sheet: Sheet, embedding: Array64, q_matrix: Array64, k_matrix: Array64, v_matrix: Array64
) -> None:
    query, key, value = (
        _projected(sheet, embedding, matrix, letter)
        for letter, matrix in (("Q", q_matrix), ("K", k_matrix), ("V", v_matrix))
    )
    scores = sheet.scores(query, key, _TOKENS)
    scaled = sheet.scaled(scores, 4, _TOKENS, cell=(0, 1))
    formula = r"\mathrm{softmax}\!\left(\frac{q_i K^\top}{\sqrt{d_k}}\right)"
    title = say("rows_enter_softmax")
    sheet.step(title, formula, scaled, _TOKENS, _TOKENS, quantity="score")
    sheet.numbers(r"\mathrm{softmax}(@)\ \text{for Cat}", scaled[1])
    weights = sheet.weights(scaled, _TOKENS)
    terms = weights[0][:, None] * value
    formula, title = r"a_{\text{The},\,j}\; v_j", say("terms_output")
    sheet.step(title, formula, terms, _TOKENS, "dim", quantity="value")
    sheet.numbers(r"\text{dim 0: } @", latex.total(terms[:, 0]))
    sheet.remark(say("adding_three_rows"))
    sheet.output(weights, value, _TOKENS)


def _projected(sheet: Sheet, embedding: Array64, matrix: Array64, letter: str) -> Array64:
    result = sheet.project(embedding, matrix, letter, _TOKENS, "E")
    sheet.remark(say("matrix_identity_changes"))
    return result


@worked(
    "§1",
    say("hot_inputs_outputs"),
    say("hot_inputs_w_i_output"),
    given("embedding", "One-hot inputs", np.eye(3), _TOKENS, "dim"),
)
def one_hot_picture(sheet: Sheet, embedding: Array64) -> None:
    formula = r"S = E E^\top"
    scores = sheet.scores(embedding, embedding, _TOKENS, cell=(0, 0), formula=formula)
    scaled = sheet.scaled(scores, 3, _TOKENS, cell=(0, 0))
    weights = sheet.weights(scaled, _TOKENS)
    output = sheet.output(weights, embedding, _TOKENS)
    sums = sheet.step(say("sum_output_row"), r"\sum_d z_{id}", output.sum(axis=1), _TOKENS)
    sheet.numbers("@ = @", latex.total(output[0]), sums[0])
    sheet.remark(say("output_row_row_weights"))


@worked(
    "§1",
    say("query_key_value"),
    say("query_says_token"),
    given("query", "Query", [1, 0.5], "dim"),
    given("keys", "Keys", [[1, 0], [0, 1], [1, 1]], "entry", "dim"),
    given("values", "Values", [[10, 0], [0, 10], [5, 5]], "entry", "dim"),
    given("sharpness", "Sharpness", 1, lowest=0, highest=100),
)
def soft_look_up(
    sheet: Sheet, query: Array64, keys: Array64, values: Array64, sharpness: float
) -> None:
    queries, entries = ("the query",), numbered("entry", 3)
    title = say("well_key_matches")
    scores = sheet.scores(query[None], keys, queries, entries, title=title)
    title = say("dict_return_value")
    sheet.output(np.eye(3)[[scores.argmax()]], values, queries, title=title)
    sheet.remark(say("dict_gives_value"))
    weights = sheet.weights(
        scores * sharpness,
        queries,
        entries,
        title=say("match_weights"),
        formula=r"a = \mathrm{softmax}(\text{sharpness} \cdot q K^\top)",
    )
    title = say("attention_returns_sum")
    sheet.output(weights, values, queries, title=title)
    sheet.remark(say("larger_sharpness_closer"))


_QUERY = ("query",)
_TWO_KEYS = numbered("key", 2, start=1)
_SCORES = numbered("score", 2, start=1)
_SCALINGS = ("not scaled", "divided by √d_k")


@worked(
    "§2",
    say("keys_without_scaling"),
    say("dividing_scores_k"),
    given("query", "Query", [2, 3, 4, 1], "dim"),
    given("keys", "Keys", [[1, 0, 1, 0], [0, 1, 0, 1]], _TWO_KEYS, "dim"),
)
def two_keys_scaled(sheet: Sheet, query: Array64, keys: Array64) -> None:
    scores = sheet.scores(query[None], keys, _QUERY, _TWO_KEYS)
    sheet.weights(scores, _QUERY, _TWO_KEYS, title="Weights without scaling")
    scaled = sheet.scaled(scores, len(query), _QUERY, _TWO_KEYS)
    sheet.weights(scaled, _QUERY, _TWO_KEYS, title="Weights with scaling")
    sheet.remark(say("smaller_scores_leave"))


@worked(
    "§2",
    say("lead_nine_softmax"),
    say("softmax_depends_only"),
    given("scores", "Scores", [10, 1], _SCORES),
)
def softmax_of_ten_and_one(sheet: Sheet, scores: Array64) -> None:
    exponentials = sheet.step("Exponentials", r"e^{s_j}", np.exp(scores), _SCORES)
    sheet.numbers("e^{@} = @", scores[0], exponentials[0])
    weights, formula = attention.softmax(scores), r"a_j = \frac{e^{s_j}}{\sum_m e^{s_m}}"
    sheet.step("Weights", formula, weights, _SCORES, quantity="weight")
    sheet.numbers(latex.softmax(scores, weights))


def _sampled_scores(seed: int, queries: int, keys: int, width: int) -> Array64:
    """Scores (query, key) of random standard normal vectors; each query has keys of its own."""
    generator = np.random.default_rng([seed, width])
    query = generator.standard_normal((queries, 1, width))
    key = generator.standard_normal((queries, keys, width))
    return attention.dot_products(query, key)[:, 0, :]


@worked(
    "§2",
    say("variance_dot_product"),
    say("random_queries_keys"),
    whole("widths", "d_k", [4, 8, 16, 32, 64, 128, 256, 512], 1, 512, "size"),
    whole("queries", "Queries drawn", 200, 20, 400),
    whole("keys", say("keys_query"), 16, 2, 32),
    whole("seed", "Seed", 0, 0, 9999),
)
def variance_of_a_dot_product(
    sheet: Sheet, widths: Array64, queries: int, keys: int, seed: int
) -> None:
    sampled = [_sampled_scores(seed, queries, keys, int(d)) for d in widths]
    pairs = [(scores, scores / np.sqrt(d)) for scores, d in zip(sampled, widths, strict=True)]
    columns = tuple(f"d_k {d:g}" for d in widths)
    formula = r"\mathrm{Var}(q \cdot k) = \sum_{i=1}^{d_k} \mathrm{Var}(q_i k_i) = d_k"
    law = np.stack([widths, widths / widths])
    sheet.step(say("variance_law_gives"), formula, law, _SCALINGS, columns)
    sheet.numbers(r"d_k = @:\ \frac{@}{\sqrt{@}^2} = 1", *[widths[0]] * 3)
    sheet.remark(say("sum_k_products_variance"))
    for title, formula, statistic, comment in (
        (
            say("variance_sampled_scores"),
            r"\frac{1}{n}\sum (s - \bar s)^2",
            lambda scores: scores.var(),
            say("sampled_scores_follow"),
        ),
        (
            say("entropy_weights_nats"),
            r"-\sum_j a_j \ln a_j",
            lambda scores: attention.entropy(attention.softmax(scores)).mean(),
            say("without_scaling_entropy"),
        ),
        (
            say("largest_weight_average"),
            r"\max_j a_j",
            lambda scores: attention.softmax(scores).max(axis=-1).mean(),
            say("without_scaling_key"),
        ),
    ):
        table = np.array([[statistic(scores) for scores in pair] for pair in pairs]).T
        sheet.step(title, formula, table, _SCALINGS, columns)
        sheet.numbers(r"d_k = @:\ @", widths[0], table[:, 0])
        sheet.remark(comment)


CLAIM = (0.1, 0.15)  # the mean slope that one document calls frequent


@worked(
    "§2",
    say("slopes_softmax_saturation"),
    say("far_weight_moves"),
    given("scores", "Scores", [2, 4, 1], "score"),
    given("stretch", "Factors c", [0.25, 0.5, 1, 2, 4, 8], "factor", lowest=0),
)
def softmax_slopes(sheet: Sheet, scores: Array64, stretch: Array64) -> None:
    weights, formula = attention.softmax(scores), r"p_j = \frac{e^{s_j}}{\sum_m e^{s_m}}"
    sheet.step("Weights", formula, weights, "score", quantity="weight")
    sheet.numbers(latex.softmax(scores, weights))
    sheet.remark(say("positive_numbers_sum"))

    formula = r"\frac{\partial p_i}{\partial s_i} = p_i\,(1 - p_i)"
    own = attention.own_slopes(weights)
    sheet.step(say("slope_weight_own"), formula, own, "score")
    sheet.numbers(r"@\,(1 - @) = @", weights[0], weights[0], own[0])
    sheet.remark(say("lies_between_0_0"))

    formula = r"\frac{\partial p_i}{\partial s_j} = -p_i\,p_j \quad (i \ne j)"
    slopes = attention.softmax_slopes(weights)
    sheet.step(say("slope_every_weight"), formula, slopes, "weight", "score")
    sheet.numbers(r"-@ \cdot @ = @", weights[0], weights[1], slopes[0, 1])
    sheet.remark(say("row_sums_0_raising"))

    formula = r"p_i\,(1 - p_i)\ \text{of}\ \mathrm{softmax}(c \cdot s)"
    slopes = np.stack([attention.own_slopes(attention.softmax(scores * c)) for c in stretch])
    rows = tuple(f"c = {factor:g}" for factor in stretch)
    sheet.step(say("same_slopes_scores"), formula, slopes, rows, "score")
    sheet.numbers(r"c = @:\ @", stretch[-1], slopes[-1])
    sheet.remark(say("large_scores_push"))


@worked(
    "§2",
    say("large_softmax_gradient"),
    say("depends_many_keys"),
    whole("keys", "Numbers of keys", [2, 3, 4, 6, 8, 16, 64], 1, 512, "size"),
    given(
        "spreads",
        say("standard_deviations_scores"),
        [0.5, 1, 2, 4],
        "spread",
        lowest=0,
        highest=50,
    ),
)
def average_gradient(sheet: Sheet, keys: Array64, spreads: Array64) -> None:
    rows = tuple(f"{count:g} keys" for count in keys)
    columns = tuple(f"spread {spread:g}" for spread in spreads)
    formula, equal = r"\frac{1}{n}\left(1 - \frac{1}{n}\right)", (keys - 1) / keys**2
    sheet.step(say("slope_equal_scores"), formula, equal, rows)
    sheet.numbers(r"n = @:\ @", keys[0], equal[0])
    sheet.remark(say("more_keys_share"))

    formula = r"\mathbb{E}\,[\,p_i\,(1 - p_i)\,],\quad s_j \sim \mathcal{N}(0,\ \text{spread}^2)"
    means = np.array([[attention.mean_own_slope(int(n), float(s)) for s in spreads] for n in keys])
    sheet.step(say("average_slope_random"), formula, means, rows, columns)
    sheet.numbers(r"n = @,\ \text{spread } @:\ @", keys[0], spreads[0], means[0, 0])
    inside = (means >= CLAIM[0]) & (means <= CLAIM[1])
    found = ", ".join(f"{rows[i]} at {columns[j]}" for i, j in np.argwhere(inside))
    sheet.remark(
        say(
            "calls_frequent_cases",
            two_layers=TWO_LAYERS.title,
            first_claim=CLAIM[0],
            claim=CLAIM[1],
            sum_inside=inside.sum(),
            means=means.size,
            choice=": " if found else "",
            found=found,
        )
    )


_QUERIES, _KEYS = numbered("query", 3), numbered("key", 3)
_SOFTMAX = r"a_j = \frac{e^{s_j}}{\sum_m e^{s_m}}"


@worked(
    "§3",
    say("softmax_three_scores"),
    say("raise_e_score_add"),
    given("scores", "Scores", [0.9, -1.5, 3.2], "score"),
)
def softmax_of_three(sheet: Sheet, scores: Array64) -> None:
    exponentials = sheet.step("Exponentials", r"e^{s_j}", np.exp(scores), "score")
    sheet.numbers("e^{@} = @", scores[0], exponentials[0])
    total = sheet.step("Their sum", r"\sum_m e^{s_m}", exponentials.sum())
    sheet.numbers("@ = @", latex.total(exponentials), total)
    weights = attention.softmax(scores)
    sheet.step("Weights", _SOFTMAX, weights, "score", quantity="weight")
    sheet.numbers(r"\frac{@}{@} = @", exponentials[0], total, weights[0])
    title = say("same_largest_score")
    formula = r"a_j = \frac{e^{s_j - s_{\max}}}{\sum_m e^{s_m - s_{\max}}}"
    lowered = scores - scores.max()
    shares = np.exp(lowered) / np.exp(lowered).sum()
    sheet.step(title, formula, shares, "score", quantity="weight")
    sheet.numbers(r"@ \to @", lowered, shares)
    sheet.remark(say("computers_way_exponential"))


@worked(
    "§3",
    say("twice_score_far"),
    say("scores_4_2_differ"),
    given("scores", "Scores", [2, 4, 1], "score"),
)
def twice_the_score(sheet: Sheet, scores: Array64) -> None:
    if scores[0] == 0:
        raise ValueError(
            f"Score 0 is {scores[0]:g}, and {scores[1]:g} / {scores[0]:g} has no value."
        )
    weights = attention.softmax(scores)
    sheet.step("Weights", _SOFTMAX, weights, "score", quantity="weight")
    sheet.numbers(latex.softmax(scores, weights))
    ratio = sheet.step(say("ratio_scores"), r"\frac{s_1}{s_0}", scores[1] / scores[0])
    sheet.numbers(r"\frac{@}{@} = @", scores[1], scores[0], ratio)
    lead, formula = scores[1] - scores[0], r"\frac{a_1}{a_0} = e^{s_1 - s_0}"
    sheet.step(say("ratio_weights"), formula, np.exp(lead), quantity="weight")
    sheet.numbers("e^{@} = @", lead, np.exp(lead))
    sheet.remark(say("softmax_turns_differences"))


@worked(
    "§3",
    say("axis_softmax_runs"),
    say("weights_shares_query"),
    given("scores", "Scores", [[1, 0, 1], [0, 1, 1], [1, 1, 2]], _QUERIES, _KEYS),
)
def softmax_over_keys(sheet: Sheet, scores: Array64) -> None:
    title = say("softmax_along_last")
    rows = sheet.weights(scores, _QUERIES, _KEYS, title=title)
    sheet.remark(say("dim_1_batch_heads"))
    title = say("softmax_along_other")
    formula = r"\frac{e^{s_{ij}}}{\sum_m e^{s_{mj}}}"
    columns = attention.softmax(scores, axis=0)
    sheet.step(title, formula, columns, _QUERIES, _KEYS)
    sheet.numbers(r"\text{column 0: } @", latex.softmax(scores[:, 0], columns[:, 0]))
    sheet.remark(say("common_mistake_now"))
    sums = np.stack([rows.sum(axis=1), columns.sum(axis=1)])
    ways = ("over the keys", "over the queries")
    sheet.step(say("sum_query_row"), r"\sum_j a_{ij}", sums, ways, _QUERIES)
    sheet.numbers("@ = @", latex.total(columns[0]), sums[1, 0])


@worked(
    "§4",
    say("new_cat_30_38_cat"),
    say("output_attention_mix"),
    given("weights", "Weights of Cat", [0.3, 0.38, 0.32], _TOKENS, lowest=0, highest=1),
    given("values", "Values V", [[1, 0, 2, 0], [0, 3, 0, 1], [1, 1, 1, 1]], _TOKENS, "dim"),
)
def weighted_sum_of_cat(sheet: Sheet, weights: Array64, values: Array64) -> None:
    shares = 100.0 * weights
    sheet.step("Shares in percent", r"100 \cdot a_j", shares, _TOKENS, quantity="weight")
    sheet.numbers(r"100 \cdot @ = @", weights, shares)
    sheet.step(say("sum_weights"), r"\sum_j a_j", weights.sum(), quantity="weight")
    sheet.numbers("@ = @", latex.total(weights), weights.sum())
    sheet.remark(say("softmax_always_gives"))
    terms = weights[:, None] * values
    title = say("value_times_weight")
    sheet.step(title, r"a_j\, v_j", terms, _TOKENS, "dim", quantity="value")
    sheet.numbers(r"@\,@ = @", weights[0], values[0], terms[0])
    sheet.output(weights[None], values, ("Cat",), title=say("new_vector_cat"))
    sheet.remark(say("sum_three_rows_above"))


@worked(
    "§3",
    say("why_softmax_not"),
    say("plain_share_score"),
    given("scores", "Scores", [2, -1, 1.5], "score"),
    given("raised", say("added_every_score"), 10),
)
def softmax_or_plain_shares(sheet: Sheet, scores: Array64, raised: float) -> None:
    higher = scores + raised
    if scores.sum() == 0 or higher.sum() == 0:
        raise ValueError("Scores with the sum 0 have no plain shares: that is a division by 0.")
    shares, formula = scores / scores.sum(), r"\frac{s_j}{\sum_m s_m}"
    sheet.step("Plain shares", formula, shares, "score")
    sheet.numbers(r"\frac{@}{@} = @", scores[0], scores.sum(), shares[0])
    sheet.remark(say("scores_differ_sign"))
    weights = attention.softmax(scores)
    formula = r"\frac{e^{s_j}}{\sum_m e^{s_m}}"
    sheet.step("Softmax", formula, weights, "score", quantity="weight")
    sheet.numbers(latex.softmax(scores, weights))
    sheet.remark(say("every_weight_positive"))
    table = np.stack([higher / higher.sum(), attention.softmax(higher)])
    names = ("plain shares", "softmax")
    sheet.step(say("both_after_addition"), r"s_j + c", table, names, "score")
    sheet.numbers(r"@ + @ = @", scores[0], raised, higher[0])
    sheet.remark(say("softmax_depends_differences"))
