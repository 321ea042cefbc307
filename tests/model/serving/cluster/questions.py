"""What pages ask of a model or a trace that may lie on the cluster: each function with arguments that fit a
model. A function that is missing here fails a test."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from model import Intervention, Model, Trace
from model.analysis.attribution.head_matrices import head_matrices
from model.analysis.heads.families import Family, families
from model.analysis.stream.dropout import part_named
from model.analysis.stream.neurons import dropped
from model.analysis.stream.stream import contributions
from model.analysis.tokens.prediction import Sampling
from model.analysis.tokens.sampling import Choice
from model.nn.key_value_cache import Eviction
from model.profile.slices import weights_hash
from model.profile.tables import About
from model.trace.records import Attention, Token


@dataclass(frozen=True)
class Asked:
    """A model, here or elsewhere, and what is asked of it."""

    model: Model
    text: str
    other: str  # a text of as many tokens

    @cached_property
    def trace(self) -> Trace:
        return self.model.trace(self.text, record="full")

    @cached_property
    def second(self) -> Trace:
        """The other text, read towards the first one's target."""
        return self.model.trace(self.other, self._target, record="full")

    @cached_property
    def changed(self) -> Trace:
        """The same text, with a head cut off."""
        changes = Intervention(ablated=frozenset({(self.name, 0)}))
        return self.model.trace(self.text, self._target, changes)

    @property
    def _target(self) -> str | None:
        shown = [one for one in self.trace.target_tokens if not one.special]
        return "".join(one.text for one in shown) if shown else None

    @property
    def attention(self) -> Attention:
        return self.trace.attention[-1]

    @property
    def name(self) -> str:
        return self.attention.name

    @property
    def family(self) -> Family:
        return families(self.trace)[-1]

    @property
    def tokens(self) -> tuple[Token, ...]:
        return self.trace.target_tokens or self.trace.tokens

    def both(self, **more: Any) -> dict[str, Any]:
        return {"model": self.model, "trace": self.trace, **more}

    def record(self, **more: Any) -> dict[str, Any]:
        return {"model": self.model, "attention": self.attention, **more}

    def pair(self, **more: Any) -> dict[str, Any]:
        return {
            "model": self.model,
            "trace_a": self.trace,
            "trace_b": self.second,
            "answer": (1, 2),
            **more,
        }

    def twice(self, **more: Any) -> dict[str, Any]:
        return {"before": self.trace, "after": self.changed, **more}

    def matrices(self, **more: Any) -> dict[str, Any]:
        return self.both(matrices=head_matrices(self.model, self.trace, self.name, 1), **more)

    def writing(self, **more: Any) -> dict[str, Any]:
        choice = Choice(Sampling(), seed=None)
        return {
            "model": self.model,
            "tokens": self.tokens[:4],
            "choice": choice,
            "steps": 3,
            "turn": nullcontext,
            **more,
        }

    def neurons(self) -> dict[str, Any]:
        if not self.trace.feed_forward:
            raise ValueError("This model has no feed-forward layers.")
        record = self.trace.feed_forward[0]
        part = part_named(self.model, self.trace, record.name)
        hidden = record.hidden
        return {
            "model": self.model,
            "part": part,
            "hidden": hidden,
            "found": dropped(hidden, 0.5, 1),
        }

    def corpus(self) -> dict[str, Any]:
        about = About(self.model.name, weights_hash(self.model), "0" * 64, "corpus", False, 64)
        texts = (self.text, self.other)
        return {"model": self.model, "texts": texts, "about": about, "turn": nullcontext}


