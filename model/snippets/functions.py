"""The stages of attention by PyTorch's own functions and modules."""

import math

from model.snippets.loops import written
from model.snippets.plain import SINK, drop, forbidden, mask_words, repeat, with_sinks
from model.snippets.snippet import Facts, Line, Snippet, Stage, shape

_FUNCTIONAL = Line("import torch.nn.functional as F")
_INSIDE = "So nn.MultiheadAttention computes it where it hands out its weights."
_KERNEL = "F.scaled_dot_product_attention keeps no scores: it computes them in blocks."


def scores(facts: Facts) -> Snippet:
    line = Line("scores = torch.bmm(q, k.transpose(1, 2))", facts.all_cells)
    remark = f"{_INSIDE} {_KERNEL}"
    lines = (*repeat(facts, "k"), line)
    return Snippet(lines, ("q", "k"), "scores[@head@, @query@, @key@]", remark=remark)


def scaled(facts: Facts) -> Snippet:
    line = Line(f"scaled = {_scaled(facts)}", facts.all_cells)
    lines = (*repeat(facts, "k"), line)
    remark = f"{_INSIDE} The factor is applied to q, which is smaller than the scores."
    return Snippet(lines, ("q", "k"), "scaled[@head@, @query@, @key@]", remark=remark)


def _scaled(facts: Facts) -> str:
    return f"torch.bmm(q{facts.scaling}, k.transpose(1, 2))"


def capped(facts: Facts) -> Snippet:
    line = Line("capped = scaled", "not capped")
    if facts.cap is not None:
        line = Line(f"capped = {facts.cap!r} * torch.tanh(scaled / {facts.cap!r})", facts.all_cells)
    after = facts.steps_before("capped")[1:]
    return Snippet((line,), ("scaled",), "capped[@head@, @query@, @key@]", after, _NO_CAP)


def biased(facts: Facts) -> Snippet:
    read, after = facts.before("biased"), facts.steps_before("biased")[1:]
    result = "biased[@head@, @query@, @key@]"
    if not facts.has_bias:
        return Snippet((Line(f"biased = {read}", "no bias"),), (read,), result, after)
    line = Line(f"biased = torch.add({read}, bias)", facts.all_cells)
    remark = "F.scaled_dot_product_attention takes a bias as its attn_mask, in which −inf masks."
    return Snippet((line,), (read, "bias"), result, after, remark)


def _masked_later(facts: Facts) -> Snippet:
    """The mask over scores that were capped or have a bias."""
    read, after = facts.before("masked"), facts.steps_before("masked")[1:]
    result = "masked[@head@, @query@, @key@]"
    if facts.mask == "none":
        return Snippet((Line(f"masked = {read}", "no key is masked"),), (read,), result, after)
    lines, name = forbidden(facts)
    line = Line(f"masked = torch.where({name}, {facts.fill}, {read})", facts.all_cells)
    return Snippet((*lines, line), (read, *_mask(facts)), result, after, mask_words(facts))


def _weights_later(facts: Facts) -> Snippet:
    """The softmax of scores that were capped or have a bias, or of which a sink has a part."""
    read, after = facts.before_softmax, facts.steps_before("weights")[1:]
    result = "weights[@head@, @query@, @key@]"
    if facts.has_sinks:
        lines = with_sinks(facts, read, "F.softmax(rows, dim=-1)")
        return Snippet((_FUNCTIONAL, *lines), (read, "sinks"), result, after, SINK)
    zero = ".nan_to_num()" if facts.empty_rows else ""
    line = Line(f"weights = F.softmax({read}, dim=-1){zero}", facts.all_cells)
    return Snippet((_FUNCTIONAL, line), (read,), result, after)


_NO_CAP = (
    "F.scaled_dot_product_attention has no cap, so a model that caps computes its scores itself."
)


def masked(facts: Facts) -> Snippet:
    if facts.before("masked") != "scaled":
        return _masked_later(facts)
    result = "masked[@head@, @query@, @key@]"
    if facts.mask == "none":
        line = Line(f"masked = {_scaled(facts)}", "no key is masked")
        return Snippet((*repeat(facts, "k"), line), ("q", "k"), result, remark=_INSIDE)
    lines, name = forbidden(facts)
    given = ("q", "k", *_mask(facts))
    lines = (*repeat(facts, "k"), *lines)
    if math.isfinite(facts.mask_value):
        scores = Line(f"scaled = {_scaled(facts)}", facts.all_cells)
        line = Line(f"masked = torch.where({name}, {facts.fill}, scaled)", facts.all_cells)
        return Snippet((*lines, scores, line), given, result, remark=mask_words(facts))
    sizes = ", ".join(map(str, facts.mask_shape))
    added = Line(f"added = torch.zeros({sizes}).masked_fill({name}, {facts.fill})")
    product = f"q{facts.scaling}, k.transpose(1, 2)"
    line = Line(f"masked = torch.baddbmm(added, {product})", facts.all_cells)
    remark = f"{_INSIDE} {mask_words(facts)}".strip()
    return Snippet((*lines, added, line), given, result, remark=remark)


