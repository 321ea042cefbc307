"""The lines of norms, of the feed-forward, and of a layer that joins them."""

from collections.abc import Iterator, Mapping

from model.code.line import Length, Line, Plan, inside, linear
from model.nn.config import Activation, Stack
from model.nn.places import Part

ACTIVATION: Mapping[Activation, tuple[str, str]] = {  # what is imported, and how it is called
    "relu": ("relu", "relu({})"),
    "relu2": ("relu", "relu({}) ** 2"),
    "gelu": ("gelu", "gelu({})"),
    "gelu_tanh": ("gelu", 'gelu({}, approximate="tanh")'),
    "silu": ("silu", "silu({})"),
    "swiglu": ("silu", "silu({})"),
    "geglu": ("gelu", "gelu({})"),
    "geglu_tanh": ("gelu", 'gelu({}, approximate="tanh")'),
}


def norm(plan: Plan) -> Iterator[Line]:
    """The function `norm`, as the model has it."""
    config, line = plan.config, inside("norm")
    width, shift = config.d_model, ' + w["beta"]' if config.shifts else ""
    yield Line("def norm(x, w):", None, "norm")
    if config.centres:
        yield line('"""Layer norm: each token\'s vector brought to mean 0 and variance 1."""')
        yield line("mean = x.mean(-1, keepdim=True)", "n", 1)
        yield line("variance = (x - mean).square().mean(-1, keepdim=True)", "n", 1)
        root = f"(variance + {config.epsilon:.6g}).sqrt()"
        yield line(f"normalized = (x - mean) / {root}", "n", width)
    else:
        yield line('"""RMS norm: each token\'s vector divided by the root of its mean square."""')
        yield line("mean_square = x.square().mean(-1, keepdim=True)", "n", 1)
        yield line(f"normalized = x / (mean_square + {config.epsilon:.6g}).sqrt()", "n", width)
    yield line(f'return normalized * w["gamma"]{shift}', "n", width)


def feed_forward(plan: Plan) -> Iterator[Line]:
    """The function `feed_forward`, with the model's own activation and its gate if it has one."""
    config, line = plan.config, inside("feed_forward")
    within, activated = "feed_forward.", ACTIVATION[config.activation][1]
    yield Line("def feed_forward(x, w):", None, "feed_forward")
    yield line('"""Each token\'s vector goes through two linear maps by itself."""')
    if config.is_gated:
        yield line(f"gate = {linear(plan, 'x', 'gate', within)}", "n", config.d_mlp)
        yield line(f"up = {linear(plan, 'x', 'w_in', within)}", "n", config.d_mlp)
        yield line(f"hidden = {activated.format('gate')} * up", "n", config.d_mlp)
    else:
        yield line(f"hidden = {linear(plan, 'x', 'w_in', within)}", "n", config.d_mlp)
        yield line(f"hidden = {activated.format('hidden')}", "n", config.d_mlp)
    yield line(f"return {linear(plan, 'hidden', 'w_out', within)}", "n", config.d_model)


def layer(plan: Plan, stack: Stack) -> Iterator[Line]:
    """The function of one layer: `layer`, or one for each of two stacks."""
    name, reads = ("layer", "x, w") if not plan.reads_two else (f"{stack}_layer", "x, w")
    if plan.reads_two and stack == "decoder":
        reads = "x, memory, w"
    reads += ", window" * bool(plan.config.window)
    yield Line(f"def {name}({reads}):")
    yield Line('    """Each sub-layer adds what it computes to the residual stream x."""')
    length: Length = "n" if not plan.reads_two else "source" if stack == "encoder" else "target"
    steps = list(_sub_layers(plan, stack))
    yield from _parallel(plan, steps) if plan.config.parallel else _in_turn(plan, steps, length)


SubLayer = tuple[Part, str, str, str]  # its block, its norm, its result's name, and the call


def _sub_layers(plan: Plan, stack: Stack) -> Iterator[SubLayer]:
    """The sub-layers in order; {} is what each one reads."""
    if not plan.reads_two:
        window = ", window" * bool(plan.config.window)
        own = f'attention({{}}, part(w, "self_attention"){window})'
        yield "attention", "self_norm", "attended", own
    else:
        causal = ", causal=True" if stack == "decoder" else ""
        own = 'attention({0}, {0}, part(w, "self_attention")' + f"{causal})"
        yield "attention", "self_norm", "attended", own
    if plan.reads_two and stack == "decoder":
        cross = 'attention({}, memory, part(w, "cross_attention"))'
        yield "cross", "cross_norm", "looked_up", cross
    if plan.config.d_mlp:
        own = 'feed_forward({}, part(w, "feed_forward"))'
        yield "feed_forward", "feed_forward_norm", "computed", own


def _in_turn(plan: Plan, steps: list[SubLayer], length: Length) -> Iterator[Line]:
    """Sub-layer after sub-layer, with the norm before each (pre-norm) or after its sum (post-norm)."""
    size = (length, plan.config.d_model)
    pre = plan.config.norm_place == "pre"
    for number, (part, norm_name, result, call) in enumerate(steps):
        last = number == len(steps) - 1
        if pre:
            yield inside("norm")(f'normed = norm(x, part(w, "{norm_name}"))', *size)
        yield inside(part)(f"{result} = {call.format('normed' if pre else 'x')}", *size)
        ends = "return" if last and pre else "x ="
        yield inside("add")(f"{ends} x + {result}", *size)
        if not pre:
            ends = "return" if last else "x ="
            yield inside("norm")(f'{ends} norm(x, part(w, "{norm_name}"))', *size)


def _parallel(plan: Plan, steps: list[SubLayer]) -> Iterator[Line]:
    """All sub-layers read the same x, and one sum takes up their results."""
    size = ("n", plan.config.d_model)
    for number, (part, norm_name, result, call) in enumerate(steps):
        if number == 0 or not plan.config.shared_norm:
            yield inside("norm")(f'normed = norm(x, part(w, "{norm_name}"))', *size)
        yield inside(part)(f"{result} = {call.format('normed')}", *size)
    yield inside("add")(" + ".join(["return x", *(step[2] for step in steps)]), *size)
