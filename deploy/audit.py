"""`make audit` asks the public list of known weaknesses about every package the app installs (pip-audit).

Ends with 0 where every package was looked up and none has a known weakness, with 1 where one has, and with
2 where packages could not be looked up: pip-audit alone calls that "no known vulnerabilities".
"""

import json
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any


def report(said: list[dict[str, Any]]) -> tuple[int, str]:
    """The exit status and the sentences for pip-audit's list of packages."""
    weak = [
        f"{package['name']} {package['version']}: {weakness['id']}, mended in "
        f"{', '.join(weakness['fix_versions']) or 'no version yet'}"
        for package in said
        for weakness in package.get("vulns", [])
    ]
    unasked = [  # a build of somebody's own, as 2.13.0+cpu, is on no list under that number
        package["name"]
        for package in said
        if "skip_reason" in package and "+" not in package["skip_reason"]
    ]
    lines = [*weak, f"{len(said) - len(unasked)} of {len(said)} packages were looked up."]
    if unasked:
        lines.append(f"Nothing is known about: {', '.join(unasked)}.")
    if unasked or not said:
        lines.append("The list of weaknesses may be out of reach from here: this is no all-clear.")
    return (1 if weak else 2 if unasked or not said else 0), "\n".join(lines)


def main(pip_audit: str) -> int:
    with tempfile.TemporaryDirectory() as place:
        found = Path(place) / "found.json"
        command = [pip_audit, "--path", sysconfig.get_path("purelib"), "--timeout", "20"]
        command += ["--progress-spinner", "off", "--format", "json", "--output", str(found)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        said = json.loads(found.read_text())["dependencies"] if found.exists() else []
    if not said:
        print(*ran.stderr.strip().splitlines()[-1:])
    status, sentences = report(said)
    print(sentences)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
