"""`attention-lens class`: the app for one room, at this computer's address in its network."""

import argparse
import io
import os
import socket
import sys
import textwrap
from collections.abc import Callable
from ipaddress import IPv4Address

from model.system.addresses import is_loopback
from model.system.commands import CommandParser
from viz.notation.words import sentences_of

say = sentences_of("command.classroom")

PORT = 8501
_ELSEWHERE = ("198.51.100.1", 9)  # an address for examples: nothing is sent there


def class_parser(program: str, port: Callable[[str], int]) -> CommandParser:
    parser = CommandParser(
        f"{program} class",
        description=say("serves_class_starts"),
    )
    parser.add_argument(
        "--port", type=port, default=PORT, help=say("port_listen_without", port=PORT)
    )
    parser.add_argument(
        "--address",
        help=say("address_computer_several"),
    )
    parser.add_argument("--no-browser", action="store_true", help="open no browser")
    return parser


def serve_class(options: argparse.Namespace) -> None:
    """Serves until a signal ends it. Raises ValueError, with a sentence, where nobody else could reach the
    app, and where the port is taken."""
    address = network_address() if options.address is None else own_address(options.address)
    require_free(address, options.port)
    # Before Streamlit is imported, which reads them: it listens on this address and admits this name alone.
    os.environ["STREAMLIT_SERVER_ADDRESS"] = address
    os.environ["STREAMLIT_SERVER_ALLOWED_HOSTS"] = address
    os.environ["STREAMLIT_BROWSER_SERVER_ADDRESS"] = address
    from viz.server.starting import run_server
    from viz.state.class_views import JOIN, LEAD, class_views
    from viz.state.link import View, opening_link
    from viz.state.link import address as link_to
    from viz.state.navigation import HOME

    code, key = class_views.begin(HOME, opening_link(View()))
    root = f"http://{address}:{options.port}"
    lead = link_to("for_a_class", {"show": "Share", LEAD: f"{code}.{key}"})
    print(
        announcement(
            link_to(f"{root}/", {JOIN: code}), f"{root}/{lead}", coloured=sys.stdout.isatty()
        )
    )
    sys.stdout.flush()
    line = ["--server.port", str(options.port)]
    run_server([*line, "--server.headless", "true"] if options.no_browser else line, lead)


def network_address() -> str:
    """The address that this computer's network knows it by. Raises ValueError where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)  # finds the way, and with it the address that it begins at
            found = str(probe.getsockname()[0])
        except OSError:  # no way leads out; a network without one has names all the same
            found = _address_of_its_name()
    if is_loopback(found) or IPv4Address(found).is_unspecified:
        raise ValueError(
            "This computer has no address in a network, so no class can reach it: join one first."
        )
    return found


def _address_of_its_name() -> str:
    try:
        named = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
    except OSError:
        return "127.0.0.1"
    found = (str(one[4][0]) for one in named)
    return next((one for one in found if not is_loopback(one)), "127.0.0.1")


def own_address(written: str) -> str:
    """An address of this computer that others reach. Raises ValueError for any other."""
    try:
        address = IPv4Address(written)
    except ValueError as error:
        raise ValueError(
            f"--address is {written[:60]!r}; it must be an address such as 192.168.1.20."
        ) from error
    if address.is_loopback or address.is_unspecified:
        raise ValueError(f"{address} is no address that a class can reach.")
    return str(address)


def require_free(address: str, port: int) -> None:
    """Raises ValueError where this computer has no such address, or the port is taken there."""
    with socket.socket() as probe:
        if os.name == "posix":  # on Windows this would take a port from whoever listens there
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise ValueError(
                f"The class cannot be served on {address}, port {port} ({error.strerror}): end what "
                "is there, or name another one with --port or --address."
            ) from error


def announcement(link: str, lead: str, *, coloured: bool) -> str:
    """What the terminal says at the start: where the class is, what that opens to the room, how it ends."""
    from model.system.settings import settings_of

    for_others = settings_of(asked_here=False)
    opened = [
        words
        for is_open, words in (
            (for_others.folders, say("open_models_trace")),
            (for_others.other_models, say("download_any_model")),
        )
        if is_open
    ]
    beyond = (
        say("settings_also", opened=" and ".join(opened)) if opened else say("cannot_open_files")
    )
    said = {
        say("who_reach"): say("everybody_computer_network"),
        "What they see": say("app_work_show_show", beyond=beyond),
        say("lead"): say("alone_whoever_opens", lead=lead),
        "To end it": say("ctrl_c_ends_app"),
        say("stays_blank"): say("firewall_computer_way"),
    }
    code = terminal_code(link, coloured=coloured)
    rows = "".join(_row(name, words) for name, words in said.items())
    return f"\n{_row('Your class opens', link)}\n{code}\n{rows}"


def _row(name: str, words: str) -> str:
    """A name and what is said of it, beside it; an address is never broken."""
    lines = [
        line
        for part in words.splitlines()
        for line in textwrap.wrap(part, 80, break_long_words=False, break_on_hyphens=False)
    ]
    return "".join(
        f"{head:18}{line}\n" for head, line in zip([name, *[""] * len(lines)], lines, strict=False)
    )


def terminal_code(link: str, *, coloured: bool) -> str:
    """The link as a QR code in letters. coloured: dark on light whatever the terminal's colours are."""
    import segno

    written = io.StringIO()
    segno.make(link, error="l", micro=False).terminal(written, compact=True, border=2)
    if not coloured:
        return written.getvalue()
    white_on_black, plain = "\x1b[38;5;231;48;5;16m", "\x1b[0m"  # its blocks are the light places
    return "".join(f"{white_on_black}{row}{plain}\n" for row in written.getvalue().splitlines())
