"""The recipes by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from model.training import house, induction, recurrent, stories, translate
from model.training.recipe import Recipe

RECIPES: Mapping[str, Callable[[], Recipe]] = MappingProxyType(
    {
        "induction": induction.recipe,
        "stories": stories.recipe,
        "translate-en-fr": translate.recipe,
        "house-gpt": house.recipe,
        "recurrent": recurrent.recipe,
    }
)
