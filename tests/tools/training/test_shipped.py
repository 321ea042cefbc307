"""The shipped models: their gates, measured again on data from other seeds."""

import socket

import numpy as np
import pytest
import torch

from model import load_model
from model.loading.shipped import ASSETS, load_asset
from model.nn.transformer import Transformer
from model.run.tokenizers import WordTokenizer
from model.training import grammar, trainer
from model.training.induction import best, repeat_evaluation
from tests.cases import cases
from tools.training import house
from tools.training.__main__ import RECIPES
from tools.training.translate import TranslateTask

pytestmark = pytest.mark.slow

OTHER_SEED = 77
SHIPPED = [path.parent.name for path in ASSETS.glob("*/card.json")]
_WITHOUT_BOOKS = [name for name in RECIPES if name != "house-gpt" and (ASSETS / name).is_dir()]


def test_the_models_that_the_app_needs_are_shipped() -> None:
    assert {"induction", "stories", "translate-en-fr"} <= set(_WITHOUT_BOOKS)


@pytest.mark.parametrize("name", [name for name in SHIPPED if RECIPES[name]().build is Transformer])
def test_a_shipped_model_loads_and_runs_without_a_network(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*address: object, **options: object) -> None:
        pytest.fail(f"the network was asked for {address}")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    model = load_model(str(ASSETS / name), device="cpu")
    assert model.trace("a cat" if name != "induction" else "a b").check() < 1e-3


@cases("name", _WITHOUT_BOOKS)
def test_a_shipped_model_passes_its_gates_on_fresh_data(name) -> None:
    recipe = RECIPES[name]()
    module, tokenizer, card = load_asset(ASSETS / name, build=recipe.build)
    assert module.config == recipe.config
    assert tokenizer.description() == recipe.task.tokenizer.description()
    evaluation = trainer.evaluate(recipe, module, seed=OTHER_SEED)
    assert recipe.failures(evaluation.scores) == []
    assert evaluation.heads.keys() == card["heads"].keys()


@cases("name", ["induction", "stories"])
def test_repeating_leans_on_the_previous_token_head(name) -> None:
    recipe = RECIPES[name]()
    module, _, _ = load_asset(ASSETS / name)
    scores = trainer.evaluate(recipe, module, seed=OTHER_SEED).scores
    assert scores["repeat_accuracy"] > 0.95
    assert scores["repeat_accuracy_without_previous_token_head"] < scores["repeat_accuracy"]


@cases("name", ["induction", "stories"])
def test_heads_form_along_the_shipped_checkpoints(name) -> None:
    recipe = RECIPES[name]()
    _, _, card = load_asset(ASSETS / name)
    assert tuple(card["checkpoints"]) == recipe.checkpoints
    found = []
    for step in (card["checkpoints"][0], card["checkpoints"][-1]):
        module, _, _ = load_asset(ASSETS / name, f"checkpoints/{step:06d}.safetensors")
        found.append(trainer.evaluate(recipe, module, seed=OTHER_SEED).scores["induction"])
    assert found[0] < 0.1
    assert found[1] > 0.7


def test_the_heads_of_house_gpt_pass_its_gates_without_the_books() -> None:
    module, tokenizer, card = load_asset(ASSETS / "house-gpt")
    assert not isinstance(tokenizer, WordTokenizer)
    random = np.random.default_rng(OTHER_SEED)
    scores = repeat_evaluation(
        module, random, tuple(house.spaced_words(tokenizer)), period=48
    ).scores
    assert scores["induction"] >= 0.6
    assert scores["previous_token"] >= 0.8
    assert card["scores"]["held_out_loss"] < card["scores"]["bigram_loss"] - 0.1


def french(module: Transformer, tokenizer: WordTokenizer, english: str) -> str:
    ids = torch.tensor([tokenizer.encode(english)])
    said = module.greedy(ids, start=tokenizer.start, end=tokenizer.end, limit=31)
    return tokenizer.decode(said)


@cases("english, expected", [
    ("the black cat", "le chat noir"),
    ("the old house", "la vieille maison"),
    ("the black cat sleeps", "le chat noir dort"),
    ("the tired doctor opens the red door", "le médecin fatigué ouvre la porte rouge"),
    ("my small dog is not white", "mon petit chien n'est pas blanc"),
    ("this beautiful woman reads a book", "cette belle femme lit un livre"),
    ("an old man sees the young student", "un vieil homme voit le jeune étudiant"),
    ("the fox eats the red apple", "le renard mange la pomme rouge"),
    ("my big letter", "ma grande lettre"),
])  # fmt: skip
def test_the_translator_says_the_sentences_of_the_pages(english, expected) -> None:
    module, tokenizer, _ = load_asset(ASSETS / "translate-en-fr")
    assert isinstance(tokenizer, WordTokenizer)
    assert french(module, tokenizer, english) == expected
    assert french(module, tokenizer, f"{english}.") == f"{expected}."


def test_alignment_is_a_property_of_training() -> None:
    task = TranslateTask()
    random = np.random.default_rng(OTHER_SEED)
    phrases = [
        phrase for phrase in (grammar.sentence(random) for _ in range(200)) if phrase.swapped
    ]
    untrained, _, _ = load_asset(ASSETS / "translate-en-fr", "checkpoints/000000.safetensors")
    _, share = best(task.alignment(untrained, phrases))
    assert share < 0.6
