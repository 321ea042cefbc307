"""A cluster that cannot be had is told in a sentence, before anything is loaded."""

import socket

import pytest

from model.system.cluster import prepare


def test_without_ray_a_sentence_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.system.cluster.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install -r requirements-cluster\.txt"):
        prepare("auto")


def test_where_nobody_answers_ray_does_not_try_for_minutes() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        address = "{}:{}".format(*taken.getsockname())
        with pytest.raises(ValueError, match=rf"No cluster answers at {address} \([^\[]+\)\.$"):
            prepare(address)
