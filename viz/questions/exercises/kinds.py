"""The kinds of exercises, in the order in which they stand on a sheet. Pure."""

from model.trace.unproven import proven
from viz.questions.exercises.exercise import ExerciseKind, ExerciseSource
from viz.questions.exercises.rows import (
    entropy_of_a_row,
    largest_weight,
    masked_row,
    scaled_score,
    softmax_of_a_row,
    weighted_sum,
)
from viz.questions.exercises.vectors import (
    cost_of_attention,
    cut_into_heads,
    logit_difference,
    loss_of_a_token,
    norm_of_a_vector,
    norm_of_an_entry,
    parameters_of_a_block,
    position_entry,
)


def _has_norms(source: ExerciseSource) -> bool:
    return bool(proven(source.trace.norms))


def _predicts(source: ExerciseSource) -> bool:
    return source.trace.prediction is not None and len(source.trace.tokens_of("decoder")) > 1


KINDS: tuple[ExerciseKind, ...] = (
    ExerciseKind(
        "Position encoding",
        r"p_{2i} = \sin\frac{pos}{10000^{2i/d}},\quad p_{2i+1} = \cos\frac{pos}{10000^{2i/d}}",
        position_entry,
    ),
    ExerciseKind("Cut into heads", r"(B, n, h\,d_k) \to (B, h, n, d_k)", cut_into_heads),
    ExerciseKind("A scaled score", r"s = \text{scale} \cdot \sum_m q_m k_m", scaled_score),
    ExerciseKind("Softmax of a row", r"a_j = \frac{e^{s_j}}{\sum_m e^{s_m}}", softmax_of_a_row),
    ExerciseKind("The largest weight", r"\frac{a_i}{a_j} = e^{s_i - s_j}", largest_weight),
    ExerciseKind("Mask a key", r"a'_j = \frac{a_j}{1 - a_m}", masked_row),
    ExerciseKind("A weighted sum", r"o = \sum_j a_j v_j", weighted_sum),
    ExerciseKind("Entropy of a row", r"H = -\sum_j a_j \ln a_j", entropy_of_a_row),
    ExerciseKind(
        "Norm of a short vector",
        r"\hat x = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}}",
        norm_of_a_vector,
        _has_norms,
    ),
    ExerciseKind(
        "One entry of a norm",
        r"y = \gamma\,\frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + \beta",
        norm_of_an_entry,
        _has_norms,
    ),
    ExerciseKind(
        "Parameters", r"4(d^2 + d) + 2\,d\,d_{mlp} + d_{mlp} + d + 4d", parameters_of_a_block
    ),
    ExerciseKind("Cost of attention", r"2\,n\,d_k\ \text{a row}", cost_of_attention),
    ExerciseKind(
        "From logits to a probability",
        r"\frac{p_1}{p_2} = e^{\ell_1 - \ell_2}",
        logit_difference,
        _predicts,
    ),
    ExerciseKind(
        "Loss of a token", r"L = \ln\sum_v e^{\ell_v} - \ell_y", loss_of_a_token, _predicts
    ),
)


def kinds_of(source: ExerciseSource) -> tuple[ExerciseKind, ...]:
    """The kinds that this run has numbers for."""
    return tuple(kind for kind in KINDS if kind.needs(source))
