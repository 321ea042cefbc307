"""The shapes in the annotations of these modules are checked at every call that a test makes.

To be imported before them. Their annotations name jaxtyping's types, which the product never imports.
Leading axes that may be any are `*_`, never `...`: Ruff takes "... #query #key" for Python with a comment,
and drops the quotes. What cannot be read any more, jaxtyping does not check.
"""

import builtins
import sys

import jaxtyping

MODULES = ("model.nn.attention", "model.nn.masks", "model.arithmetic.attention")

for name in ("Bool", "Float", "Int"):
    setattr(builtins, name, getattr(jaxtyping, name))
if early := sys.modules.keys() & set(MODULES):
    raise ImportError(f"Imported before their shapes could be checked: {', '.join(early)}.")
jaxtyping.install_import_hook(MODULES, "beartype.beartype")
