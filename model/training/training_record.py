"""`TrainingRecord`: probe texts read while somebody trains a model of their own, in any loop, in one file."""

import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from model.analysis.heads.ranking import scores
from model.analysis.heads.statistics import families
from model.capture import CaptureWarning, capture
from model.system.border import at_border
from model.system.files import bytes_text
from model.system.settings import MEGABYTE
from model.trace.arrays import read_only
from model.trace.trace import Trace
from model.training.checkpoints import READ_AT_MOST
from model.training.training_file import (
    MOST_PROBES,
    MOST_STEPS,
    ProbeLayer,
    RecordedProbe,
    RecordedTraining,
    save_training,
)

ProbeInput = str | Sequence[int] | Tensor | Mapping[str, Tensor]
LONGEST_NAME = 100  # characters of a token


class TrainingRecordWarning(UserWarning):
    """A step of a training was not recorded; the sentence says why.

    >>> import warnings
    >>> from model.training.training_record import TrainingRecordWarning
    >>> warnings.simplefilter("error", TrainingRecordWarning)  # such a step ends the training
    """


class TrainingRecord:
    """What the heads of a model do on a few probe texts while it is trained, in one file.

    The page *Training* opens the file. Any module whose attention `capture` records can be trained, in any
    loop:

    ```python
    from torch import nn, optim, randint
    from model.training.training_record import TrainingRecord

    module = nn.Sequential(nn.Embedding(9, 8), nn.TransformerEncoderLayer(8, 2, batch_first=True))
    record = TrainingRecord("run.safetensors", probes=[[1, 2, 3, 1, 2]], every=2)
    optimizer = optim.AdamW(module.parameters())
    record.step(module, 0)  # the untrained model
    for step in range(1, 5):
        loss = module(randint(9, (4, 5))).square().mean()
        loss.backward()
        optimizer.step()
        record.step(module, step, loss=loss)
    ```

    The training goes on as it would without it: the probes are read as after `eval()`, without gradients,
    and then flags, buffers and the states of the random generators of PyTorch, numpy and Python are as
    before. The module's own hooks run. For each recorded step, head and probe it keeps the statistics of
    `model.analysis.heads.ranking.STATISTICS` and the weights (query, key), and the mean of the losses that
    were told since the step before.

    The file is bounded as a flight recorder's is: when `most` steps are recorded, every second one is
    forgotten, and from then on half as many are recorded, so a training that is twice as long costs only
    `most` / 2 passes more; when the weights take more than `megabytes`, those of every second step are
    forgotten, and its statistics stay. The first and the newest step keep
    theirs. After each recorded step the file is written anew and takes the old one's place at once, so a
    training that is killed leaves a whole one.

    A module that cannot be recorded is refused at the first step; later a step that cannot be recorded is
    left out with a TrainingRecordWarning, for example because its numbers are not finite any more.
    """

    @at_border
    def __init__(
        self,
        path: str | Path,
        *,
        probes: Sequence[ProbeInput],
        tokenizer: Any = None,
        every: int = 100,
        most: int = 200,
        megabytes: float = 50.0,
    ) -> None:
        """Nothing is written before the first step.

        Args:
            path: of the file; one that is there is replaced.
            probes: texts, or rows of ids (token,), 128 tokens at most; or the inputs of the module by name,
                tensors (1, token), such as `input_ids` and `decoder_input_ids`.
            tokenizer: makes ids of texts (`encode`, or called) and names tokens (`decode`); Hugging Face's,
                tiktoken's, or a function. None where ids are given.
            every: steps from one recorded step to the next.
            most: recorded steps, 2 to 10,000.
            megabytes: of the weights in the file.

        Raises ValueError, with a sentence, for probes that are none, and for bounds that leave no room.
        """
        if not 0 < len(probes) <= MOST_PROBES:
            raise ValueError(f"probes must be a list of 1 to {MOST_PROBES} texts or rows of ids.")
        if not megabytes > 0:
            raise ValueError(f"megabytes is {megabytes}; it must be above 0.")
        if every < 1 or not 2 <= most <= MOST_STEPS:
            raise ValueError(
                f"every must be at least 1 and most between 2 and {MOST_STEPS:,}, not {every} and {most}."
            )
        self._path = Path(path)
        if not self._path.parent.is_dir():
            raise ValueError(f"There is no folder {self._path.parent}.")
        self._probes = [_probe(one, tokenizer) for one in probes]
        self._every, self._bytes = every, int(megabytes * MEGABYTE)
        self._most = (
            most - most % 2
        )  # so that of one more every second one is both first and newest
        self._weights_every = 1  # recorded steps from one whose weights are kept to the next
        self._due: int | None = None  # the next step to be recorded; None: the first that comes
        self._recorded: RecordedTraining | None = None  # without losses
        self._losses: list[tuple[int, float]] = []
        self._sum: Tensor | float = 0.0
        self._count = 0

    @at_border
    def step(
        self,
        model: nn.Module,
        step: int,
        *,
        loss: Tensor | float | None = None,
        final: bool = False,
    ) -> None:
        """To be called after every step; records those that are due.

        Args:
            model: the module that is trained; what compiles it or runs it on several devices is taken off.
            step: how many steps were made, rising from call to call.
            loss: of this step; a tensor is not waited for.
            final: whether it is the last one, which is recorded in any case.

        Raises ValueError, with a sentence, where nothing of the module can be recorded at the first step.
        """
        if step < 0:
            raise ValueError(f"step is {step}; it must be the number of steps that were made.")
        if loss is not None:
            self._sum += loss.detach().float().mean() if isinstance(loss, Tensor) else float(loss)
            self._count += 1
        newest = self._recorded.steps[-1] if self._recorded else -1
        if self._due is not None and (step < newest or (step < self._due and not final)):
            return
        try:
            if step == newest:
                self._save()  # with the losses that were told since
            else:
                self._record(_unwrapped(model), step)
        except (ValueError, OSError, torch.OutOfMemoryError) as error:
            if self._due is None:
                raise
            sentence = f"Step {step} was not recorded: {error}"
            warnings.warn(sentence, TrainingRecordWarning, stacklevel=2)
        self._due = step + self._every

    def for_trainer(self) -> Any:
        """A callback for Hugging Face's `Trainer`: `Trainer(…, callbacks=[record.for_trainer()])`. The losses
        are those that the trainer logs. Raises ImportError without `transformers`.

        ```python
        from model.training.training_record import TrainingRecord

        record = TrainingRecord("run.safetensors", probes=[[1, 2, 3, 1, 2]])
        callback = record.for_trainer()
        ```
        """
        base = _imported(("transformers",), "TrainerCallback", "Hugging Face's Trainer")

        def on_train_begin(
            _: Any, args: Any, state: Any, control: Any, model: Any = None, **others: Any
        ) -> None:
            if state.is_world_process_zero:
                self.step(model, state.global_step)

        def on_log(
            _: Any, args: Any, state: Any, control: Any, logs: Any = None, **others: Any
        ) -> None:
            if state.is_world_process_zero and "loss" in (logs or {}):
                self._note_loss(state.global_step, float(logs["loss"]))

        def on_train_end(
            _: Any, args: Any, state: Any, control: Any, model: Any = None, **others: Any
        ) -> None:
            if state.is_world_process_zero:
                self.step(model, state.global_step, final=True)

        hooks: dict[str, Any] = {"on_train_begin": on_train_begin, "on_step_end": on_train_begin}
        hooks |= {"on_log": on_log, "on_train_end": on_train_end}
        return type("TrainerRecord", (base,), hooks)()

    def for_lightning(self) -> Any:
        """A callback for Lightning's `Trainer(callbacks=[record.for_lightning()])`. The loss of a step is
        what its `training_step` returns. Raises ImportError without `lightning` or `pytorch_lightning`.

        ```python
        from model.training.training_record import TrainingRecord

        record = TrainingRecord("run.safetensors", probes=[[1, 2, 3, 1, 2]])
        callback = record.for_lightning()
        ```
        """
        names = ("lightning.pytorch", "pytorch_lightning")
        base = _imported(names, "Callback", "Lightning")

        def on_train_start(_: Any, trainer: Any, pl_module: nn.Module) -> None:
            if trainer.is_global_zero:
                self.step(pl_module, trainer.global_step)

        def on_train_batch_end(
            _: Any, trainer: Any, pl_module: nn.Module, outputs: Any, batch: Any, batch_idx: int
        ) -> None:
            loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
            if loss is not None and pl_module.automatic_optimization:
                loss = loss * trainer.accumulate_grad_batches  # Lightning has divided it
            if trainer.is_global_zero:
                self.step(pl_module, trainer.global_step, loss=loss)

        def on_train_end(_: Any, trainer: Any, pl_module: nn.Module) -> None:
            if trainer.is_global_zero:
                self.step(pl_module, trainer.global_step, final=True)

        hooks: dict[str, Any] = {"on_train_start": on_train_start, "on_train_end": on_train_end}
        hooks |= {"on_train_batch_end": on_train_batch_end}
        return type("LightningRecord", (base,), hooks)()

    def _record(self, module: nn.Module, step: int) -> None:
        before = self._recorded
        with _aside(module), warnings.catch_warnings():
            if before:
                warnings.simplefilter("ignore", CaptureWarning)  # it was said at the first step
            probes, checks = zip(*(_read(module, probe) for probe in self._probes), strict=True)
        check = read_only(np.array([max(checks)], np.float32))
        read = RecordedTraining(type(module).__name__, (step,), (step,), (), check, probes)
        each = sum(layer.weights.nbytes for probe in probes for layer in probe.layers)
        if before:
            self._recorded = _joined(before, read)
        elif 2 * each > self._bytes:
            raise ValueError(
                f"The weights of these probes take {bytes_text(each)} at each step; of two "
                f"steps they would be more than the {bytes_text(self._bytes)} that `megabytes` allows."
            )
        else:
            self._recorded = read
        if self._count:
            self._note_loss(step, float(self._sum) / self._count)
            self._sum, self._count = 0.0, 0
        self._thin(self._recorded, each)
        self._save()

    def _save(self) -> None:
        if self._recorded:
            save_training(replace(self._recorded, losses=tuple(self._losses)), self._path)

    def _note_loss(self, step: int, loss: float) -> None:
        """One that is no number is left out. Of too many, two become their mean."""
        if abs(loss) < 1e12 and (not self._losses or step > self._losses[-1][0]):
            self._losses.append((step, loss))
        if len(self._losses) > self._most:
            later = self._losses[1::2]
            pairs = zip(self._losses[::2], later, strict=False)
            rest = self._losses[2 * len(later) :]
            self._losses = [(end, (one + other) / 2) for (_, one), (end, other) in pairs] + rest

    def _thin(self, recorded: RecordedTraining, each: int) -> None:
        """each: bytes of the weights of one step."""
        steps = recorded.steps
        if len(steps) > self._most:
            steps = steps[::2]
            self._every *= 2
            self._weights_every = max(1, self._weights_every // 2)
        while True:
            kept = {*steps[:: self._weights_every], steps[-1]} & {*recorded.kept}
            if each * len(kept) <= self._bytes:
                break
            self._weights_every *= 2
        self._recorded = _thinned(recorded, steps, tuple(sorted(kept)))


@dataclass(frozen=True, eq=False)
class _Probe:
    """What the module is given, and what its tokens are called."""

    text: str
    inputs: tuple[Tensor, ...]
    named_inputs: Mapping[str, Tensor]
    ids: tuple[int, ...]
    target_ids: tuple[int, ...] | None
    name: Callable[[int], str]


def _joined(before: RecordedTraining, later: RecordedTraining) -> RecordedTraining:
    """A record with that of later steps. Raises ValueError where that is of other sub-layers."""
    alike, alike_later = (
        [
            [(one.place, one.statistics, one.numbers.shape[1:]) for one in probe.layers]
            for probe in of.probes
        ]
        for of in (before, later)
    )
    if alike != alike_later:
        raise ValueError("not the same attention was seen as at the first step.")
    return replace(
        later,
        steps=before.steps + later.steps,
        kept=before.kept + later.kept,
        checks=read_only(np.concatenate([before.checks, later.checks])),
        probes=tuple(
            replace(new, layers=tuple(map(_joined_layer, old.layers, new.layers)))
            for old, new in zip(before.probes, later.probes, strict=True)
        ),
    )


def _joined_layer(before: ProbeLayer, later: ProbeLayer) -> ProbeLayer:
    mask = None  # everything may look at some step
    if before.mask is not None and later.mask is not None:
        mask = read_only(before.mask | later.mask)
    numbers, weights = (
        read_only(np.concatenate([getattr(before, name), getattr(later, name)]))
        for name in ("numbers", "weights")
    )
    return replace(before, mask=mask, numbers=numbers, weights=weights)


def _thinned(
    recorded: RecordedTraining, steps: tuple[int, ...], kept: tuple[int, ...]
) -> RecordedTraining:
    """The record of these of its steps, with the weights of these."""
    if (steps, kept) == (recorded.steps, recorded.kept):
        return recorded
    rows, of_kept = np.isin(recorded.steps, steps), np.isin(recorded.kept, kept)

    def layer(one: ProbeLayer) -> ProbeLayer:
        numbers, weights = read_only(one.numbers[rows]), read_only(one.weights[of_kept])
        return replace(one, numbers=numbers, weights=weights)

    probes = (replace(one, layers=tuple(map(layer, one.layers))) for one in recorded.probes)
    checks = read_only(recorded.checks[rows])
    return replace(recorded, steps=steps, kept=kept, checks=checks, probes=tuple(probes))


def _probe(given: ProbeInput, tokenizer: Any) -> _Probe:
    """Raises ValueError, with a sentence, for what cannot be read."""
    named: dict[str, Tensor] = {}
    target: Tensor | None = None
    if isinstance(given, Mapping):
        named = {name: torch.as_tensor(one) for name, one in given.items()}
        whole = {
            name: one
            for name, one in named.items()
            if not one.is_floating_point() and "mask" not in name
        }
        if not whole:
            raise ValueError("A probe that names its inputs must hold ids of tokens, (1, token).")
        ids = next(iter(whole.values()))
        target = next((one for name, one in whole.items() if name.startswith("decoder")), None)
    else:
        ids = torch.as_tensor(_encoded(given, tokenizer) if isinstance(given, str) else given)
    row = ids.flatten()
    if ids.is_floating_point() or ids.ndim > 2 or (ids.ndim == 2 and len(ids) > 1):
        raise ValueError(f"A probe is one row of ids, not {tuple(ids.shape)} of {ids.dtype}.")
    if not 0 < len(row) <= READ_AT_MOST:
        raise ValueError(f"A probe has {len(row)} tokens; it must have 1 to {READ_AT_MOST}.")
    numbers = tuple(int(one) for one in row)
    name = _naming(tokenizer)
    text = given if isinstance(given, str) else " ".join(map(name, numbers))
    return _Probe(
        text,
        () if named else (row[None].long(),),
        named,
        numbers,
        None if target is None else tuple(int(one) for one in target.flatten()),
        name,
    )


def _encoded(text: str, tokenizer: Any) -> Any:
    """The ids of a text. A tokenizer's `encode` gives ids, or an object with them; so does a function."""
    if tokenizer is None:
        raise ValueError("A probe is a text: give the tokenizer that makes ids of it, or ids.")
    ids = getattr(tokenizer, "encode", tokenizer)(text)
    if isinstance(ids, Mapping):
        ids = ids["input_ids"]
    return getattr(ids, "ids", ids)


def _naming(tokenizer: Any) -> Callable[[int], str]:
    """How a token is called: as the tokenizer spells it, or by its id."""
    decode = getattr(tokenizer, "decode", None)

    def name(id_: int) -> str:
        text = ""
        if decode is not None:
            with suppress(ValueError, TypeError, KeyError, IndexError):
                text = str(decode([id_]))
        return text[:LONGEST_NAME] or str(id_)

    return name


def _read(module: nn.Module, probe: _Probe) -> tuple[RecordedProbe, float]:
    """One pass over one probe, and its check. Raises ValueError as `capture`, and for more tokens than are
    shown."""
    device = next((one.device for one in module.parameters()), torch.device("cpu"))
    named: dict[str, Any] = {name: one.to(device) for name, one in probe.named_inputs.items()}
    trace = capture(
        module,
        *(one.to(device) for one in probe.inputs),
        tokens=probe.ids,
        target_tokens=probe.target_ids,
        **named,
    )
    largest = max(max(one.sizes[1:]) for one in trace.attention)
    if largest > READ_AT_MOST:
        raise ValueError(f"attention reads {largest} tokens; at most {READ_AT_MOST} are recorded.")
    tokens = tuple(replace(one, text=probe.name(one.id)) for one in trace.tokens)
    target_tokens = trace.target_tokens
    if probe.target_ids:
        target_tokens = tuple(replace(one, text=probe.name(one.id)) for one in target_tokens)
    trace = replace(trace, tokens=tokens, target_tokens=target_tokens)
    layers = tuple(_layers(trace))
    return RecordedProbe(probe.text, tokens, target_tokens, layers), trace.check()


def _layers(trace: Trace) -> Iterator[ProbeLayer]:
    """The sub-layers in order of execution, each with the statistics of its family."""
    measured = {}
    for family in families(trace):
        found = scores(trace, family)
        names = tuple(found.values)
        table = np.array([found.values[name] for name in names], np.float32)  # (statistic, head)
        for member in family.members(trace):
            at = [number for number, head in enumerate(found.heads) if head[0] == member.name]
            measured[member.name] = names, read_only(table[:, at].T[None].copy())
    for one in trace.attention:
        yield ProbeLayer(one.place, one.mask, *measured[one.name], one.weights()[None])


@contextmanager
def _aside(module: nn.Module) -> Iterator[None]:
    """What is drawn by chance within it is drawn as if nothing had been."""
    cuda = {one.device for one in module.parameters() if one.device.type == "cuda"}
    python, of_numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=list(cuda)):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(of_numpy)


def _unwrapped(model: nn.Module) -> nn.Module:
    """The module inside what compiles it or runs it on several devices."""
    while True:
        if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            model = model.module
        elif isinstance(inner := getattr(model, "_orig_mod", None), nn.Module):
            model = inner
        else:
            return model


def _imported(modules: Sequence[str], name: str, whose: str) -> Any:
    for module in modules:
        with suppress(ModuleNotFoundError):
            return getattr(import_module(module), name)
    raise ImportError(
        f"A callback for {whose} needs the package {modules[0].partition('.')[0]}, which is not installed. "
        "In a loop of your own, call `record.step(model, step, loss=loss)`.",
        name=modules[0].partition(".")[0],
    )
