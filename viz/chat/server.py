"""The server: the picture of a run in the chat, and tools that answer with numbers.

The picture is the widget of notebooks, which `anywidget_mcp` shows as an MCP App: a page of its own in a
frame of the chat, which talks with this process through the chat's program and fetches nothing. What the
reader chooses in it is a trait of the widget here, and so the chat can read it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from inspect import getdoc
from threading import BoundedSemaphore
from typing import Annotated, Any

import anyio
from anywidget_mcp import StateProjection
from anywidget_mcp.server import AnyWidgetMCP
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolResult,
    ErrorData,
    InputRequiredResult,
    JSONRPCError,
    ToolAnnotations,
)
from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import ErrorDetails

from model.nn.intervention import LARGEST_SCALE, Intervention, MaskChoice
from model.run.tokenizers import clean
from viz.chat.answers import (
    LONGEST_TEXT,
    Answers,
    Remark,
    RowOfWeights,
    SplitScore,
    TwoRuns,
    rounded,
)
from viz.notation.words import sentences_of
from viz.notebook.run import Run
from viz.notebook.widget import AttentionExplorer, explorer

say = sentences_of("chat.server")

MOST_PICTURES = 12  # open at once
IDLE_SECONDS = 900.0  # after which a picture that no page shows is closed
NOT_READ = say("message_read_json")
CHOICE = ("place", "head", "stage", "query", "key")
READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
INSTRUCTIONS = say("looks_inside_transformer")

ModelArgument = Annotated[str, Field(description=say("name_model_server"), max_length=200)]
TextArgument = Annotated[
    str,
    AfterValidator(clean),
    Field(description=say("model_reads_most", longest_text=LONGEST_TEXT)),
]


def place_named(layer: str) -> str | int:
    """A layer's name, or its number."""
    return int(layer) if layer.removeprefix("-").isdecimal() else layer


WholeNumber = Annotated[int, Field(ge=0, le=10**6)]
LayerArgument = Annotated[
    str,
    Field(description=say("name_attention_layer"), max_length=100, coerce_numbers_to_str=True),
    AfterValidator(place_named),
]
FirstLayerArgument = Annotated[
    LayerArgument | None, Field(description=say("name_attention_layer_without"))
]
HeadArgument = Annotated[WholeNumber, Field(description=say("head_layer_0"))]
QueryArgument = Annotated[WholeNumber, Field(description=say("position_token_looks"))]
LastQueryArgument = Annotated[
    WholeNumber | None, Field(description=say("position_token_looks_without"))
]
KeyArgument = Annotated[WholeNumber, Field(description=say("position_token_looked"))]
LargestKeyArgument = Annotated[
    WholeNumber | None,
    Field(description=say("position_token_looked_without")),
]


MaskArgument = Annotated[MaskChoice, Field(description=say("second_run_none"))]
ScaleArgument = Annotated[
    float | None,
    Field(
        description=say("factor_scores_second"),
        ge=-LARGEST_SCALE,
        le=LARGEST_SCALE,
    ),
]
PositionsArgument = Annotated[bool, Field(description=say("false_second_run"))]
LeftOutArgument = Annotated[
    str | None,
    Field(
        description=say("head_zero_second"),
        pattern=r"^.+\.\d{1,4}$",
        max_length=100,
    ),
]


def not_read(error: Exception) -> JSONRPCError | None:
    """The answer to what is no message of the protocol, under its own number where it has one; None where
    nobody waits for an answer. Python's own reader takes escapes of half characters, the protocol's not."""
    given = [one["input"] for one in error.errors()] if isinstance(error, ValidationError) else []
    sent: object = next((one for one in given if isinstance(one, dict)), None)
    if sent is None and given and isinstance(given[0], str):
        with suppress(ValueError, RecursionError):
            sent = json.loads(given[0])
    number, code = None, PARSE_ERROR
    if isinstance(sent, dict):
        if "id" not in sent or not sent.keys().isdisjoint(("result", "error")):
            return None
        if isinstance(sent["id"], int | str):
            number, code = sent["id"], INVALID_REQUEST
    number = clean(number) if isinstance(number, str) else number
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=NOT_READ))


