"""Operations of PyTorch by what they do to the numbers of a tensor."""

# Move, repeat or leave out cells.
LAYOUT = frozenset({
    "T", "broadcast_to", "chunk", "contiguous", "expand", "expand_as", "flatten", "flip", "index_select",
    "__getitem__", "mT", "moveaxis", "movedim", "narrow", "permute", "repeat", "repeat_interleave", "reshape",
    "reshape_as", "roll", "select", "split", "squeeze", "swapaxes", "swapdims", "t", "tensor_split", "tile",
    "transpose", "unbind", "unflatten", "unsqueeze", "view", "view_as",
})  # fmt: skip
CASTS = frozenset({
    "alias", "bfloat16", "clone", "cpu", "cuda", "detach", "double", "float", "half", "to", "type", "type_as",
})  # fmt: skip
DROPOUTS = frozenset({
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
    "feature_dropout",
})  # fmt: skip
KEEPING = LAYOUT | CASTS | DROPOUTS
PRODUCTS = frozenset({"__matmul__", "__rmatmul__", "baddbmm", "bmm", "einsum", "matmul", "mm"})
SOFTMAX = frozenset({"_safe_softmax", "_softmax", "softmax"})
FACTORS = frozenset({"div", "divide", "mul", "multiply", "true_divide"})
TERMS = {"add": 1.0, "sub": -1.0, "subtract": -1.0}  # and their sign
MASKING = frozenset({"__setitem__", "masked_fill", "where"})
JOINING = frozenset({"cat", "concat", "concatenate"})
STACKING = frozenset({"column_stack", "dstack", "hstack", "row_stack", "stack", "vstack"})
WRITING = frozenset({"__setitem__", "copy", "index_copy", "index_put", "scatter", "slice_scatter"})
REDUCING = frozenset({"amax", "amin", "max", "mean", "median", "min", "std", "sum", "var"})
LARGER = frozenset({"max", "maximum"})
BETWEEN = KEEPING | FACTORS | MASKING | JOINING | LARGER | {*TERMS, "tanh"}  # scores and softmax
AFTER = KEEPING | MASKING | {"mul", "nan_to_num"}  # the softmax, before the values
FOLLOWED = BETWEEN | AFTER | PRODUCTS | SOFTMAX | {"amax", "exp", "sum"}
