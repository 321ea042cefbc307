"""Changes that make a trace file one that no pass leaves behind, each with what it does."""

from typing import Any

import numpy as np

from tests.model.trace.altered_files import Change

QUERY = "attention/decoder.0.self/query"
BIAS = "attention/decoder.0.self/bias"


def says(**said: object) -> Change:
    return lambda found: found.update(said)


def attention(**said: object) -> Change:
    return lambda found: found["attention"][0].update(said)


def token(**said: object) -> Change:
    return lambda found: found["tokens"][1].update(said)


WRONG_WORDS: dict[str, Change] = {
    "another format": says(format="pickle"),
    "a version to come": says(version=3),
    "a key of its own": says(code="print(1)"),
    "a text beyond the bound": says(text="a" * 20_001),
    "no tokens": says(tokens=[]),
    "a token more": lambda found: found["tokens"].append(found["tokens"][0]),
    "an id below zero": token(id=-1),
    "an id of 2**60": token(id=2**60),
    "an id that is true": token(id=True),
    "bytes that are none": token(raw="zz"),
    "a place behind the text": token(span=[0, 10**6]),
    "a place that ends before it begins": token(span=[3, 1]),
    "a place before the text": token(span=[-3, 1]),
    "a name as long as a page": token(text="a" * 1_001),
    "another head": attention(heads=7),
    "2**60 heads": attention(heads=2**60),
    "another kind": attention(kind="pickle"),
    "another name": attention(name="decoder.7.self"),
    "a name of two": lambda found: found["attention"].append(found["attention"][0]),
    "a layer beyond the model's": attention(layer=9, name="decoder.9.self"),
    "an infinite scale": attention(scale=1e999),
    "a scale beyond the bound": attention(scale=1e30),
    "a scale that single precision takes for zero": attention(scale=1e-320),
    "a cap that single precision takes for zero": attention(cap=1e-320),
    "a cap of zero": attention(cap=0),
    "a cap in letters": attention(cap="x"),
    "a window below zero": attention(window=-1),
    "a window of half a key": attention(window=2.5),
    "a mask value that is none": attention(fill="nan"),
    "a mask value of plus infinity": attention(fill="inf"),
    "a head left out that is not there": attention(ablated=[8]),
    "a weight set outside": attention(weights_set=[[0, 99, 0, 0.5]]),
    "a step that is none": attention(steps=["pickle"]),
    "a step that is missing": attention(steps=["weights"]),
    "a part that no model has": says(unproven={"steam": "a reason"}),
    "parts in a list": says(unproven=["stream"]),
    "a reason that is a number": says(unproven={"stream": 3}),
    "a layer more than it has": lambda found: found["config"].update(decoder_layers=0),
    "a million layers": lambda found: found["config"].update(decoder_layers=10**6),
    "sizes of no model": lambda found: found["config"].update(heads=7),
    "a size that is unknown": lambda found: found["config"].update(depth=3),
    "a vocabulary beyond all bounds": lambda found: found["config"].update(d_vocab=2**60),
    "one state fewer": lambda found: found["states"].update(decoder=1),
    "a thousand states more": lambda found: found["states"].update(decoder=1_000),
    "states of a stack that did not run": lambda found: found["states"].update(encoder=1),
    "the same as nothing": lambda found: found["same"].update(x="y"),
    "a norm of no part": lambda found: found["norms"][0].update(name="../x"),
    "a norm fewer": lambda found: found["norms"].pop(),
    "an intervention out of range": lambda found: found["intervention"].update(dropout=2.0),
    "a position beyond any text": lambda found: found["intervention"].update(hidden=[2**40]),
    "a head beyond any model": lambda found: found["intervention"].update(
        ablated=[["decoder.0.self", 2**40]]
    ),
    "a head below zero": lambda found: found["intervention"].update(
        ablated=[["decoder.0.self", -1]]
    ),
    "a name without an end": lambda found: found["intervention"].update(only=["a" * 61]),
    "a seed that is none": lambda found: found["intervention"].update(seed=-1),
    "an intervention of another kind": lambda found: found["intervention"].update(hidden=["a"]),
}


