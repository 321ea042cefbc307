"""Gates, model cards and files: what a trained model needs before it is shipped."""

import copy
import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import torch as tensor_files
from torch import Tensor

from model.loading.shipped import CONFIG, HASHES, TOKENIZER, WEIGHTS, checkpoint_file
from model.nn.transformer import Transformer
from model.run.tokenizers import GPT2Subset, WordTokenizer
from model.system.files import file_hash
from model.trace.arrays import Wide
from model.training import trainer
from model.training.recipe import Evaluation, Ids, Recipe
from model.training.trainer import TrainingState

GATE_SEED = 2_000_003  # added to the recipe's seed: data of neither training nor its evaluations
MACHINE = "2 CPU cores"


class GateError(ValueError):
    """A model that may not be shipped. Nothing was written."""


def publish(run: TrainingState, assets: Path) -> Evaluation:
    """Examines the model as it would be shipped, with weights in fp16, and writes it if it passes.

    Raises GateError, which names each score that fails; then nothing is written.
    """
    recipe = run.recipe
    module = shipped(run.module)
    evaluation = trainer.evaluate(recipe, module, seed=recipe.seed + GATE_SEED)
    if failures := recipe.failures(evaluation.scores):
        raise GateError(f"{recipe.name} may not be shipped: {' '.join(failures)}")
    folder, fresh = assets / recipe.name, assets / f".{recipe.name}.partial"
    shutil.rmtree(fresh, ignore_errors=True)
    card = model_card(run, evaluation)
    save_asset(fresh, module, recipe.task.tokenizer, card=card, checkpoints=run.checkpoints)
    (fresh / "CARD.md").write_text(card_text(card, recipe), encoding="utf-8")
    for path in fresh.rglob("*.safetensors"):
        path.chmod(0o644)  # the server may run as another user than the owner
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    return evaluation


def save_asset(
    folder: Path,
    module: Transformer,
    tokenizer: GPT2Subset | WordTokenizer,
    *,
    card: dict[str, object],
    checkpoints: dict[int, dict[str, Tensor]] | None = None,
) -> None:
    """Writes all that is needed to load a model, weights as fp16. Raises ValueError for weights that
    half precision cannot hold."""
    states = {WEIGHTS: _half(module.state_dict())}
    states |= {checkpoint_file(step): _half(state) for step, state in (checkpoints or {}).items()}
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / CONFIG, asdict(module.config))
    _write_json(folder / TOKENIZER, tokenizer.description())
    _write_json(folder / "card.json", card)
    for name, state in states.items():
        (folder / name).parent.mkdir(exist_ok=True)
        tensor_files.save_file(state, folder / name)
    hashes = {name: file_hash(folder / name) for name in sorted([CONFIG, TOKENIZER, *states])}
    _write_json(folder / HASHES, hashes)


def _half(state: dict[str, Tensor]) -> dict[str, Tensor]:
    halves = {name: value.to("cpu", torch.float16).contiguous() for name, value in state.items()}
    for name, half in halves.items():
        if not half.isfinite().all():
            raise ValueError(f"The weights {name} hold values that half precision cannot.")
    return halves


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def shipped(module: Transformer) -> Transformer:
    """A copy on the CPU with the weights rounded to fp16, as they are shipped."""
    rounded = copy.deepcopy(module).cpu().eval()
    with torch.no_grad():
        for weight in rounded.parameters():
            weight.copy_(weight.half())
    return rounded


def model_card(run: TrainingState, evaluation: Evaluation) -> dict[str, Any]:
    """All that a page shows of a run, or a reader asks."""
    recipe = run.recipe
    return {
        "name": recipe.name,
        "about": recipe.about,
        "data": recipe.data,
        "parameters": sum(weight.numel() for weight in run.module.parameters()),
        "steps": run.step,
        "seed": recipe.seed,
        "optimizer": {
            "name": "AdamW",
            "betas": [0.9, 0.99],
            "rate": recipe.rate,
            "schedule": recipe.schedule,
            "warm_up": recipe.warm_up,
            "weight_decay": recipe.decay,
            "clip": recipe.clip,
        },
        "minutes": round(run.seconds / 60, 1),
        "machine": MACHINE,
        "scores": {name: round(value, 4) for name, value in evaluation.scores.items()},
        "heads": evaluation.heads,
        "gates": {gate.score: gate.bound for gate in recipe.gates},
        "checkpoints": sorted(run.checkpoints),
        "history": run.history,
    }


