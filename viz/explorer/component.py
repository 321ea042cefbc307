"""The style that the app's own components share."""

from pathlib import Path


def component_style() -> str:
    """The style sheet that each component's own one follows."""
    return Path(__file__).with_name("component.css").read_text(encoding="utf-8")
