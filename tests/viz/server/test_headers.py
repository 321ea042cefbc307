"""Who may show the app in a frame, as browsers read it."""

import pytest

from viz.server.security import browser_rules

POLICY, OLDER = "content-security-policy", "x-frame-options"


@pytest.mark.parametrize(("setting", "rule", "older"), [
    ("", "'none'", "DENY"),
    ("'self'", "'self'", "SAMEORIGIN"),
    ("https://a.example 'self'", "https://a.example 'self'", None),
    ("https://*.a.example:8443", "https://*.a.example:8443", None),
])  # fmt: skip
def test_only_the_named_origins_may_frame_the_app(
    setting: str, rule: str, older: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = browser_rules(encrypted=False)
    monkeypatch.setenv("ATTENTION_FRAME_ANCESTORS", setting)
    rules = browser_rules(encrypted=False)
    assert rules[POLICY].split("; ")[-1] == f"frame-ancestors {rule}"
    assert rules.get(OLDER) == older
    same = {name: value for name, value in rules.items() if name not in (POLICY, OLDER)}
    assert same == {name: value for name, value in nobody.items() if name not in (POLICY, OLDER)}
    assert rules[POLICY].split("; ")[:-1] == nobody[POLICY].split("; ")[:-1]
