"""The version of the product, as `pyproject.toml` has it."""

VERSION = "0.2.0"
PRODUCT = f"attention-visualizer {VERSION}"
