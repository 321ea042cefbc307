"""The server for chats, asked by the protocol's own client: its numbers are the run's, beside their check;
what it may not answer is refused in a sentence; it uses no model that its owner did not allow."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import anyio
import pytest
import torch
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolResult,
    TextContent,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from model import Intervention, Model, Trace, load_model
from model.analysis import first_difference, scan, score_parts
from model.loading.shipped import ASSETS
from model.nn.transformer import Transformer
from tests.cases import cases
from tools.training.publishing import save_asset
from viz.chat import server as chat
from viz.chat.answers import LONGEST_TEXT, MOST_KEYS, MOST_PARTS, Answers, on_this_computer, rounded
from viz.chat.server import ChatServer

ROOT = Path(__file__).resolve().parents[3]
TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"
PLACE, HEAD, QUERY, KEY = "decoder.1.self", 7, 12, 1
MODELS = {name: name for name in ("house-gpt", "translate-en-fr")}
PAIR = {"text": "the black cat sleeps", "other_model": "translate-en-fr"}
CELL = {"text": TEXT, "layer": PLACE, "head": HEAD, "query": QUERY}
Call = Callable[..., Awaitable[CallToolResult]]


@pytest.fixture(scope="module")
def answers() -> Answers:
    return Answers(MODELS)


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model("house-gpt")


@pytest.fixture(scope="module")
def trace(model: Model) -> Trace:
    return model.trace(TEXT)


def talk(server: Any, conversation: Callable[[Client], Awaitable[None]]) -> None:
    """Holds a conversation with a server of this process, or with one that is a process."""

    async def held() -> None:
        async with Client(server) as client:
            await conversation(client)

    anyio.run(held)


def called(answers: Answers, tool: str, **given: object) -> Any:
    """What a tool answers, as data."""
    results: list[CallToolResult] = []

    async def ask(client: Client) -> None:
        results.append(await client.call_tool(tool, given))

    talk(ChatServer(answers), ask)
    assert not results[0].is_error, results[0].content
    return results[0].structured_content


def said(result: CallToolResult) -> str:
    """The words of a result."""
    return " ".join(part.text for part in result.content if isinstance(part, TextContent))


def test_an_assistant_sees_the_tools_that_only_read(answers: Answers) -> None:
    async def look(client: Client) -> None:
        tools = (await client.list_tools()).tools
        for_it = {
            tool.name: tool
            for tool in tools
            if "model" in ((tool.meta or {}).get("ui") or {}).get("visibility", ["model"])
        }
        asked = {"attention_weights", "first_difference", "score_parts", "what_stands_out"}
        assert for_it.keys() == {"open_attention", "anywidget_state", *asked}
        for name, tool in for_it.items():
            assert tool.annotations.read_only_hint
            assert not tool.annotations.open_world_hint
            assert tool.description
            assert name == "anywidget_state" or "\n " not in tool.description
        assert client.instructions is not None
        assert all(name in client.instructions for name in MODELS)

    talk(ChatServer(answers), look)


def test_a_picture_says_which_cell_is_chosen_with_its_numbers_and_its_check(
    answers: Answers, trace: Trace
) -> None:
    opened = called(answers, "open_attention", text=TEXT, layer=PLACE, head=HEAD)
    attention = trace.find(PLACE)
    weights = attention.weights(HEAD)
    assert opened["state"] == {
        "model": "house-gpt",
        "layer": PLACE,
        "head": HEAD,
        "stage": "weights",
        "query": {"position": QUERY, "token": trace.tokens[QUERY].text},
        "key": {"position": KEY, "token": trace.tokens[KEY].text},
        "weight": rounded(weights[QUERY, KEY]),
        "score": rounded(attention.scores(HEAD)[QUERY, KEY]),
        "check": rounded(trace.check()),
    }
    assert weights[QUERY].argmax() == KEY


def test_a_row_of_weights_is_the_runs_own_and_adds_up(answers: Answers, trace: Trace) -> None:
    row = called(answers, "attention_weights", **CELL)
    weights = trace.find(PLACE).weights(HEAD)[QUERY]
    keys = row["keys"]
    assert len(keys) == MOST_KEYS < len(weights)
    assert [one["weight"] for one in keys] == [rounded(weights[one["position"]]) for one in keys]
    assert [one["token"] for one in keys] == [trace.tokens[one["position"]].text for one in keys]
    assert min(one["weight"] for one in keys) >= max(
        rounded(weight)
        for at, weight in enumerate(weights)
        if at not in {one["position"] for one in keys}
    )
    assert sum(one["weight"] for one in keys) + row["others"] == pytest.approx(1, abs=1e-5)
    assert row["check"] == rounded(trace.check()) < 1e-4
    assert row["layers"] == {one.name: one.heads for one in trace.attention}
    assert called(answers, "attention_weights", **(CELL | {"query": None})) == row  # the last token


def test_the_parts_of_a_score_add_up_to_what_the_model_computed(
    answers: Answers, model: Model, trace: Trace
) -> None:
    split = called(answers, "score_parts", **CELL, key=KEY)
    whole = score_parts(model, trace, PLACE, HEAD, QUERY, KEY)
    assert len(split["parts"]) == MOST_PARTS < whole.values.size
    names = whole.query_parts, whole.key_parts
    for part in split["parts"]:
        cell = names[0].index(part["query_part"]), names[1].index(part["key_part"])
        assert part["value"] == rounded(whole.values[cell])
    largest = sorted(map(abs, whole.values.flat), reverse=True)[:MOST_PARTS]
    assert [abs(part["value"]) for part in split["parts"]] == [rounded(one) for one in largest]
    added = sum(part["value"] for part in split["parts"]) + split["others"]
    assert added == pytest.approx(split["total"], abs=1e-3)
    assert split["recorded"] == rounded(float(trace.find(PLACE).scores(HEAD)[QUERY, KEY]))
    assert split["check"] == rounded(abs(whole.total - whole.recorded)) < 1e-3


def test_what_stands_out_are_the_findings_of_the_scan(
    answers: Answers, model: Model, trace: Trace
) -> None:
    remarks = called(answers, "what_stands_out", text=TEXT)["result"]
    found = [(one.sentence, rounded(one.value)) for one in scan(model, trace)]
    assert [(one["sentence"], one["value"]) for one in remarks] == found
    assert all(one["check"] < 1e-3 for one in remarks)


@cases("given, change", [
    ({"scale": 1}, Intervention(scale=1.0)),
    ({"mask": "none"}, Intervention(mask="none")),
    ({"positions": False}, Intervention(positions=False)),
    ({"without_head": f"{PLACE}.{HEAD}"}, Intervention(ablated={(PLACE, HEAD)})),
])  # fmt: skip
def test_a_changed_run_parts_from_the_models_own_where_the_change_begins(
    given, change, answers: Answers, model: Model, trace: Trace
) -> None:
    answer = called(answers, "first_difference", text=TEXT, **given)
    changed = model.trace(TEXT, intervention=change)
    expected = first_difference(trace, changed, model=model)
    assert expected is not None
    found = answer["first_difference"]
    names = ("stage", "place", "head", "cause", "sentence")
    assert {name: found[name] for name in names} == {
        name: getattr(expected, name) for name in names
    }
    assert (found["row"], found["column"]) == expected.cell
    for name in ("first", "second", "difference", "rounding"):
        assert found[name] == rounded(getattr(expected, name))
    assert found["difference"] > found["rounding"]
    assert answer["check"] == rounded(max(trace.check(), changed.check())) < 1e-4


def test_two_models_agree_at_every_stage_or_part_where_their_weights_do(tmp_path: Path) -> None:
    module = deepcopy(load_model("stories").module)
    assert isinstance(module, Transformer)
    with torch.no_grad():
        for numbers in module.decoder.blocks[0].self_attention.key.parameters():
            numbers.mul_(2)
    tokenizer = load_model("stories").tokenizer
    save_asset(tmp_path / "louder", module, tokenizer, card={"title": "Stories, louder"})  # type: ignore[arg-type]
    folders = {"louder": str(tmp_path / "louder"), "twin": str(ASSETS / "stories")}
    answers = Answers({"stories": "stories", **folders})
    ask = {"text": "Tom saw Anna", "model": "stories"}
    alike = called(answers, "first_difference", **ask, other_model="twin")
    assert alike["first_difference"] is None
    assert alike["check"] < 1e-4
    found = called(answers, "first_difference", **ask, other_model="louder")["first_difference"]
    assert (found["stage"], found["place"]) == ("key", "decoder.0.self")
    assert found["second"] == pytest.approx(2 * found["first"], rel=1e-4)
    assert found["cause"] is None
    assert "feed-forward" in found["not_compared"]


def test_a_scan_that_takes_too_long_is_ended_in_a_sentence(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("viz.chat.answers.LONGEST_SCAN", -1)
    with pytest.raises(ValueError, match="heads were tried"):
        answers.stands_out("house-gpt", TEXT)


def test_cross_attention_has_the_tokens_of_both_sentences(answers: Answers) -> None:
    row = called(
        answers,
        "attention_weights",
        text="the black cat sleeps",
        model="translate-en-fr",
        layer="decoder.1.cross",
    )
    trace = load_model("translate-en-fr").trace("the black cat sleeps")
    assert row["query"]["token"] == trace.target_tokens[-1].text
    assert {one["token"] for one in row["keys"]} <= {token.text for token in trace.tokens}


HOSTILE: tuple[tuple[str, str, dict[str, object], str], ...] = (
    ("a number", "open_attention", {"text": 3}, "text: Input should be a valid string."),
    ("no text", "attention_weights", {}, "text: Field required."),
    ("nothing", "attention_weights", {"text": ""}, "There is no text yet. Type a sentence."),
    ("long", "open_attention", {"text": "a" * (LONGEST_TEXT + 1)}, "at most 2,000 are read."),
    ("huge", "score_parts", CELL | {"key": 1, "text": "a" * 10**6}, "at most 2,000 are read."),
    ("a path", "open_attention", {"text": TEXT, "model": "/etc"}, "There is no model '/etc' in"),
    ("a folder", "attention_weights", {"text": TEXT, "model": str(ASSETS / "stories")}, "in this"),
    ("a file", "attention_weights", {"text": TEXT, "model": "../a.safetensors"}, "in this chat."),
    ("of the hub", "what_stands_out", {"text": TEXT, "model": "openai-community/gpt2"}, "in this"),
    ("listed", "what_stands_out", {"text": TEXT, "model": "stories"}, "in this chat. The models"),
    ("long name", "open_attention", {"text": TEXT, "model": "m" * 201}, "model: String should"),
    ("long layer", "open_attention", {"text": TEXT, "layer": "l" * 101}, "layer: String should"),
    ("no layer", "attention_weights", CELL | {"layer": "<script>"}, "no attention sub-layer '<sc"),
    ("below", "attention_weights", CELL | {"head": -1}, "head: Input should be greater than"),
    ("no head", "attention_weights", CELL | {"head": 8}, "decoder.1.self has head 0 to 7, not 8."),
    ("no query", "attention_weights", CELL | {"query": 13}, "has query 0 to 12, not 13."),
    ("no cell", "score_parts", CELL | {"key": 13}, "has keys 0 to 12, not 13."),
    ("enormous", "score_parts", CELL | {"key": 2**70}, "key: Input should be less than or equal"),
    ("half", "open_attention", {"text": TEXT, "head": 0.5}, "head: Input should be a valid int"),
    ("a list", "open_attention", {"text": TEXT, "query": [1]}, "query: Input should be a valid"),
    ("not shown", "open_attention", {"text": TEXT, "head": 8}, "has head 0 to 7, not 8."),
    ("two alike", "first_difference", {"text": TEXT}, "Name another model, or change one of them."),
    ("no pair", "first_difference", PAIR, "cannot be laid side by side."),
    ("no other", "first_difference", {"text": TEXT, "other_model": "/etc"}, "no model '/etc' in"),
    ("no mask", "first_difference", {"text": TEXT, "mask": "<script>"}, "mask: Input should be"),
    ("endless", "first_difference", {"text": TEXT, "scale": "inf"}, "scale: Input should be"),
    ("no number", "first_difference", {"text": TEXT, "scale": "nan"}, "scale"),
    ("tiny", "first_difference", {"text": TEXT, "scale": 1e-300}, "scale is 1e-300; it must be 0"),
    ("no name", "first_difference", {"text": TEXT, "without_head": "7"}, "without_head: String"),
    ("digits", "first_difference", {"text": TEXT, "without_head": "a.³"}, "without_head: String"),
    ("not left out", "first_difference", {"text": TEXT, "without_head": f"{PLACE}.8"},
        "heads 0 to 7"),
    ("no such", "first_difference", {"text": TEXT, "without_head": "<b>.1"}, "no attention"),
    ("no state", "anywidget_state", {"state_id": "0" * 32}, "Widget state is unavailable."),
    ("no tool", "delete_everything", {}, "Unknown tool: delete_everything"),
)  # fmt: skip


def test_what_cannot_be_answered_is_refused_in_a_sentence(answers: Answers) -> None:
    async def ask(client: Client) -> None:
        for what, tool, given, sentence in HOSTILE:
            result = await client.call_tool(tool, given)
            words = said(result)
            assert result.is_error, what
            assert sentence in words, what
            assert len(words) < 400, what
            assert not re.search(r"Traceback|Error executing|https?:|\n", words), what
        for layer in (1, "1", "-3"):  # it goes on
            assert not (
                await client.call_tool("attention_weights", CELL | {"layer": layer})
            ).is_error

    talk(ChatServer(answers), ask)


@cases("text", ["\ud800", "a\x00b", "<script>alert(1)</script>", "𝕬‮abc", "\n" * 30])
def test_odd_texts_are_read_or_refused_and_never_break_an_answer(text, answers: Answers) -> None:
    async def ask(client: Client) -> None:
        for tool in ("attention_weights", "open_attention"):
            result = await client.call_tool(tool, {"text": text})
            assert result.is_error == ("sentence" in said(result)), said(result)

    talk(ChatServer(answers), ask)


def test_only_so_many_pictures_are_open_and_a_closed_one_makes_room(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "MOST_PICTURES", 2)

    async def ask(client: Client) -> None:
        first, second, third = [
            await client.call_tool("open_attention", {"text": TEXT}) for _ in range(3)
        ]
        assert [one.is_error for one in (first, second, third)] == [False, False, True]
        assert said(third).startswith("2 pictures are open.")
        refused = await client.call_tool("open_attention", {"text": TEXT, "head": 99})
        assert said(refused).startswith("2 pictures are open.")
        bootstrap = re.findall(r"bootstrap:(\w+)", said(first))[0]
        claim = {"bootstrap_id": bootstrap, "operation_id": "0" * 32}
        claimed = await client.call_tool("anywidget_bootstrap", claim)
        session = (claimed.meta or {})["anywidget"]["instanceId"]
        close = {"session_id": session, "operation_id": "0" * 32}
        await client.call_tool("anywidget_dispose", close)
        refused = await client.call_tool("open_attention", {"text": TEXT, "head": 99})
        assert said(refused).endswith("not 99.")  # and takes no room
        assert not (await client.call_tool("open_attention", {"text": TEXT})).is_error

    talk(ChatServer(answers), ask)


def test_the_models_are_those_of_the_list_that_are_here(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = {"house-gpt", "stories", "translate-en-fr", "induction"}
    monkeypatch.setattr("viz.chat.answers.is_on_disk", lambda entry: entry.ships)
    assert on_this_computer().keys() == shipped


def test_what_cannot_be_read_is_answered_under_its_number(subtests: pytest.Subtests) -> None:
    asked = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"text": "a \ud800 b"}}
    answers: dict[str, tuple[int | str | None, int] | None] = {
        json.dumps(asked): (7, INVALID_REQUEST),
        json.dumps(asked | {"id": "a \ud800"}): ("a \ufffd", INVALID_REQUEST),
        json.dumps(asked | {"method": 3, "params": {}}): (7, INVALID_REQUEST),
        json.dumps({"jsonrpc": "2.0", "method": "\ud800"}): None,  # a notification
        json.dumps({"jsonrpc": "2.0", "id": 7, "result": "\ud800"}): None,  # an answer
        "{": (None, PARSE_ERROR),
        "[" * 100_000: (None, PARSE_ERROR),
    }
    for line, expected in answers.items():
        with subtests.test(line=line[:60]):
            with pytest.raises(ValidationError) as unreadable:
                jsonrpc_message_adapter.validate_json(line, by_name=False)
            answer = chat.not_read(unreadable.value)
            assert expected == (answer and (answer.id, answer.error.code))
            assert answer is None or answer.model_dump_json()


@pytest.mark.process
def test_half_a_character_is_answered_and_the_conversation_goes_on() -> None:
    """As a program for chats writes it, line by line."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"},
    }
    half = {"name": "attention_weights", "arguments": {"text": "a \ud800 b"}}
    asked = [("initialize", hello), ("tools/call", half), ("ping", {})]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": given})
        for number, (method, given) in enumerate(asked)
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "viz.command", "mcp"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, line in enumerate(lines):
            print(line, file=process.stdin, flush=True)
            answer = json.loads(process.stdout.readline())
            assert (answer["id"], "error" in answer) == (number, number == 1)
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.mark.process
def test_the_command_serves_a_folder_that_it_is_started_with(tmp_path: Path) -> None:
    """As a program for chats starts it; nothing but the protocol leaves its standard output."""
    folder = tmp_path / "mine"
    folder.symlink_to(ASSETS / "stories")
    line = ["-m", "viz.command", "mcp", str(folder)]
    started = StdioServerParameters(
        command=sys.executable, args=line, cwd=ROOT, env=dict(os.environ)
    )

    async def ask(client: Client) -> None:
        given = {"text": "Tom saw Anna", "model": "mine"}
        opened = await client.call_tool("open_attention", given)
        assert opened.structured_content is not None, said(opened)
        state = opened.structured_content["state_id"]
        assert opened.structured_content["state"]["model"] == "mine"
        read = await client.call_tool("anywidget_state", {"state_id": state})
        assert read.structured_content["state"] == opened.structured_content["state"]
        row = (await client.call_tool("attention_weights", given)).structured_content
        assert row["keys"][0]["weight"] == opened.structured_content["state"]["weight"]
        refused = await client.call_tool("attention_weights", given | {"model": str(folder)})
        assert str(folder)[:60] in said(refused)

    talk(stdio_client(started), ask)
