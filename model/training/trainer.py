"""One trainer for every shape: a generator that trains for as long as somebody asks for the next step.

Each step draws its data from a seed of its own, so a run that was stopped and goes on gives the weights of an
unbroken one.
"""

import time
from collections.abc import Generator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import LinearCrossEntropyOptions

from model.nn.masks import padding_mask
from model.nn.recorder import Recorder, recording
from model.nn.transformer import Transformer
from model.system.randomness import seeded
from model.training.recipe import IGNORED, Batch, Evaluation, Recipe, learning_rate

# Logits of 2,048 tokens over 8,192 words take 67 MB. Those of 256 tokens stay in the processor's cache.
_CHUNKS = LinearCrossEntropyOptions(batch_chunk_size=256, chunking_method=None)


def batch_loss(module: Transformer, batch: Batch) -> Tensor:
    """Mean cross-entropy, in nats a token, over the scored targets of a batch."""
    states = _states(module, batch)
    scored = batch.targets != IGNORED
    return F.linear_cross_entropy(
        states[scored], module.logits_table, batch.targets[scored], options=_CHUNKS
    )


def _states(module: Transformer, batch: Batch) -> Tensor:
    """(B, T, C): the decoder's output before the output matrix."""
    if module.decoder is None or module.config.turns_positions:
        raise ValueError("Only decoders with added positions, or none, are trained here.")
    target = module.embedding(batch.inputs, "decoder")
    if batch.source is None:
        return module.decoder(target)
    mask = None if batch.padding is None else padding_mask(batch.padding)
    memory = module.encode(batch.source, batch.padding)
    return module.decoder(target, memory, memory_mask=mask)


EVALUATION_SEED = 1_000_003  # added to the recipe's seed: evaluations never see the training draws

StepRecord = dict[str, float]


@dataclass(frozen=True)
class TrainingProgress:
    """Where a run stands after a step."""

    step: int  # steps done
    loss: float  # of this step, nats a token
    evaluation: Evaluation | None  # where one was due


@dataclass
class TrainingState:
    """A run in the middle: the model, its optimizer, and all that a card or a page wants later."""

    recipe: Recipe
    module: Transformer
    optimizer: torch.optim.Optimizer
    device: torch.device
    step: int = 0
    seconds: float = 0.0
    history: list[StepRecord] = field(default_factory=list)  # step, loss, scores
    checkpoints: dict[int, dict[str, Tensor]] = field(default_factory=dict)
    recent: list[float] = field(default_factory=list)  # losses since the last evaluation


def begin(recipe: Recipe, *, device: str = "cpu") -> TrainingState:
    """A run at step 0, weights drawn from the recipe's seed and started as it says."""
    with seeded(recipe.seed, torch.device(device)):
        module = recipe.build(recipe.config).to(device)
    groups: list[dict[str, Any]] = [
        {"params": [weight for weight in module.parameters() if weight.ndim > 1]},
        {"params": [w for w in module.parameters() if w.ndim <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(
        groups, lr=recipe.rate, betas=(0.9, 0.99), weight_decay=recipe.decay, fused=True
    )
    if recipe.start is not None:
        recipe.start(module)
    return TrainingState(recipe, module, optimizer, torch.device(device))


def train(run: TrainingState) -> Generator[TrainingProgress, None, None]:
    """Trains step by step and yields each step; the run stops when nobody asks for the next one."""
    try:
        if run.step == 0:
            _keep_checkpoint(run)
            _evaluate(run)
        while run.step < run.recipe.steps:
            started = time.monotonic()
            loss = _advance(run)
            _keep_checkpoint(run)
            evaluation = _evaluate(run)
            run.seconds += time.monotonic() - started
            yield TrainingProgress(run.step, loss, evaluation)
    finally:
        run.module.eval()


def _advance(run: TrainingState) -> float:
    """One step of the optimizer; the loss before it."""
    recipe = run.recipe
    random = np.random.default_rng([recipe.seed, run.step])
    batch = recipe.task.batch(random, run.step).to(run.device)
    run.module.train()
    for group in run.optimizer.param_groups:
        group["lr"] = learning_rate(recipe, run.step)
    drops = recipe.config.dropout > 0
    draws = seeded(recipe.seed + run.step, run.device) if drops else nullcontext()
    with draws, recording(Recorder(recipe.intervention)):
        loss = batch_loss(run.module, batch)
    run.optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(run.module.parameters(), recipe.clip)
    run.optimizer.step()
    run.step += 1
    run.recent.append(loss.item())
    return run.recent[-1]


def _keep_checkpoint(run: TrainingState) -> None:
    if run.step in run.recipe.checkpoints:
        run.checkpoints[run.step] = {
            name: value.detach().to("cpu", torch.float16, copy=True)
            for name, value in run.module.state_dict().items()
        }


def _evaluate(run: TrainingState) -> Evaluation | None:
    """The evaluation, where one is due; it stands in the history with the mean loss since the last one."""
    always = {*run.recipe.checkpoints, run.recipe.steps}
    if run.step % run.recipe.measure_every and run.step not in always:
        return None
    evaluation = evaluate(run.recipe, run.module, seed=run.recipe.seed + EVALUATION_SEED)
    record: StepRecord = {"step": run.step, **evaluation.scores}
    if run.recent:
        record["loss"] = float(np.mean(run.recent))
        run.recent.clear()
    run.history.append(record)
    return evaluation


def evaluate(recipe: Recipe, module: Transformer, *, seed: int) -> Evaluation:
    """The recipe's evaluation on data drawn from a seed, without changing the module."""
    was_training = module.training
    module.eval()
    with torch.inference_mode(), recording(Recorder(recipe.intervention)):
        evaluation = recipe.task.evaluation(module, np.random.default_rng(seed))
    module.train(was_training)
    return evaluation
