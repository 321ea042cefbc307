"""What stands out: each finding has a line with its pictures, its number and its check."""

import re
from collections.abc import Iterator
from threading import Event

import pytest

from model.analysis import scan
from tests.pages.reading import own, visit
from viz.shell import background
from viz.views.all_heads import remarkable

TEXT = "Tom Hill saw a red ball. Anna gave the ball to Tom"


def test_each_finding_has_its_pictures_its_number_and_a_link() -> None:
    app = visit("stands_out", model="stories", text=TEXT)
    (listed,) = [one.proto.body for one in app.get("html") if 'class="findings"' in one.proto.body]
    lines = listed.split("<li>")[1:]
    model = own("stories")
    findings = scan(model, model.trace(TEXT, record="full"))
    assert len(lines) == len(findings) > 5
    for line, finding in zip(lines, findings, strict=True):
        assert line.count("<img") == 1
        assert line.count('class="map"') == ("place=" in finding.link)
        assert f"among {len(finding.among):,} " in line
        (number,) = re.findall(r"<b>([^<]+)</b>", line)
        shown = float(number.replace("−", "-").replace(",", ""))
        assert abs(shown - finding.among[finding.at]) <= 0.5


def test_the_maps_of_all_heads_stand_there_until_the_scan_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_go_on, scans = Event(), remarkable._work

    def held(*given: object) -> Iterator[object]:
        assert may_go_on.wait(60)
        yield from scans(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(remarkable, "_work", held)
    monkeypatch.setattr(background, "AT_FIRST", 0.0)
    app = visit("stands_out", model="stories", text="Anna gave the ball to Tom Hill")
    try:
        (shown,) = [one.proto.body for one in app.get("html") if 'class="sought"' in one.proto.body]
    finally:
        may_go_on.set()
    heads = sum(layer.heads for layer in own("stories").module.attentions())
    assert shown.count('class="map"') == heads
    assert ":nth-child(n + 1) { opacity" in shown  # none has been left out so far
