"""A record of somebody's own training: what it measures, that the training goes on as without it, its bounds,
and its file."""

import io
import json
import os
import random
import sys
import warnings
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from model.analysis.heads.ranking import scores
from model.analysis.heads.statistics import families
from model.capture import capture
from model.trace.unproven import NotShownError
from model.training import trainer
from model.training.induction import short_recipe
from model.training.training_file import RecordedTraining, load_training, read_training
from model.training.training_record import ProbeInput, TrainingRecord, TrainingRecordWarning

WORDS, WIDTH = 12, 16
PROBE = [3, 1, 4, 5, 9, 2, 3, 1, 4, 5, 9, 2]


class Reader(nn.Module):
    """A decoder that draws by chance in every way that a module can: dropout, numpy and Python."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, dropout=0.3, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.BatchNorm1d(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, ids: Tensor) -> Tensor:
        noise = random.random() + float(np.random.rand()) + float(torch.rand(()))
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        x = self.layers(self.embedding(ids) + 1e-3 * noise, mask, is_causal=True)
        logits: Tensor = self.head(self.norm(x.transpose(1, 2)).transpose(1, 2))
        return logits


def trained(record: Callable[[nn.Module, int, Tensor | None], None], steps: int = 20) -> Reader:
    """A reader after so many steps of a plain loop."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    module = Reader()
    optimizer = torch.optim.AdamW(module.parameters(), 0.01)
    record(module, 0, None)
    for step in range(1, steps + 1):
        ids = torch.randint(WORDS, (4, 9))
        loss = nn.functional.cross_entropy(module(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        record(module, step, loss)  # with the gradients of this step in place
        optimizer.step()
    return module


def recorded(
    path: Path, steps: int = 20, probes: list[ProbeInput] | None = None, **bounds: Any
) -> RecordedTraining:
    record = TrainingRecord(path, probes=probes or [PROBE], **bounds)
    trained(lambda module, step, loss: record.step(module, step, loss=loss), steps)
    return load_training(path)


def test_a_training_goes_on_as_without_a_record(tmp_path: Path) -> None:
    plain = trained(lambda module, step, loss: None)
    record = TrainingRecord(tmp_path / "a.safetensors", probes=[PROBE], every=1)
    watched = trained(lambda module, step, loss: record.step(module, step, loss=loss))
    assert watched.training
    for name, weights in plain.state_dict().items():
        assert torch.equal(watched.state_dict()[name], weights), name
    assert load_training(tmp_path / "a.safetensors").steps == tuple(range(21))


def test_each_step_has_the_weights_statistics_and_loss_of_its_own_model(tmp_path: Path) -> None:
    record = TrainingRecord(tmp_path / "a.safetensors", probes=[PROBE, PROBE[:5]], every=4)
    copies: dict[int, Reader] = {}
    losses: list[float] = []

    def step(module: nn.Module, number: int, loss: Tensor | None) -> None:
        record.step(module, number, loss=loss)
        losses.append(0.0 if loss is None else loss.item())
        if number % 4 == 0:
            copies[number] = deepcopy(module)  # type: ignore[assignment]

    trained(step)
    found = load_training(tmp_path / "a.safetensors")
    assert (found.model, found.steps, found.kept) == ("Reader", (0, 4, 8, 12, 16, 20), found.steps)
    assert [step for step, _ in found.losses] == [4, 8, 12, 16, 20]
    assert found.losses[1][1] == pytest.approx(np.mean(losses[5:9]), rel=1e-6)
    for number, ids in enumerate((PROBE, PROBE[:5])):
        for at, module in enumerate(copies.values()):
            random.seed(0), np.random.seed(0), torch.manual_seed(0)
            noise_free = found.probes[number]
            trace = capture(module, torch.tensor([ids]), tokens=ids)
            for layer, attention in zip(noise_free.layers, trace.attention, strict=True):
                # The noise of the pass moves a weight by less than this.
                np.testing.assert_allclose(layer.weights[at], attention.weights(), atol=2e-3)
                own = scores(trace, families(trace)[0]).values
                assert set(layer.statistics) == set(own)
                for head in range(layer.heads):
                    row = own["previous"][2 * attention.layer + head]
                    assert layer.of("previous")[at, head] == pytest.approx(row, abs=2e-3)
    repeated, alone = found.probes
    assert "induction" in repeated.layers[0].statistics
    assert "induction" not in alone.layers[0].statistics  # no token comes back
    assert found.checks.max() < 1e-5


def test_the_statistics_are_those_of_the_weights_beside_them(tmp_path: Path) -> None:
    (probe,) = recorded(tmp_path / "a.safetensors", every=5).probes
    for layer in probe.layers:
        before = np.diagonal(layer.weights, -1, 2, 3).mean(-1)  # (step, head)
        np.testing.assert_allclose(layer.of("previous"), before, atol=1e-6)
        np.testing.assert_allclose(
            layer.of("first"), layer.weights[:, :, 1:, 0].mean(-1), atol=1e-6
        )
        assert layer.mask is not None
        assert (layer.mask == np.tri(len(PROBE))).all()


def test_of_too_many_steps_every_second_one_is_forgotten(tmp_path: Path) -> None:
    found = recorded(tmp_path / "a.safetensors", 40, every=1, most=8)
    assert len(found.steps) <= 8
    apart = np.diff(found.steps)
    assert (apart == apart[0]).all()
    assert apart[0] == 8
    assert found.steps[0] == 0
    assert len(found.losses) <= 8
    assert found.losses[-1][0] == found.steps[-1]


def test_the_newest_step_stays_and_an_earlier_one_is_not_recorded_again(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, path = Reader(), tmp_path / "a.safetensors"
    for most in (2, 3, 4, 5):
        record = TrainingRecord(path, probes=[PROBE], every=1, most=most)
        for step in range(8):
            record.step(module, step, final=step == 7)
            found = load_training(path)
            assert found.steps[0] == 0
            assert len(found.steps) <= most
        assert found.steps[-1] == 7
        record.step(module, 3, final=True)  # another training begins anew
        assert load_training(path).steps == found.steps


def test_weights_beyond_the_bound_are_forgotten_but_their_numbers_stay(tmp_path: Path) -> None:
    one_step = 2 * 2 * len(PROBE) ** 2 * 4 / 2**20
    path = tmp_path / "a.safetensors"
    found = recorded(path, 20, every=1, megabytes=6.5 * one_step)
    assert found.steps == tuple(range(21))
    assert found.kept == (0, 4, 8, 12, 16, 20)
    assert found.probes[0].layers[0].numbers.shape[0] == 21
    assert found.probes[0].layers[0].weights.shape[0] == 6
    later = recorded(path, 19, every=1, megabytes=6.5 * one_step)
    assert later.kept == (0, 4, 8, 12, 16, 19)  # the newest step is there
    with pytest.raises(ValueError, match="`megabytes` allows"):
        recorded(path, 20, megabytes=1.5 * one_step)


def test_a_write_that_fails_leaves_the_file_before_and_the_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.safetensors"
    record = TrainingRecord(path, probes=[PROBE], every=1)
    torch.manual_seed(0)
    module = Reader()
    record.step(module, 0)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.warns(TrainingRecordWarning, match="Step 1 was not recorded"):
            record.step(module, 1)
    assert load_training(path).steps == (0,)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    record.step(module, 2)
    assert load_training(path).steps[-1] == 2


def test_numbers_that_are_not_finite_any_more_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    record = TrainingRecord(path, probes=[PROBE], every=1)
    torch.manual_seed(0)
    module = Reader()
    record.step(module, 0)
    with torch.no_grad():
        module.embedding.weight.fill_(torch.nan)
    with pytest.warns(TrainingRecordWarning):
        record.step(module, 1, loss=torch.tensor(torch.nan))
    found = load_training(path)
    assert (found.steps, found.losses) == ((0,), ())


def test_probes_that_cannot_be_read_are_refused(subtests: pytest.Subtests) -> None:
    for probes, tokenizer, words in [
        (["a text"], None, "give the tokenizer"),
        ([list(range(200))], None, "has 200 tokens"),
        ([torch.zeros(2, 3, dtype=torch.long)], None, "one row of ids"),
        ([[0.5, 1.0]], None, "probes is"),
        ([], None, "1 to 64"),
        ("a text", None, "probes is"),
    ]:
        with (
            subtests.test(probes=probes, tokenizer=tokenizer, words=words),
            pytest.raises(ValueError, match=words),
        ):
            TrainingRecord("a.safetensors", probes=probes, tokenizer=tokenizer)


def test_what_cannot_be_recorded_is_refused_at_the_first_step(tmp_path: Path) -> None:
    record = TrainingRecord(tmp_path / "a.safetensors", probes=[PROBE])
    with pytest.raises(ValueError, match="No attention was seen"):
        record.step(nn.Embedding(WORDS, WIDTH), 0)
    assert not any(tmp_path.iterdir())
    with pytest.raises(ValueError, match="There is no folder"):
        TrainingRecord(tmp_path / "none" / "a.safetensors", probes=[PROBE])
    with pytest.raises(ValueError, match="most between 2"):
        TrainingRecord(tmp_path / "a.safetensors", probes=[PROBE], most=1)


def test_texts_are_read_by_a_tokenizer_of_any_kind(tmp_path: Path) -> None:
    letters = "abcdefghijkl"
    spellings: list[Any] = [
        lambda text: [letters.index(one) for one in text],
        lambda text: {"input_ids": [letters.index(one) for one in text]},
        SimpleNamespace(
            encode=lambda text: SimpleNamespace(ids=[letters.index(one) for one in text]),
            decode=lambda ids: "".join(letters[one] for one in ids),
        ),
    ]
    torch.manual_seed(0)
    module = Reader()
    for tokenizer in spellings:
        path = tmp_path / "a.safetensors"
        TrainingRecord(path, probes=["abcab"], tokenizer=tokenizer).step(module, 0)
        (probe,) = load_training(path).probes
        assert [token.id for token in probe.tokens] == [0, 1, 2, 0, 1]
        names = [token.text for token in probe.tokens]
        assert names == ([*"abcab"] if hasattr(tokenizer, "decode") else [*"01201"])


def test_two_texts_are_given_by_the_names_of_the_inputs(tmp_path: Path) -> None:
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    module = T5ForConditionalGeneration(
        T5Config(
            vocab_size=20,
            d_model=16,
            d_kv=8,
            d_ff=16,
            num_layers=1,
            num_heads=2,
            decoder_start_token_id=0,
        )
    )
    path = tmp_path / "a.safetensors"
    probe = {"input_ids": torch.tensor([[3, 4, 5]]), "decoder_input_ids": torch.tensor([[0, 7]])}
    TrainingRecord(path, probes=[probe]).step(module, 0)
    (read,) = load_training(path).probes
    assert [token.id for token in read.tokens] == [3, 4, 5]
    assert [token.id for token in read.target_tokens] == [0, 7]
    kinds = [layer.place.name for layer in read.layers]
    assert kinds == ["encoder.0.self", "decoder.0.self", "decoder.0.cross"]
    traces = load_training(path).traces(0)
    assert [token.id for token in traces.queries("decoder.0.cross")] == [0, 7]
    assert traces.weights("decoder.0.cross", 1).shape == (1, 2, 3)


def test_it_reads_what_the_apps_own_trainer_trains(tmp_path: Path) -> None:
    recipe = short_recipe(3, 200)
    run, path = trainer.begin(recipe), tmp_path / "a.safetensors"
    text = "k 3 f z a 5 k 3 f z a 5"
    record = TrainingRecord(path, probes=[text], tokenizer=recipe.task.tokenizer, every=4)
    for progress, _ in zip(trainer.train(run), range(8), strict=False):
        record.step(run.module, progress.step, loss=progress.loss)
    found = load_training(path)
    assert found.steps == (1, 5)
    training_run = found.training_run("mine", 0)
    assert training_run.steps == (1, 5)
    assert {*training_run.heads} == {"induction", "previous_token"}
    place, head = training_run.head("previous_token")
    layers = {layer.place.name: layer for layer in found.probes[0].layers}
    highest = max(float(layer.of("previous")[-1].max()) for layer in layers.values())
    assert layers[place].of("previous")[-1, head] == pytest.approx(highest)
    assert training_run.history[-1]["previous_token"] == pytest.approx(highest)
    with pytest.raises(NotShownError):
        training_run.model(1)
    with pytest.raises(NotShownError):
        found.traces(0).last.attention["decoder.0.self"].scores(0)


def test_hugging_faces_trainer_calls_it(tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    def run(callbacks: list[Any]) -> nn.Module:
        torch.manual_seed(0)
        module = GPT2LMHeadModel(
            GPT2Config(vocab_size=WORDS, n_embd=16, n_layer=1, n_head=2, n_positions=16)
        )
        ids = torch.randint(WORDS, (12, 8))
        rows = [{"input_ids": row, "labels": row} for row in ids]
        arguments = TrainingArguments(
            output_dir=str(tmp_path / "out"), per_device_train_batch_size=2, logging_steps=2, seed=0,
            num_train_epochs=1, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True,
        )  # fmt: skip
        Trainer(module, arguments, train_dataset=rows, callbacks=callbacks).train()
        return module

    path = tmp_path / "a.safetensors"
    record = TrainingRecord(path, probes=[PROBE], every=4)
    watched, plain = run([record.for_trainer()]), run([])
    for name, weights in plain.state_dict().items():
        assert torch.equal(watched.state_dict()[name], weights), name
    found = load_training(path)
    assert found.steps == (0, 4, 6)
    assert [step for step, _ in found.losses] == [2, 4, 6]
    assert all(loss > 0 for _, loss in found.losses)


def test_lightning_calls_it_by_its_documented_hooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for the package, which is not installed here: `on_train_start(trainer, pl_module)` and
    `on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)`, as its documentation has them."""
    path = tmp_path / "a.safetensors"
    record = TrainingRecord(path, probes=[PROBE], every=2)
    with pytest.raises(ImportError, match=r"needs the package lightning.*record\.step"):
        record.for_lightning()
    package, inner = ModuleType("lightning"), ModuleType("lightning.pytorch")
    inner.Callback = type("Callback", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lightning", package)
    monkeypatch.setitem(sys.modules, "lightning.pytorch", inner)
    callback = record.for_lightning()
    assert isinstance(callback, inner.Callback)
    torch.manual_seed(0)
    module = Reader()
    module.automatic_optimization = True
    lightning = SimpleNamespace(global_step=0, is_global_zero=True, accumulate_grad_batches=2)
    callback.on_train_start(lightning, module)
    for step in range(1, 5):
        lightning.global_step = step
        outputs = {"loss": torch.tensor(step / 2)}  # divided by the batches that it adds up
        callback.on_train_batch_end(lightning, module, outputs, None, step - 1)
    found = load_training(path)
    assert found.steps == (0, 2, 4)
    assert found.losses == ((2, 1.5), (4, 3.5))
    lightning.global_step = 5
    callback.on_train_end(lightning, module)
    assert load_training(path).steps == (0, 2, 4, 5)
    module.automatic_optimization, lightning.global_step = (
        False,
        7,
    )  # of its own steps nothing is divided
    callback.on_train_batch_end(lightning, module, {"loss": torch.tensor(9.0)}, None, 6)
    assert load_training(path).losses[-1] == (7, 9.0)
    lightning.is_global_zero, lightning.global_step = False, 9
    callback.on_train_batch_end(lightning, module, outputs, None, 8)
    assert load_training(path).steps == (0, 2, 4, 5, 7)


def test_what_is_written_comes_back_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    found = recorded(path, every=5)
    again = read_training(io.BytesIO(path.read_bytes()), path.stat().st_size)
    assert again.steps == found.steps
    for name, array in found.arrays().items():
        assert np.array_equal(again.arrays()[name], array), name
    assert not any(
        array.flags.writeable for array in (again.checks, again.probes[0].layers[0].weights)
    )


def rewritten(file: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """The file with another description."""
    length = int.from_bytes(file[:8], "little")
    header = json.loads(file[8 : 8 + length])
    said = json.loads(header["__metadata__"]["training"])
    change(said)
    header["__metadata__"]["training"] = json.dumps(said)
    written = json.dumps(header).encode()
    return len(written).to_bytes(8, "little") + written + file[8 + length :]


def test_files_that_hold_no_record_are_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    found = recorded(path, every=10)
    file = path.read_bytes()
    capture(Reader(), torch.tensor([PROBE])).save(tmp_path / "trace.safetensors")
    weights = found.probes[0].layers[0].weights
    at = file.rindex(np.ascontiguousarray(weights).tobytes()[:64])
    steps = np.array(found.steps, np.int64).tobytes()

    def of_layer(name: str, value: object) -> Callable[[dict[str, Any]], None]:
        return lambda said: said["probes"][0]["layers"][0].update({name: value})

    hostile = [
        b"",
        b"\0" * 100,
        file[:-1],
        file + b"\0",
        file[:2000],
        (tmp_path / "trace.safetensors").read_bytes(),
        file[:at] + np.float32(np.nan).tobytes() + file[at + 4 :],
        file[:at] + np.float32(-0.5).tobytes() + file[at + 4 :],
        file[:at] + np.float32(7).tobytes() + file[at + 4 :],
        file.replace(steps, steps[8:] + steps[:8]),
        rewritten(file, lambda said: said.update(version=2)),
        rewritten(file, lambda said: said.update(probes=[])),
        rewritten(file, lambda said: said.update(more=1)),
        rewritten(file, of_layer("heads", 3)),
        rewritten(file, of_layer("name", "decoder.7.self")),
        rewritten(file, of_layer("statistics", ["previous"])),
        rewritten(file, of_layer("statistics", ["beauty"])),
        rewritten(file, lambda said: said["probes"][0].update(text="a" * 10**6)),
        rewritten(
            file, lambda said: said["probes"][0]["layers"].append(said["probes"][0]["layers"][0])
        ),
    ]
    for number, content in enumerate(hostile):
        with pytest.raises(
            ValueError, match="does not hold a readable record of a training"
        ) as told:
            read_training(io.BytesIO(content), len(content))
        assert str(told.value).endswith("."), number
    with pytest.raises(ValueError, match="There is no file"):
        load_training(tmp_path / "none.safetensors")


def test_a_browser_gets_a_bounded_number_of_maps(tmp_path: Path) -> None:
    found = recorded(tmp_path / "a.safetensors", 1, every=1)
    (probe,) = found.probes
    (first, *others) = probe.layers
    many = 40_000
    steps = tuple(range(many))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        long = RecordedTraining(
            found.model,
            steps,
            steps,
            (),
            np.zeros(many, np.float32),
            (type(probe)(probe.text, probe.tokens, (), (type(first)(
                first.place, first.mask, first.statistics,
                np.broadcast_to(first.numbers[:1], (many, *first.numbers.shape[1:])),
                np.broadcast_to(first.weights[:1], (many, *first.weights.shape[1:])),
            ),)),),
        )  # fmt: skip
    shown = long.traces(0)
    assert len(shown.steps) * len(PROBE) ** 2 <= 1_000_000 + len(PROBE) ** 2
    assert (shown.steps[0], shown.steps[-1]) == (0, many - 1)
    assert others
