"""house-gpt: a small GPT-2, trained on public-domain books, for any sentence."""

from functools import cached_property

import numpy as np
import torch

from model.nn.config import TransformerConfig
from model.nn.transformer import Transformer
from model.run.tokenizers import GPT2Subset
from model.training import induction
from model.training.induction import in_context_bigrams, repeat_evaluation
from model.training.recipe import Batch, Evaluation, Gate, Ids, Random, Recipe
from tools.training import corpus, seedling
from tools.training.corpus import TokenCorpus
from tools.training.publishing import Bigram, Unigram
from tools.training.stories import repeated_lists, story_row

_CONTEXT = 256
_LONG_FROM = 600  # steps; before, rows are half as long and more of them follow a rule
_EXAM_ROWS = 16  # of each collection


class HouseTask:
    """Books and micro-stories. One row in five, at first two in five, are random words with a rule."""

    @cached_property
    def corpus(self) -> TokenCorpus:
        return corpus.load()

    @property
    def tokenizer(self) -> GPT2Subset:
        return self.corpus.tokenizer

    def batch(self, random: Random, step: int) -> Batch:
        if step < _LONG_FROM:
            return self._rows(random, told=6, ruled=4, length=_CONTEXT // 2)
        return self._rows(random, told=4, ruled=1, length=_CONTEXT)

    def _rows(self, random: Random, *, told: int, ruled: int, length: int) -> Batch:
        """`told` rows of text and `ruled` rows of random words with a rule."""
        text = np.stack([self._told(random, length + 1) for _ in range(told)])
        rule = in_context_bigrams if random.random() < 0.5 else repeated_lists
        words = rule(random, self._words(random), count=ruled, length=length)
        return Batch.of((text[:, :-1], text[:, 1:]), words)

    def _told(self, random: Random, length: int) -> Ids:
        """A row of book text, or one time in eight of micro-stories."""
        if random.random() < 1 / 8:
            return story_row(self.tokenizer, random, length)
        return self.corpus.row(random, length)

    def _words(self, random: Random) -> Ids:
        """The words of random rows: frequent ones, any after a space, or any token."""
        kind = random.random()
        if kind < 0.2:
            return np.arange(self.tokenizer.size)
        return self.frequent_words if kind < 0.6 else self.spaced_words

    @cached_property
    def frequent_words(self) -> Ids:
        """The 512 most frequent words of the books that are one token after a space."""
        counts = np.bincount(self.corpus.learned(), minlength=self.tokenizer.size)
        return self.spaced_words[np.argsort(-counts[self.spaced_words], kind="stable")[:512]]

    @cached_property
    def spaced_words(self) -> Ids:
        return spaced_words(self.tokenizer)

    @cached_property
    def baselines(self) -> tuple[Unigram, Bigram]:
        learned, size = self.corpus.learned(), self.tokenizer.size
        return Unigram(learned, vocabulary=size), Bigram(learned, vocabulary=size)

    def evaluation(self, module: Transformer, random: Random) -> Evaluation:
        rows = self.corpus.held_out_rows(random, _CONTEXT, count=_EXAM_ROWS)
        unigram, bigram = (baseline.loss(rows) for baseline in self.baselines)
        loss = text_loss(module, rows)
        repeated = repeat_evaluation(module, random, tuple(self.spaced_words), period=48)
        scores = {
            **repeated.scores,
            **text_previous_token(module, rows[:, :64]),
            "held_out_loss": loss,
            "unigram_loss": unigram,
            "bigram_loss": bigram,
            "below_bigram": bigram - loss,
        }
        return Evaluation(scores, repeated.heads)


def spaced_words(tokenizer: GPT2Subset) -> Ids:
    """The ids of whole words after a space."""
    raws = [tokenizer.raw(compact) for compact in range(tokenizer.size)]
    return np.array(
        [compact for compact, raw in enumerate(raws) if raw[:1] == b" " and raw[1:].isalpha()]
    )


def text_loss(module: Transformer, rows: Ids) -> float:
    """Mean -ln p, in nats, over every token of (row, token) but each row's first."""
    losses = []
    for row in torch.from_numpy(rows).to(next(module.parameters()).device):
        logits = module(row[None, :-1])[0]
        losses.append(torch.nn.functional.cross_entropy(logits, row[1:]).item())
    return float(np.mean(losses))


def text_previous_token(module: Transformer, rows: Ids) -> dict[str, float]:
    """The best previous-token head's score on running text."""
    ids = torch.from_numpy(rows).to(next(module.parameters()).device)
    weights = induction.mean_weights(module, ids)
    return {"previous_token_on_text": induction.best(induction.previous_token(weights))[1]}


def recipe() -> Recipe:
    task = HouseTask()
    return Recipe(
        name="house-gpt",
        about="A small GPT with GPT-2's architecture and tokens, trained on public-domain books.",
        data=(
            "The World English Bible, six novels by Jane Austen and Shakespeare's works; made-up "
            "micro-stories, one row of text in eight; and random words with their own successor map, "
            "or lists said over and over, in one row of five (the first 600 steps: two in five). Two "
            "fiftieths of each collection of books are held out. The first two layers begin as those "
            "of a model of attention alone, trained for 900 steps on random words only: induction "
            "heads form there within minutes."
        ),
        config=TransformerConfig(
            shape="decoder",
            d_vocab=corpus.VOCABULARY,
            n_ctx=_CONTEXT,
            d_model=256,
            heads=8,
            decoder_layers=4,
            d_mlp=1024,
            activation="gelu_tanh",
        ),
        task=task,
        start=lambda module: seedling.plant(module, task.frequent_words),
        gates=(
            Gate("below_bigram", at_least=0.3),
            Gate("previous_token", at_least=0.8),
            Gate("induction", at_least=0.6),
        ),
        steps=4400,
        rate=1.5e-3,
        schedule="trapezoid",
        fall=0.4,
        warm_up=200,
        decay=0.05,
        measure_every=200,
    )
