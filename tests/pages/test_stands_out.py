"""What stands out: each finding has a line with its pictures, its number and its check."""

import re

from model.analysis import scan
from tests.pages.reading import own, visit

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
