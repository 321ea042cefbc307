"""What a record of a training costs: a recorded step beside steps of the training itself, and the file."""

import time
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from bench.cells import Measured, megabytes, ms, table
from bench.quantiles import median
from model.training.training_record import TrainingRecord

SIZES = {"4 layers × 8 heads": (4, 8, 256), "12 layers × 12 heads": (12, 12, 768)}
VOCABULARY, BATCH, TOKENS, PROBES = 8_192, 8, 128, 32
STEPS, RECORDED = 5, 7  # timed
EVERY = 100


def measure(scratch: Path, short: bool) -> dict[str, object]:
    rows = []
    for name, (layers, heads, width) in list(SIZES.items())[: 1 if short else None]:
        rows.append({"model": name} | _measured(scratch, layers, heads, width))
        print(rows[-1], flush=True)
    return {"rows": rows}


def _measured(scratch: Path, layers: int, heads: int, width: int) -> dict[str, object]:
    torch.manual_seed(0)
    module = GPT2LMHeadModel(
        GPT2Config(vocab_size=VOCABULARY, n_layer=layers, n_head=heads, n_embd=width)
    )
    optimizer = torch.optim.AdamW(module.parameters())
    half = torch.randint(VOCABULARY, (2, PROBES // 2))
    path = scratch / "training.safetensors"
    record = TrainingRecord(path, probes=[*half.repeat(1, 2)], every=1)
    record.step(module, 0)  # the first step of all is slower
    steps, recorded = [], []
    for number in range(1, 1 + max(STEPS, RECORDED)):
        if number <= STEPS:
            start = time.perf_counter()
            ids = torch.randint(VOCABULARY, (BATCH, TOKENS))
            module(ids, labels=ids).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            steps.append(time.perf_counter() - start)
        start = time.perf_counter()
        record.step(module, number)
        recorded.append(time.perf_counter() - start)
    step, one = median(steps), median(recorded)
    return {
        "step_ms": 1000 * step,
        "recorded_ms": 1000 * one,
        "share": one / (EVERY * step + one),
        "bytes_a_step": path.stat().st_size / (len(recorded) + 1),
    }


def tabled(measured: Measured) -> str:
    rows = (
        [
            row["model"],
            ms(row["step_ms"]),
            ms(row["recorded_ms"]),
            f"{row['share']:.1%}",
            megabytes(row["bytes_a_step"]),
        ]
        for row in measured["rows"]
    )
    head = ("model", "a step of the training", "a recorded step", "share", "of the file, a step")
    return table(head, rows)
