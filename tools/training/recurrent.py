"""recurrent: a GRU that learns from the same rows as the induction model, with as many parameters."""

from dataclasses import replace

from model.nn.recurrent import recurrent
from model.nn.transformer import Transformer
from model.training import induction
from model.training.induction import InductionTask, repeat_accuracy, said_twice
from model.training.recipe import Evaluation, Gate, Random, Recipe
from model.training.trainer import batch_loss

WIDTH = 77  # gives 38,500 parameters beside the induction model's 38,784
PERIOD = 16  # symbols of the lists that are said twice


class SequenceTask(InductionTask):
    """The data of the induction model; the evaluation asks no head, so every network can take it."""

    def evaluation(self, module: Transformer, random: Random) -> Evaluation:
        batch = self.batch(random, 0)
        lists = said_twice(random, range(self.tokenizer.size), count=64, period=PERIOD)
        scores = {
            "held_out_loss": batch_loss(module, batch).item(),
            "repeat_accuracy": repeat_accuracy(module, lists),
        }
        return Evaluation(scores)


def attention_recipe() -> Recipe:
    """The induction model under this evaluation."""
    return replace(induction.recipe(), task=SequenceTask(), gates=(), checkpoints=())


def recipe() -> Recipe:
    beside = attention_recipe()
    config = replace(beside.config, d_model=WIDTH, heads=1, decoder_layers=1, positions="none")
    return replace(
        beside,
        name="recurrent",
        about="A GRU beside the induction model: the same rows, about as many parameters.",
        config=config,
        build=recurrent,
        gates=(Gate("held_out_loss", at_most=2.35),),
        rate=1e-2,  # at .003, the induction model's rate, it learns more slowly
    )