def array(name: str, **changed: object) -> Change:
    return lambda header: header[name].update(changed)


def put(name: str, at: object, value: float) -> Change:
    def change(arrays: dict[str, Any]) -> None:
        arrays[name][at] = value

    return change


WRONG_HEADERS: dict[str, Change] = {
    "a shape of 2**60": array(QUERY, shape=[2**60, 2**60, 2**60]),
    "a shape below zero": array(QUERY, shape=[-2, -8, 4]),
    "a shape that is true": array(QUERY, shape=[True, 8, 4]),
    "no numbers at all": array(QUERY, shape=[0], data_offsets=[0, 0]),
    "other numbers": array(QUERY, dtype="F64"),
    "numbers that are objects": array(QUERY, dtype="O"),
    "a place that another array has": array(QUERY, data_offsets=[0, 4]),
    "a place before the file": array(QUERY, data_offsets=[-8, 248]),
    "a place behind the file": array(QUERY, data_offsets=[2**60, 2**60 + 256]),
    "a key of its own": array(QUERY, code="print(1)"),
    "an array too many": lambda header: header.update(
        {"attention/decoder.9.self/query": header[QUERY]}
    ),
    "an array that is a path": lambda header: header.update({"../../x": header.pop(QUERY)}),
    "an array too few": lambda header: header.pop(QUERY),
    "metadata that is no text": lambda header: header.update(__metadata__={"trace": 3}),
    "no metadata": lambda header: header.pop("__metadata__"),
}


def named_at_length(arrays: dict[str, Any]) -> None:
    """The vocabulary's last token has a text of more than 100,000 bytes."""
    letters = np.pad(arrays["vocabulary/text"], (0, 100_001), constant_values=ord("a"))
    arrays["vocabulary/text"] = letters
    arrays["vocabulary/ends"][-1] += 100_001


WRONG_NUMBERS: dict[str, Change] = {
    "no number": put(QUERY, (0, 0, 0), np.nan),
    "infinity": put(QUERY, (0, 0, 0), np.inf),
    "minus infinity where none may stand": put(QUERY, (0, 0, 0), -np.inf),
    "a number beyond all that models have": put(QUERY, (0, 0, 0), 1e30),
    "a deviation of zero": put("norms/decoder.0.self.norm/inverse_deviation", 0, 0.0),
    "a deviation below zero": put("norms/decoder.0.self.norm/inverse_deviation", 0, -1.0),
    "a logit that is none": put("logits", (0, 0), np.nan),
    "an array of another length": lambda arrays: arrays.update({QUERY: arrays[QUERY][:, :-1]}),
    "a key of another width": lambda arrays: arrays.update({QUERY: arrays[QUERY][..., :-1]}),
    "integers": lambda arrays: arrays.update({QUERY: np.zeros(arrays[QUERY].shape, np.int64)}),
    "an array that no trace has": lambda arrays: arrays.update({"code": np.zeros(2, np.float32)}),
    "a mask of another text": lambda arrays: arrays.update(
        {"attention/decoder.0.self/mask": np.ones((3, 3), bool)}
    ),
    "a bias that does not fit": lambda arrays: arrays.update({BIAS: np.zeros((2, 4), np.float32)}),
    "a bias that is no number": lambda arrays: arrays.update(
        {BIAS: np.full((1, 1, len(arrays["logits"])), np.nan, np.float32)}
    ),
    "ends of texts in another order": put("vocabulary/ends", 0, 10**6),
    "angles of another text": lambda arrays: arrays.update(
        {"angles": np.zeros((300, 2), np.float32)}
    ),
    "a vocabulary without logits": lambda arrays: arrays.pop("logits"),
    "a vocabulary larger than the logits": lambda arrays: arrays.update(
        {"logits": arrays["logits"][:, 1:].copy()}
    ),
    "letters that no token has": lambda arrays: arrays.update(
        {"vocabulary/text": np.pad(arrays["vocabulary/text"], (0, 9))}
    ),
    "a token as long as a book": named_at_length,
    "ends of texts behind them": put("vocabulary/ends", -1, 10**6),
    "ends of texts before them": put("vocabulary/ends", 0, -1),
}
