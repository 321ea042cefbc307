"""stories: a 2-layer GPT for micro-stories, trained in minutes."""

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from model.nn.config import TransformerConfig
from model.nn.transformer import Transformer
from model.run.tokenizers import GPT2Subset, gpt2
from model.training.induction import in_context_bigrams, repeat_evaluation
from model.training.recipe import IGNORED, Batch, Evaluation, Gate, Ids, Random, Recipe
from tools.training import micro_stories

_CONTEXT = 128
_ROWS = 16
_EXAM_STORIES = 300


class StoriesTask:
    """Three rows of four are micro-stories; one is random words with a rule that the row shows."""

    def batch(self, random: Random, step: int) -> Batch:
        told = _ROWS * 3 // 4
        rows = np.stack([story_row(self.tokenizer, random, _CONTEXT + 1) for _ in range(told)])
        bigrams = in_context_bigrams(random, self.words(random), count=2, length=_CONTEXT)
        lists = repeated_lists(random, self.words(random), count=_ROWS - told - 2, length=_CONTEXT)
        return Batch.of((rows[:, :-1], rows[:, 1:]), bigrams, lists)

    def words(self, random: Random) -> Ids:
        """The words of random rows: those after a space, or in one of five rows any token."""
        anything = random.random() < 0.2
        return np.arange(self.tokenizer.size) if anything else self.spaced_words

    @cached_property
    def tokenizer(self) -> GPT2Subset:
        """The words of the stories, with and without a space before them, and all bytes."""
        words = micro_stories.vocabulary()
        sentences = [*(f" {word}" for word in words), *words, "\n", ".", ",", "?"]
        singles = [ids[0] for ids in map(gpt2().encode, sentences) if len(ids) == 1]
        return GPT2Subset(singles)

    @cached_property
    def spaced_words(self) -> Ids:
        return np.array([self.tokenizer.encode(f" {w}")[0] for w in micro_stories.vocabulary()])

    def evaluation(self, module: Transformer, random: Random) -> Evaluation:
        repeated = repeat_evaluation(module, random, tuple(self.spaced_words), period=_CONTEXT // 4)
        recall, loss = self._second_mentions(module, random)
        scores = {**repeated.scores, "surname_recall": recall, "story_loss": loss}
        return Evaluation(scores, repeated.heads)

    def _second_mentions(self, module: Transformer, random: Random) -> tuple[float, float]:
        """How often a surname said before is predicted from the first name; the loss on stories."""
        encoded = (self.tokenizer.encode(micro_stories.story(random)) for _ in range(_EXAM_STORIES))
        rows = [torch.tensor(row[:_CONTEXT]) for row in encoded]
        ids = pad_sequence(rows, batch_first=True, padding_value=IGNORED)
        logits, targets = module(ids.clamp(min=0))[:, :-1], ids[:, 1:]
        loss = cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
        right = (logits.argmax(-1) == targets).numpy()
        return float(right[self._surnames_again(ids.numpy())].mean()), loss.item()

    def _surnames_again(self, ids: Ids) -> NDArray[np.bool_]:
        """(row, token): the first names whose surname follows, as it did before."""
        spaced = {w: self.tokenizer.encode(f" {w}")[0] for w in micro_stories.vocabulary()}
        surnames = np.isin(ids[:, 1:], [spaced[name] for name in micro_stories.SURNAMES])
        first = [spaced[name] for name in micro_stories.WOMEN + micro_stories.MEN]
        named = np.isin(ids[:, :-1], first) & surnames
        again = (ids[:, None, :-1] == ids[:, :-1, None]) & named[:, None] & named[:, :, None]
        found: NDArray[np.bool_] = np.tril(again, -1).any(-1)
        return found


def story_row(tokenizer: GPT2Subset, random: Random, length: int) -> Ids:
    """(length,) ids of stories, one in each line; half of the rows begin anywhere."""
    lines: list[str] = []
    ids: list[int] = []
    skipped = int(random.integers(length)) if random.random() < 0.5 else 0
    while len(ids) < length + skipped:
        lines.append(micro_stories.story(random))
        ids = tokenizer.encode("\n".join(lines))
    return np.array(ids[skipped : skipped + length])


def repeated_lists(random: Random, symbols: Ids, *, count: int, length: int) -> tuple[Ids, Ids]:
    """Inputs and targets, both (count, length): a list of 4 to length / 2 symbols, repeated. Scored from the
    second time on."""
    rows, targets = [], []
    for _ in range(count):
        period = int(random.integers(4, max(5, length // 2)))
        listed = random.choice(symbols, period, replace=period > len(symbols))
        row = np.resize(listed, length + 1)
        rows.append(row[:-1])
        targets.append(np.where(np.arange(length) >= period, row[1:], IGNORED))
    return np.stack(rows), np.stack(targets)


def recipe() -> Recipe:
    task = StoriesTask()
    return Recipe(
        name="stories",
        about="A 2-layer GPT trained on made-up micro-stories in which names and things come back.",
        data=(
            "Micro-stories from a grammar (names with surnames, things with adjectives, pronouns), "
            "made for this project; one row of four is random words with their own successor map, or "
            "a list of random words said over and over."
        ),
        config=TransformerConfig(
            shape="decoder",
            d_vocab=task.tokenizer.size,
            n_ctx=_CONTEXT,
            d_model=128,
            heads=4,
            decoder_layers=2,
            d_mlp=512,
        ),
        task=task,
        gates=(
            Gate("induction", at_least=0.7),
            Gate("previous_token", at_least=0.7),
            Gate("surname_recall", at_least=0.98),
            Gate("repeat_accuracy", at_least=0.95),
        ),
        steps=3000,
        rate=2e-3,
        schedule="trapezoid",
        checkpoints=(0, 200, 600, 1000, 1200, 1400, 1600, 1800, 2000, 3000),
    )
