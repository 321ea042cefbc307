"""Receives the wheel of one requirement in a process of its own, by the finder and session of pip.

So the index, proxy, certificates and passwords of the settings of pip count. Unlike `pip download` it goes on
where an earlier one stopped. It imports nothing of this project.

`python -P wheel_process.py REQUIREMENT FILE` appends to the file, and prints the size of the whole.
"""

import sys
import time
from pathlib import Path
from typing import Any

OTHER_PIP = 3  # the exit status where this pip is made in another way
RETRIES, SECONDS_BETWEEN = 5, 1.0  # where a connection dies and no new byte comes
PIECE = 2**14  # bytes that are lost at most where it is ended
PARTIAL, BEYOND = (
    206,
    416,
)  # an answer that begins where it was asked to; there is nothing to begin at


def main(requirement: str, file: Path) -> None:
    """Receives the wheel. Ends with a message where there is none, or where the connection stays dead."""
    try:
        from pip._internal.commands import create_command
        from pip._vendor.packaging.specifiers import SpecifierSet
        from pip._vendor.requests.exceptions import RequestException

        command: Any = create_command("download")
        options, _ = command.parse_args(["--only-binary=:all:", "--no-cache-dir", requirement])
        with command.main_context():
            session = command.get_default_session(options)
            finder = command._build_package_finder(options, session)
            name, _, version = requirement.partition("==")
            best = finder.find_best_candidate(name, SpecifierSet(f"=={version}")).best_candidate
            if best is None:
                sys.exit(f"No wheel of {requirement} was found.")
            _receive_all(session, best.link.url_without_fragment, file, RequestException)
    except (ImportError, AttributeError, TypeError) as error:
        print(repr(error), file=sys.stderr)
        sys.exit(OTHER_PIP)


def _receive_all(session: Any, url: str, file: Path, broken: type[OSError]) -> None:
    """Goes on as long as new bytes come. broken: what a dead connection raises."""
    failures, size = 0, -1
    file.touch()
    while (before := file.stat().st_size) != size:
        try:
            size = _receive(session, url, file)
        except broken as error:
            failures = 0 if file.stat().st_size > before else failures + 1
            if failures > RETRIES or getattr(error, "response", None) is not None:
                sys.exit(f"{url} could not be received: {error}")
            time.sleep(SECONDS_BETWEEN)


def _receive(session: Any, url: str, file: Path) -> int:
    """Appends what one answer brings. Returns the size of the whole."""
    here = file.stat().st_size
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={here}-"} if here else {})
    with session.get(url, headers=headers, stream=True) as answer, file.open("r+b") as opened:
        if answer.status_code == BEYOND:
            _, _, whole = answer.headers["Content-Range"].rpartition("/")
            opened.truncate(here if here == int(whole) else 0)
            return int(whole)
        answer.raise_for_status()
        going_on = answer.status_code == PARTIAL
        opened.seek(here if going_on else 0)  # else the whole file comes
        opened.truncate()
        size = int(answer.headers["Content-Length"]) + (here if going_on else 0)
        print(size, flush=True)
        for piece in answer.iter_content(PIECE):
            opened.write(piece)
            opened.flush()
        return size


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