Arguments = Callable[[Asked], dict[str, Any]]
_ATTRIBUTION: dict[str, Arguments] = {
    "edge_values:_output_row": lambda of: {"model": of.model, "token": 2},
    "edge_values:edge_values": lambda of: of.both(name=of.name, head=1),
    "growing_map:growing_map": lambda of: of.pair(kind="head", turn=nullcontext),
    "head_maps:head_map": lambda of: of.both(attention=of.attention, head=1, side="value"),
    "head_maps:read_by": lambda of: of.both(attention=of.attention, side="key"),
    "head_maps:where_read": lambda of: of.both(attention=of.attention, side="query"),
    "head_matrices:head_matrices": lambda of: of.both(name=of.name, head=1),
    "head_matrices:looking": lambda of: of.matrices(),
    "head_matrices:scores_check": lambda of: of.matrices(),
    "head_matrices:table_factor": lambda of: {
        "model": of.model,
        "recorded": of.trace.embeddings,
        "tokens": of.trace.tokens,
    },
    "head_matrices:writing": lambda of: of.matrices(),
    "patching:check_runs": lambda of: of.pair(),
    "patching:patch_map": lambda of: of.pair(what="head"),
    "patching:spots_of": lambda of: of.both(what="feed_forward"),
    "paths:path_map": lambda of: of.pair(receiver=(of.name, 1), reads=("query", "key")),
    "projected:projected": lambda of: of.both(name=of.name, head=1, token=1, side="query"),
    "relevance:relevances": lambda of: of.both(token=2, steps=4),
    "score_parts:score_parts": lambda of: of.both(name=of.name, head=1, query=2, key=1),
}
_HEADS: dict[str, Arguments] = {
    "ablations:ablate_each": lambda of: of.both(watched=(2, 3), turn=nullcontext),
    "contributions:head_results": lambda of: of.record(),
    "contributions:output_bias": lambda of: {"model": of.model, "name": of.name},
    "contributions:parts_of_logit": lambda of: of.both(position=1, token=2),
    "contributions:result_lengths": lambda of: of.record(),
    "contributions:results_check": lambda of: of.both(name=of.name),
    "merging:merged": lambda of: of.both(name=of.name, tokens=slice(1, 3)),
    "ranking:looking": lambda of: {"trace": of.trace, "family": of.family, "query": 2, "key": 1},
    "ranking:scores": lambda of: {"trace": of.trace, "family": of.family},
    "sinks:moved_weight": lambda of: of.twice(family=of.family, position=0),
    "sinks:token_as_key": lambda of: of.both(family=of.family),
    "statistics:mean_weights": lambda of: {"layers": of.trace.attention[-1:]},
    "statistics:reachable": lambda of: {"layers": of.trace.attention[-1:]},
    "statistics:rolled": lambda of: {"layers": of.trace.attention[-1:]},
    "statistics:sink_share": lambda of: {"layers": of.trace.attention[-1:]},
    "tiles:tiles": lambda of: {"trace": of.trace, "family": of.family},
}
_STREAM: dict[str, Arguments] = {
    "around_heads:output_map": lambda of: {"model": of.model, "name": of.name},
    "dropout:of_neurons": lambda of: of.neurons(),
    "dropout:of_weights": lambda of: of.record(
        part=part_named(of.model, of.trace, of.name), rate=0.5, seed=1
    ),
    "dropout:part_named": lambda of: of.both(name=of.name),
    "dropout:training_pass": lambda of: of.both(seed=1),
    "positions:learned": lambda of: {"model": of.model},
    "score_biases:bias_terms": lambda of: of.record(head=1),
    "score_biases:distance_bias": lambda of: of.record(),
    "stream:contribution_check": lambda of: of.both(
        given=contributions(of.trace, of.trace.source, of.model.config.norm_place)
    ),
    "stream:norm_reads": lambda of: of.both(norm=of.trace.norms[-1].name),
    "stream:written": lambda of: of.both(name=of.name),
}
_TOKENS: dict[str, Arguments] = {
    "beams:beam_search": lambda of: of.both(beams=2, steps=2),
    "live_writing:live_writing": lambda of: of.writing(),
    "live_writing:log_probabilities_of": lambda of: {
        "model": of.model,
        "tokens": of.tokens[:3],
        "written": [token.id for token in of.tokens[3:5]],
        "eviction": Eviction(2, 1),
    },
    "shorter_caches:shorter_caches": lambda of: of.writing(window=2, first=1),
}
_RUNS: dict[str, Arguments] = {
    "divergences": lambda of: of.twice(),
    "largest_difference": lambda of: of.twice(),
    "losses": lambda of: {"trace": of.trace},
    "movement": lambda of: of.twice(stack=of.trace.source),
    "predicted": lambda of: {"trace": of.trace},
    "row_statistics": lambda of: {"attention": of.attention},
}
_OTHERS: dict[str, Arguments] = {
    "model.analysis.cost.recorded_shapes:recorded_shapes": lambda of: {"trace": of.trace},
    "model.analysis.cost.writing:kept_bytes": lambda of: {"trace": of.trace},
    "model.analysis.padded_batch:padded_batch": lambda of: {
        "model": of.model,
        "first": of.text,
        "second": of.other,
    },
    "model.code.check:checked_difference": lambda of: of.both(),
    "model.code.live_axes:queries_by_head": lambda of: of.both(attention=of.attention),
    "model.code.origin:origin": lambda of: of.both(attention=of.attention),
    "model.code.script:weights_of": lambda of: {"model": of.model},
    "model.profile.slices:weights_hash": lambda of: {"model": of.model},
    "model.profile.slices:window_by_window": lambda of: of.corpus(),
    "model.run.model:Model.begun": lambda of: {"self": of.model, "tokens": of.tokens[:2]},
    "model.run.model:Model.embedding": lambda of: {"self": of.model},
    "model.run.model:Model.generate": lambda of: {"self": of.model, "text": of.text, "limit": 3},
    "model.run.model:Model.head_output": lambda of: {
        "self": of.model,
        "attention": of.attention,
        "head": 1,
    },
    "model.run.model:Model.unembed": lambda of: {
        "self": of.model,
        "stream": of.trace.residual[of.trace.stacks[-1]][-1],
    },
}
QUESTIONS: dict[str, Arguments] = {
    **{f"model.analysis.attribution.{name}": given for name, given in _ATTRIBUTION.items()},
    **{f"model.analysis.heads.{name}": given for name, given in _HEADS.items()},
    **{f"model.analysis.stream.{name}": given for name, given in _STREAM.items()},
    **{f"model.analysis.tokens.{name}": given for name, given in _TOKENS.items()},
    **{f"model.analysis.run_comparison:{name}": given for name, given in _RUNS.items()},
    **_OTHERS,
}
