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
from model.nn.places import Place
from model.system.border import at_border
from model.system.files import bytes_text
from model.system.settings import MEGABYTE
from model.trace.arrays import Array, BoolArray, read_only
from model.trace.records import Token
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
        self._name = ""
        self._moments: list[_Moment] = []
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
        newest = self._moments[-1].step if self._moments else -1
        if self._due is not None and (step < newest or (step < self._due and not final)):
            return
        try:
            if step == newest:
                save_training(self._recorded(), self._path)  # with the losses that were told since
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
        with _aside(module), warnings.catch_warnings():
            if self._moments:
                warnings.simplefilter("ignore", CaptureWarning)  # it was said at the first step
            read = tuple(_read(module, probe) for probe in self._probes)
        moment = _Moment(step, max(one.check for one in read), read)
        if self._moments:
            self._moments[0].require_alike(moment)
        elif 2 * moment.nbytes > self._bytes:
            raise ValueError(
                f"The weights of these probes take {bytes_text(moment.nbytes)} at each step; of two steps "
                f"they would be more than the {bytes_text(self._bytes)} that `megabytes` allows."
            )
        self._name = type(module).__name__
        self._moments.append(moment)
        if self._count:
            self._note_loss(step, float(self._sum) / self._count)
            self._sum, self._count = 0.0, 0
        self._thin()
        save_training(self._recorded(), self._path)

    def _note_loss(self, step: int, loss: float) -> None:
        """One that is no number is left out. Of too many, two become their mean."""
        if abs(loss) < 1e12 and (not self._losses or step > self._losses[-1][0]):
            self._losses.append((step, loss))
        if len(self._losses) > self._most:
            later = self._losses[1::2]
            pairs = zip(self._losses[::2], later, strict=False)
            rest = self._losses[2 * len(later) :]
            self._losses = [(end, (one + other) / 2) for (_, one), (end, other) in pairs] + rest

    def _thin(self) -> None:
        if len(self._moments) > self._most:
            self._moments = self._moments[::2]
            self._every *= 2
            self._weights_every = max(1, self._weights_every // 2)
        while True:
            last = len(self._moments) - 1
            for at, moment in enumerate(self._moments):
                if at % self._weights_every and at != last:
                    moment.forget_weights()
            if sum(moment.nbytes for moment in self._moments) <= self._bytes:
                return
            self._weights_every *= 2

    def _recorded(self) -> RecordedTraining:
        moments = self._moments
        kept = [one for one in moments if one.has_weights]
        probes = tuple(
            RecordedProbe(
                moments[-1].read[number].text,
                moments[-1].read[number].tokens,
                moments[-1].read[number].target_tokens,
                tuple(
                    _layer_of(
                        [moment.read[number].layers[at] for moment in moments],
                        [moment.read[number].layers[at] for moment in kept],
                    )
                    for at in range(len(moments[-1].read[number].layers))
                ),
            )
            for number in range(len(self._probes))
        )
        return RecordedTraining(
            self._name,
            tuple(one.step for one in moments),
            tuple(one.step for one in kept),
            tuple(self._losses),
            read_only(np.array([one.check for one in moments], np.float32)),
            probes,
        )


@dataclass(frozen=True, eq=False)
class _Probe:
    """What the module is given, and what its tokens are called."""

    text: str
    inputs: tuple[Tensor, ...]
    named_inputs: Mapping[str, Tensor]
    ids: tuple[int, ...]
    target_ids: tuple[int, ...] | None
    name: Callable[[int], str]


@dataclass(eq=False)
class _LayerRead:
    """One sub-layer that read one probe at one step."""

    place: Place
    mask: BoolArray | None
    statistics: tuple[str, ...]
    numbers: Array  # (head, statistic)
    weights: Array | None  # (head, query, key); None: forgotten


@dataclass(frozen=True, eq=False)
class _ProbeRead:
    text: str
    tokens: tuple[Token, ...]
    target_tokens: tuple[Token, ...]
    layers: tuple[_LayerRead, ...]
    check: float


@dataclass(frozen=True, eq=False)
class _Moment:
    """What the probes gave at one step."""

    step: int
    check: float
    read: tuple[_ProbeRead, ...]

    @property
    def _layers(self) -> Iterator[_LayerRead]:
        return (layer for probe in self.read for layer in probe.layers)

    @property
    def nbytes(self) -> int:
        """Of its weights."""
        return sum(one.weights.nbytes for one in self._layers if one.weights is not None)

    @property
    def has_weights(self) -> bool:
        return all(one.weights is not None for one in self._layers)

    def forget_weights(self) -> None:
        for layer in self._layers:
            layer.weights = None

    def require_alike(self, other: "_Moment") -> None:
        """Raises ValueError where another step has other sub-layers or heads."""
        mine, theirs = (
            [(one.place, one.statistics, one.numbers.shape) for one in moment._layers]
            for moment in (self, other)
        )
        if mine != theirs:
            raise ValueError("not the same attention was seen as at the first step.")


def _layer_of(at_all: list[_LayerRead], at_kept: list[_LayerRead]) -> ProbeLayer:
    last, masks = at_all[-1], [one.mask for one in at_all if one.mask is not None]
    mask = None  # everything may look at some step
    if len(masks) == len(at_all):
        mask = read_only(np.logical_or.reduce(np.broadcast_arrays(*masks)))
    weights = [one.weights for one in at_kept if one.weights is not None]
    return ProbeLayer(
        last.place,
        mask,
        last.statistics,
        read_only(np.stack([one.numbers for one in at_all])),
        read_only(np.stack(weights)),
    )


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


def _read(module: nn.Module, probe: _Probe) -> _ProbeRead:
    """One pass over one probe. Raises ValueError as `capture`, and for more tokens than are shown."""
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
    trace = replace(
        trace,
        tokens=tuple(_called(one, probe) for one in trace.tokens),
        target_tokens=tuple(
            _called(one, probe) if probe.target_ids else one for one in trace.target_tokens
        ),
    )
    return _ProbeRead(
        probe.text, trace.tokens, trace.target_tokens, tuple(_layers(trace)), trace.check()
    )


def _called(token: Token, probe: _Probe) -> Token:
    return replace(token, text=probe.name(token.id))


def _layers(trace: Trace) -> Iterator[_LayerRead]:
    """The sub-layers in order of execution, each with the statistics of its family."""
    measured = {}
    for family in families(trace):
        found = scores(trace, family)
        names = tuple(found.values)
        table = np.array([found.values[name] for name in names], np.float32)  # (statistic, head)
        for member in family.members(trace):
            at = [number for number, head in enumerate(found.heads) if head[0] == member.name]
            measured[member.name] = names, read_only(table[:, at].T.copy())
    for attention in trace.attention:
        statistics, numbers = measured[attention.name]
        yield _LayerRead(attention.place, attention.mask, statistics, numbers, attention.weights())


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