def _is_the_modules(facts: Facts) -> bool:
    """Whether nn.MultiheadAttention can be told to do the same."""
    plain_heads = facts.shared == 1 and facts.width == facts.value_width
    return plain_heads and facts.divides_by_root and not _fills(facts)


def _fills(facts: Facts) -> bool:
    """Whether a masked score becomes a number."""
    return facts.mask != "none" and math.isfinite(facts.mask_value)


def weights(facts: Facts) -> Snippet:
    if facts.extended or facts.before("masked") != "scaled":
        return _weights_later(facts)
    result = "weights[@head@, @query@, @key@]"
    if _fills(facts):
        line = Line("weights = F.softmax(masked, dim=-1)", facts.all_cells)
        remark = (
            "PyTorch's attention masks with minus infinity only, so this takes the softmax alone."
        )
        return Snippet((_FUNCTIONAL, line), ("masked",), result, ("masked",), remark)
    by_module = _is_the_modules(facts)
    lines, remark = _module(facts) if by_module else _of_identity(facts)
    given = ("q", "k", "v") if by_module else ("q", "k")
    return Snippet(lines, (*given, *_mask(facts)), result, (), remark)


def _mask(facts: Facts) -> tuple[str, ...]:
    return ("mask",) if facts.mask == "own" else ()


def _module(facts: Facts) -> tuple[tuple[Line, ...], str]:
    """nn.MultiheadAttention with identities for its maps."""
    wide = facts.heads * facts.width
    making, name = forbidden(facts)
    mask = f", attn_mask={name}" if facts.mask != "none" else ""
    zero = ".nan_to_num()" if facts.empty_rows else ""
    lines = (
        *written(
            f"module = torch.nn.MultiheadAttention({wide}, {facts.heads}, bias=False)",
            "module.requires_grad_(False)",
            f"module.in_proj_weight.data = torch.eye({wide}).repeat(3, 1)",
        ),
        Line("joined = [x.transpose(0, 1).flatten(1) for x in (q, k, v)]", "heads side by side"),
        *making,
        Line(f"_, weights = module(*joined{mask}, average_attn_weights=False)", facts.all_cells),
    )
    if zero:
        lines = (*lines, Line(f"weights = weights{zero}", "rows without a key: 0"))
    remark = (
        "Its maps to queries, keys and values are identities here: q, k and v are mapped already."
    )
    return lines, f"{remark} {mask_words(facts)}".strip()


def _of_identity(facts: Facts) -> tuple[tuple[Line, ...], str]:
    """Values that are the identity's rows: then each output is its row of weights."""
    identity = f"one_hot = torch.eye({facts.keys}).expand({facts.heads}, -1, -1)"
    sizes = shape(facts.heads, facts.keys, facts.keys)
    lines = (_FUNCTIONAL, *repeat(facts, "k"), Line(identity, sizes), *_kernel(facts, "one_hot"))
    remark = "The value of each key is one-hot here, so the output of a query is its weights."
    return lines, f"{remark} {mask_words(facts)}".strip()


def _kernel(facts: Facts, value: str) -> tuple[Line, ...]:
    """F.scaled_dot_product_attention."""
    name = "weights" if value == "one_hot" else "output"
    scale = "" if facts.divides_by_root else f", scale={facts.scale!r}"
    making: tuple[Line, ...] = ()
    mask = ", attn_mask=mask" if facts.mask == "own" else ""
    if facts.mask == "future" and facts.scale > 0:
        mask = ", is_causal=True"
    elif facts.mask == "future":  # the kernel multiplies its own look-ahead mask by the scale
        making, mask = forbidden(facts)[0], ", attn_mask=~future"
    columns = facts.keys if value == "one_hot" else facts.value_width
    made = shape(facts.heads, facts.queries, columns)
    call = f"{name} = F.scaled_dot_product_attention(q, k, {value}{mask}{scale})"
    zero = Line(f"{name} = {name}.nan_to_num()", "rows without a key: 0")
    return (*making, Line(call, made), *((zero,) if facts.empty_rows else ()))


def output(facts: Facts) -> Snippet:
    result = "output[@head@, @query@, @dimension@]"
    later = facts.extended or facts.before("masked") != "scaled"
    if _fills(facts) or facts.dropout or later:
        dropping, name = drop(facts)
        line = Line(
            f"output = torch.bmm({name}, v)",
            shape(facts.heads, facts.queries, facts.value_width),
        )
        lines = (*dropping, *repeat(facts, "v"), line)
        why = (
            "F.scaled_dot_product_attention draws numbers of its own for dropout."
            if facts.dropout
            else "F.scaled_dot_product_attention masks with minus infinity only."
        )
        after: tuple[Stage, ...] = ("masked", "weights") if _fills(facts) else ("weights",)
        if later:
            after, why = (*facts.steps_before("weights")[1:], "weights"), ""
        return Snippet(lines, ("weights", "v"), result, after, why)
    lines = (
        _FUNCTIONAL,
        *repeat(facts, "k"),
        *repeat(facts, "v"),
        *_kernel(facts, "v"),
    )
    return Snippet(lines, ("q", "k", "v", *_mask(facts)), result, (), mask_words(facts))
