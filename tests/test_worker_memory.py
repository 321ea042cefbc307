"""What lets go of memory between two tests leaves no model behind."""

import weakref

from tests import worker_memory
from tests.model.tiny import loaded
from tests.pages.reading import own, visit


def test_a_forgotten_model_is_gone() -> None:
    worker_memory.forget_models()  # what earlier tests still show is another copy
    visit("tokens", model="stories", text="the cat")
    models = [weakref.ref(loaded("gpt")), weakref.ref(own("stories"))]
    assert all(model() is not None for model in models)
    worker_memory.forget_models()
    assert [model() for model in models] == [None, None]
