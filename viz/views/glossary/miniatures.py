"""The small picture beside each term of the glossary: numbers of a worked example, or what the term does to
them."""

import html
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from model.analysis.heads.statistics import rollout
from model.analysis.tokens.prediction import probabilities, temperature, top_k, top_p
from model.loading.shipped import DamagedError
from model.nn.stages import CAP
from model.system.files import NotReadError
from model.training.checkpoints import shipped_training_run
from viz.figures.svg import miniature
from viz.notation.theme import QuantityName
from viz.notation.words import sentences_of
from viz.views.glossary.glossary import Term
from viz.views.worked.by_hand import worked_example

say = sentences_of("glossary.miniatures")

Numbers = NDArray[np.floating]
STYLE = Path(__file__).with_name("miniatures.css")


def result(example: str, title: str) -> Numbers:
    """What a step of a worked example gives. Raises KeyError if there is no such step."""
    return {step.title: step.result for step in worked_example(example).steps}[title]


def _input(example: str, name: str) -> Numbers:
    return {item.name: item.value for item in worked_example(example).inputs}[name]


def _logits() -> NDArray[np.float32]:
    return result("most-probable-word", "Logits").astype(np.float32)


def _without_a_head() -> Numbers:
    first = result("ladder-multi-head", "Output of head 0")
    return np.hstack([first, np.zeros_like(result("ladder-multi-head", "Output of head 1"))])


def _rolled_out() -> Numbers:
    weights = [result("ladder-multi-head", f"Weights of head {head}") for head in (0, 1)]
    return rollout([np.mean(weights, axis=0, dtype=np.float32)] * 2)


def _rms_normed() -> Numbers:
    vector = _input("layer-norm-by-hand", "x")
    return np.asarray(vector / np.sqrt(np.mean(np.square(vector))))


def _lens() -> Numbers:
    """The first step of the worked decoder, read before and after its attention."""
    start = _input("sequence-in-three-steps", "target")
    matrix = _input("sequence-in-three-steps", "matrix")
    after = result("sequence-in-three-steps", say("vectors_after_both"))
    return probabilities((np.stack([start[0], after[0]]) @ matrix).astype(np.float32))


def _losses() -> Numbers:
    records = [one["loss"] for one in shipped_training_run("induction").history if "loss" in one]
    return np.array(records[:: max(1, len(records) // 12)])


def _head(name: str, text: str, place: str, head: int) -> Numbers:
    """What a head of a shipped model attends to in a text, after the last step of its training."""
    training_run = shipped_training_run(name)
    trace = training_run.model(training_run.steps[-1]).trace(text)
    return trace.find(place).weights(head)


def _trained_head(what: str) -> Numbers:
    """What a head that was found in the smallest model does where five letters come twice."""
    return _head("induction", "a b c d e a b c d e", *shipped_training_run("induction").head(what))


def _by_distance() -> Numbers:
    """The mean weight of the same head on the token at each distance, from the query itself on."""
    weights = _trained_head("induction")
    return np.array([np.diagonal(weights, -back).mean() for back in range(len(weights))])


def _sorted_weights() -> Numbers:
    """The weights of the same head, the smallest first: a percentile is a place among them."""
    weights = _trained_head("induction")
    return np.sort(weights[np.tri(len(weights), dtype=bool)])


def _alibi() -> Numbers:
    """What ALiBi adds for each query and key before it, with the steepest slope of eight heads."""
    from model.nn.biases import alibi_slopes  # imports torch: pages are drawn first

    places = np.arange(6)
    return np.tril(-alibi_slopes(8)[0] * (places[:, None] - places))


def _buckets() -> Numbers:
    """The bucket of each distance, of four for earlier keys."""
    import torch  # as above

    from model.nn.biases import distance_buckets, distances

    away = distances(8, 8, torch.device("cpu"))
    return distance_buckets(away, 4, 8, two_ways=False).numpy()


def _capped() -> Numbers:
    scores = result("the-cat-sat", "Scores").astype(np.float32)
    return CAP.numbers(scores, float(np.abs(scores).max()) / 2)


def _overlaps() -> Numbers:
    """How alike five directions are that share two dimensions, as far apart as they can be."""
    angles = np.arange(5) * 2 * np.pi / 5
    return np.cos(angles[:, None] - angles)


# Terms that no worked example shows: what they are, done to the numbers of one.
MADE: dict[str, tuple[Callable[[], Numbers], QuantityName]] = {
    "ALiBi": (_alibi, "score"),
    "Ablation": (_without_a_head, "output"),
    "Attention sink": (
        lambda: _head("stories", say("tom_hill_saw_red"), "decoder.1.self", 2),
        "weight",
    ),
    "Attention rollout": (_rolled_out, "weight"),
    "Checkpoint": (_losses, "stream"),
    "Induction head": (lambda: _trained_head("induction"), "weight"),
    "KL divergence": (
        lambda: np.stack([probabilities(_logits()), temperature(_logits(), 3.0)]),
        "weight",
    ),
    "Logit lens": (_lens, "weight"),
    "Percentile": (_sorted_weights, "weight"),
    "Perplexity": (lambda: probabilities(np.zeros(10, np.float32)), "weight"),
    "Previous-token head": (lambda: _trained_head("previous_token"), "weight"),
    "Profile of a head": (_by_distance, "weight"),
    "Relative position bucket": (_buckets, "score"),
    "RMS norm": (_rms_normed, "stream"),
    "Soft cap": (_capped, "score"),
    "Superposition": (_overlaps, "score"),
    "Temperature": (
        lambda: np.stack([temperature(_logits(), divisor) for divisor in (0.5, 1.0, 2.0)]),
        "weight",
    ),
    "Top-k": (lambda: top_k(probabilities(_logits()), 3), "weight"),
    "Top-p": (lambda: top_p(probabilities(_logits()), 0.5), "weight"),
    "Trace": (
        lambda: np.hstack([result("the-cat-sat", name) for name in ("Queries", "Keys", "Values")]),
        "query",
    ),
}


@cache
def picture(term: Term) -> str:
    """HTML: the small picture of a term; nothing where the model that it shows cannot be read."""
    if term.pieces:
        boxes = "".join(f"<span>{html.escape(piece)}</span>" for piece in term.pieces)
        return f'<span class="pieces" aria-hidden="true">{boxes}</span>'
    try:
        if term.picture:
            numbers, quantity = result(*term.picture), term.quantity
        else:
            made, quantity = MADE[term.name]
            numbers = made()
        return f'<img src="{miniature(numbers, quantity)}" alt="">'
    except (DamagedError, NotReadError):  # the pages of that model say what helps
        return ""