def card_text(card: dict[str, Any], recipe: Recipe) -> str:
    """The card as Markdown, for readers of the folder."""
    rows = "\n".join(
        f"| {name} | {value} | {card['gates'].get(name, '')} |"
        for name, value in card["scores"].items()
    )
    named = "".join(f"- {what.replace('_', ' ')}: {head}\n" for what, head in card["heads"].items())
    config = recipe.config
    heads = f", {config.heads} heads" if recipe.build is Transformer else ""
    return (
        f"# {recipe.name}\n\n{recipe.about}\n\n"
        f"- Shape: {config.shape}, {config.encoder_layers} encoder and {config.decoder_layers} "
        f"decoder layers, width {config.d_model}{heads}, context {config.n_ctx}, vocabulary "
        f"{config.d_vocab}, {card['parameters']:,} parameters, shipped as fp16.\n"
        f"- Data: {recipe.data}\n"
        f"- Training: AdamW, rate {recipe.rate:g} ({recipe.schedule}), {card['steps']} steps, seed "
        f"{recipe.seed}, {card['minutes']} minutes on {MACHINE}.\n"
        f"- Made again with: `python -m tools.training {recipe.name}`\n\n"
        f"## Scores on fresh data of another seed, of the shipped weights\n\n"
        f"| score | value | gate |\n| --- | --- | --- |\n{rows}\n\n## Heads\n\n{named}"
    )


class Unigram:
    """The frequency of each token; one is added to every count."""

    def __init__(self, ids: Ids, *, vocabulary: int) -> None:
        counts = np.bincount(ids, minlength=vocabulary) + 1.0
        self._logs = np.log(counts / counts.sum())

    def loss(self, rows: Ids) -> float:
        """Mean of -ln p over every token of (row, token) but each row's first."""
        return float(-self._logs[rows[:, 1:]].mean())


class Bigram:
    """Interpolated Kneser–Ney: the strongest of the usual smoothings (Chen and Goodman 1999).

    p(w | v) = max(c(v, w) - D, 0) / c(v) + D · kinds(v) / c(v) · p(w), where p(w) counts in how
    many different contexts w occurs, and D = n1 / (n1 + 2 · n2) from pairs seen once and twice.
    """

    def __init__(self, ids: Ids, *, vocabulary: int) -> None:
        self._vocabulary = vocabulary
        self._pairs, self._counts = np.unique(self._keys(ids[:-1], ids[1:]), return_counts=True)
        before, after = np.divmod(self._pairs, vocabulary)
        once, twice = (int((self._counts == times).sum()) for times in (1, 2))
        self._discount = once / max(1, once + 2 * twice)
        self._totals = np.bincount(before, weights=self._counts, minlength=vocabulary)
        self._kinds = np.bincount(before, minlength=vocabulary)
        contexts = np.bincount(after, minlength=vocabulary) + 1.0
        self._general: Wide = contexts / contexts.sum()

    def loss(self, rows: Ids) -> float:
        """Mean of -ln p over every token of (row, token) but each row's first."""
        return float(-np.log(self.probabilities(rows[:, :-1], rows[:, 1:])).mean())

    def probabilities(self, before: Ids, after: Ids) -> Wide:
        """p(after | before), element by element. A context never seen gives p(after)."""
        keys = self._keys(before, after)
        places = np.minimum(np.searchsorted(self._pairs, keys), len(self._pairs) - 1)
        counts = np.where(self._pairs[places] == keys, self._counts[places], 0)
        totals = self._totals[before]
        seen = np.maximum(counts - self._discount, 0) / np.maximum(totals, 1)
        left = self._discount * self._kinds[before] / np.maximum(totals, 1)
        return seen + np.where(totals > 0, left, 1.0) * self._general[after]

    def _keys(self, before: Ids, after: Ids) -> Ids:
        return before.astype(np.int64) * self._vocabulary + after
