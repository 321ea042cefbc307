"""Whether Hugging Face's library is installed. It is not imported: that takes seconds."""

from importlib.util import find_spec


def has_library() -> bool:
    """Most models of the hub run in it."""
    return find_spec("transformers") is not None