class ChatServer(AnyWidgetMCP):
    """A server of the Model Context Protocol with the tools of `answers`. `run("stdio")` serves the program
    that started this process, and nobody else."""

    def __init__(self, answers: Answers) -> None:
        first, *_ = answers.models
        super().__init__(
            "attention-lens",
            title="Attention Lens",
            instructions=INSTRUCTIONS.format(models=", ".join(answers.models)),
            csp={"resourceDomains": ["data:"]},  # the fonts of formulas
            session_idle_timeout=IDLE_SECONDS,
            log_level="WARNING",
        )
        pictures(self, answers, first)
        questions(self, answers, first)

    async def run_stdio_async(self) -> None:
        """As the library does it, but what cannot be read is answered: its sender would wait for ever."""
        async with stdio_server() as (heard, said), anyio.create_task_group() as group:
            forward, read = anyio.create_memory_object_stream[SessionMessage | Exception]()

            async def answer_or_forward() -> None:
                async with forward:
                    async for message in heard:
                        if isinstance(message, SessionMessage):
                            await forward.send(message)
                        elif (error := not_read(message)) is not None:
                            await said.send(SessionMessage(error))

            group.start_soon(answer_or_forward)
            options = self._lowlevel_server.create_initialization_options()
            await self._lowlevel_server.run(read, said, options)
            group.cancel_scope.cancel()

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """The tool's answer. A refusal, of the model or of an argument, is the sentence alone."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            refusal = error.__cause__
            if isinstance(refusal, ValidationError):
                raise ToolError(" ".join(map(_sentence, refusal.errors()))) from refusal
            if isinstance(refusal, ValueError | ToolError):
                raise ToolError(str(refusal)) from refusal
            raise


def pictures(server: AnyWidgetMCP, answers: Answers, first: str) -> None:
    """Gives a server the tool that opens a picture. first: the model where none is named."""
    free = BoundedSemaphore(MOST_PICTURES)
    names = {loaded: name for name, loaded in answers.models.items()}

    def state(picture: AttentionExplorer) -> dict[str, object]:
        model = picture.trace.model  # of the hub: its name in the list
        return {"model": names.get(model, model), **chosen(picture)}

    @server.widget(
        title="Attention picture",
        state=StateProjection(state, watch=CHOICE),
        reopen="manual",
        annotations=READS,
    )
    @contextmanager
    def open_attention(
        text: TextArgument,
        model: ModelArgument = first,
        layer: FirstLayerArgument = None,
        head: HeadArgument = 0,
        query: LastQueryArgument = None,
        key: LargestKeyArgument = None,
    ) -> Iterator[AttentionExplorer]:
        """Shows, in the chat, what a model does with a text: all heads, every stage of attention, each
        number. The reader chooses a cell in the picture; the result and anywidget_state say which one, its
        weight, its score before scaling, and the check: how far the recomputed outputs of the run are from
        those that the model computed, at most."""
        if not free.acquire(blocking=False):
            raise ValueError(
                f"{MOST_PICTURES} pictures are open. One that no page shows is closed after "
                f"{IDLE_SECONDS / 60:.0f} minutes."
            )
        try:
            opened, trace = answers.run(model, text)
            run = Run(trace, model=opened)
            yield explorer(run, place=layer, head=head, query=query, key=key)
        finally:
            free.release()


def chosen(picture: AttentionExplorer) -> dict[str, object]:
    """What the reader has chosen in a picture, with its numbers."""
    queries, keys = picture.labels
    attention = picture.trace.find(picture.place)
    return {
        "layer": attention.name,
        "head": picture.head,
        "stage": picture.stage,
        "query": {"position": picture.query, "token": queries[picture.query]},
        "key": {"position": picture.key, "token": keys[picture.key]},
        "weight": rounded(picture.weight),
        "score": rounded(float(attention.scores(picture.head)[picture.query, picture.key])),
        "check": rounded(picture.trace.check()),
    }


def questions(server: AnyWidgetMCP, answers: Answers, first: str) -> None:
    """Gives a server the tools that answer with numbers. first: the model where none is named."""

    def attention_weights(
        text: TextArgument,
        model: ModelArgument = first,
        layer: FirstLayerArgument = None,
        head: HeadArgument = 0,
        query: LastQueryArgument = None,
    ) -> RowOfWeights:
        """What one token of a text attends to in one head: the largest weights of its row, the sum of the
        others, and the check: how far the recomputed outputs of the run are from those that the model
        computed, at most. `layers` lists every layer with its number of heads."""
        return answers.weights(model, text, layer, head, query)

    def score_parts(
        text: TextArgument,
        layer: LayerArgument,
        head: HeadArgument,
        query: QueryArgument,
        key: KeyArgument,
        model: ModelArgument = first,
    ) -> SplitScore:
        """Why a head attends from one token to another: its score before scaling, as an exact sum over pairs
        of what earlier parts of the model wrote into the query and into the key. A part such as
        decoder.0.self.2 is a head: layer decoder.0.self, head 2. The check is how far the sum is from the
        score that the model computed."""
        return answers.score_parts(model, text, layer, head, query, key)

    def what_stands_out(text: TextArgument, model: ModelArgument = first) -> tuple[Remark, ...]:
        """At most ten remarkable things in a model's run over a text: heads that are needed, large weights,
        surprising tokens, large numbers. Each has its number, and the check: how far a second way to compute
        it differs. It runs the model once for each head, so it takes longer than the other questions."""
        return answers.stands_out(model, text)

    def first_difference(
        text: TextArgument,
        model: ModelArgument = first,
        other_model: ModelArgument | None = None,
        mask: MaskArgument = "model",
        scale: ScaleArgument = None,
        positions: PositionsArgument = True,
        without_head: LeftOutArgument = None,
    ) -> TwoRuns:
        """Where two runs of a text part: the first stage, in the order of execution, that differs beyond
        rounding, with both numbers, how far rounding alone may move them, the cause if it is known, and the
        stages that could not be compared. The first run is the model's own; the second is changed as the
        arguments say, or of another model with as many layers, heads and tokens. The check is how far the
        recomputed outputs of both runs are from those that the models computed, at most."""
        layer, _, head = (without_head or "").rpartition(".")
        change = Intervention(
            mask=mask,
            scale=scale,
            positions=positions,
            ablated={(int(layer) if layer.isdecimal() else layer, int(head))}
            if without_head
            else (),
        )
        return answers.difference(text, (model, other_model or model), change)

    for question, title in (
        (attention_weights, "Attention weights"),
        (score_parts, "Why this score?"),
        (first_difference, say("runs_part")),
        (what_stands_out, "What stands out?"),
    ):
        server.add_tool(question, title=title, description=getdoc(question), annotations=READS)


def _sentence(error: ErrorDetails) -> str:
    """What is wrong with an argument, without what was given."""
    return f"{'.'.join(map(str, error['loc']))}: {error['msg'].removesuffix('.')}."
