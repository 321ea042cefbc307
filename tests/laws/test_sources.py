"""What no source of the app may do: open a pickle, run a model's own code, run text, hold a secret.

The checker reads sources and runs nothing, so that each rule is also tried on a planted line.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases import cases

REPOSITORY = Path(__file__).resolve().parents[2]
RUN_BY_THE_APP = ("app.py", "pages", "viz", "model", "deploy")
PICKLING = {"pickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
FORBIDDEN_CALLS = {
    "torch.load": "opens a pickle",
    "torch.save": "writes a pickle",
    "read_pickle": "opens a pickle",
    "to_pickle": "writes a pickle",
    "st.cache_data": "pickles what it keeps",
    "hub.load": "runs code from elsewhere",
    "os.system": "runs a shell",
    "eval": "runs text",
    "exec": "runs text",
}
MUST_BE = {"trust_remote_code": False, "allow_pickle": False, "shell": False}
SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{36}"
    r"|\bhf_[A-Za-z0-9]{30,}"
    r"|\b(?:pypi|npm|glpat|sk|xox[abpr])[-_][A-Za-z0-9_-]{24,}"
    r"|(?i:password|secret|token|api_key)[\"']?\s*[:=]\s*[\"'](?=[A-Za-z+/_-]*\d)[A-Za-z0-9+/_-]{16,}[\"']"
    r"|://[^/\s:@{}$<]+:[^/\s:@{}$<]{6,}@"
)


def wrongs(source: str) -> Iterator[str]:
    """One line for each thing in a Python source that the app may not do."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            asked = [node.module or ""] if isinstance(node, ast.ImportFrom) else names
            yield from (f"{name} pickles" for name in asked if name.split(".")[0] in PICKLING)
        elif isinstance(node, ast.Attribute) and ast.unparse(node) == "st.cache_data":
            yield f"st.cache_data {FORBIDDEN_CALLS['st.cache_data']}"
        elif isinstance(node, ast.Call):
            yield from wrong_calls(node)


def wrong_calls(call: ast.Call) -> Iterator[str]:
    name = ast.unparse(call.func)
    for forbidden, why in FORBIDDEN_CALLS.items():
        bare = "." not in forbidden and forbidden in {"eval", "exec"}
        if name == forbidden or (not bare and name.endswith(f".{forbidden}")):
            yield f"{name} {why}"
    given = {word.arg: ast.unparse(word.value) for word in call.keywords if word.arg}
    for word, value in MUST_BE.items():
        if given.get(word, str(value)) != str(value):
            yield f"{name} has {word}={given[word]}"
    if name.endswith(".from_pretrained") and not name.endswith("Embedding.from_pretrained"):
        if "trust_remote_code" not in given:
            yield f"{name} does not forbid a model's own code"
        weights = not name.endswith(("AutoConfig.from_pretrained", "AutoTokenizer.from_pretrained"))
        if weights and given.get("use_safetensors") != "True":
            yield f"{name} may open a pickle of weights"


def tracked(*places: str) -> list[Path]:
    """The files of the repository that git knows or would add, under these places."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *places]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True).stdout
    files = [REPOSITORY / name for name in listed.decode().split("\0") if name]
    return [file for file in files if file.is_file()]


def test_the_app_opens_no_pickle_and_runs_no_text() -> None:
    sources = [file for file in tracked(*RUN_BY_THE_APP) if file.suffix == ".py"]
    assert len(sources) > 200
    found = [
        f"{file.relative_to(REPOSITORY)}: {wrong}"
        for file in sources
        for wrong in wrongs(file.read_text(encoding="utf-8"))
    ]
    # Ray reads its messages within a cluster by pickle anyway; its token keeps strangers out.
    assert found == ["model/serving/cluster/messages.py: pickle pickles"]


def test_no_file_holds_a_secret() -> None:
    texts = [file for file in tracked() if file.stat().st_size < 1_000_000]
    assert len(texts) > 300
    found = [
        f"{file.relative_to(REPOSITORY)}: {match.group()[:12]}…"
        for file in texts
        for match in SECRETS.finditer(file.read_bytes().decode("utf-8", "replace"))
    ]
    assert found == []


def test_no_weights_are_shipped_as_a_pickle() -> None:
    pickles = {".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".npy"}
    assert [file for file in tracked() if file.suffix in pickles] == []


@cases("planted", [
    "import pickle", "from joblib import load", "torch.load(file, weights_only=True)",
    "pd.read_pickle(file)", "np.load(file, allow_pickle=True)",
    "AutoTokenizer.from_pretrained(folder)",
    "AutoConfig.from_pretrained(folder, trust_remote_code=trusted)",
    "kinds[shape].from_pretrained(folder, trust_remote_code=False)", "eval(text)",
    "subprocess.run(line, shell=True)", "@st.cache_data\ndef kept(): ...",
])  # fmt: skip
def test_a_planted_line_is_found(planted) -> None:
    assert len(list(wrongs(planted))) == 1


@cases("honest", [
    "import json, safetensors", "module.eval()", "nn.Embedding.from_pretrained(table)",
    "AutoConfig.from_pretrained(folder, trust_remote_code=False)",
    "kind.from_pretrained(folder, trust_remote_code=False, use_safetensors=True)",
    "json.load(file)",
])  # fmt: skip
def test_an_honest_line_passes(honest) -> None:
    assert list(wrongs(honest)) == []


@pytest.mark.parametrize(
    "parts",
    [
        ("-----BEGIN RSA ", "PRIVATE KEY-----"),
        ("AKIA", "ABCDEFGHIJKLMNOP"),
        ("hf_", "a" * 34),
        ("api_key", " = '0123456789abcdef01234567'"),
        ("https://user:", "longpassword@host/path"),
    ],
    ids=lambda parts: parts[0],
)
def test_a_planted_secret_is_found(parts: tuple[str, str]) -> None:
    assert SECRETS.search("".join(parts))
