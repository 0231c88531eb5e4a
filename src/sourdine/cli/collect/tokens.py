"""`sourdine collect token-key` and `issue`: the right to one report, given out blindly."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.collect.serve import Connections, MetricsPort, Proxies, watched_port
from sourdine.cli.shared import show
from sourdine.cli.shared.heartbeat import HEARTBEAT
from sourdine.cli.shared.parse import AsJson, lines_of
from sourdine.core import check
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.lazy import install_line

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey


def token_key(
    output: Annotated[Path, typer.Argument(help="The private key, such as work.tokens.pem.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Make the key of a question's tokens. It stays with the issuer; its public part is announced.

    Example: sourdine collect token-key work.tokens.pem
    """
    from cryptography.hazmat.primitives import serialization

    from sourdine.collector.tokens.blind import new_key, public_text

    show.check_place(output)
    key = new_key()
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        disk.write_whole(output, text, over=False)
    except FileExistsError:
        raise InvalidParameter(
            f"{output} exists already and is not written over. Choose another place."
        ) from None
    if as_json:
        show.document({"key": str(output), "public": public_text(key.public_key())})
        return
    show.line(f"Wrote {output}, for its owner alone.")
    show.line(f"Next: sourdine collect announce SPEC --tokens {output}")


def issue(
    question: Annotated[Path, typer.Argument(help="The announcement, made with --tokens.")],
    *,
    key: Annotated[
        list[Path],
        typer.Option(
            help="The private key that 'token-key' wrote; after a change of keys the earlier ones too."
        ),
    ],
    codes: Annotated[Path, typer.Option(help="One code per line, each for one person that you know.")],
    used: Annotated[Path, typer.Option(help="Where digests of used codes are kept.")] = Path("codes.db"),
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any that is free.")] = 8070,
    origin: Annotated[
        list[str] | None, typer.Option(help="An origin whose pages may ask, such as https://survey.example.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Requests a second from one address. 0: any number.")] = 10.0,
    connections: Connections = 512,
    metrics_port: MetricsPort = None,
    proxy: Proxies = None,
) -> None:
    """Give one token for each code, signed blindly: a spent token cannot be linked to its code.

    Send each person a code over a channel that you trust. Run the issuer apart from shuffler and collector.

    Example: sourdine collect issue work.announcement.json --key work.tokens.pem --codes codes.txt
    """
    try:
        from sourdine.collector.processes import listen, run
    except ImportError as problem:
        raise InvalidParameter(
            f"An issuer needs {problem.name}, which is not installed. "
            f"Install it with: {install_line('collect')}"
        ) from None
    from sourdine.collector.announcement import SignedAnnouncement
    from sourdine.collector.issuer import CodeStore, IssuerSettings, check_codes
    from sourdine.collector.tokens.blind import public_text

    announcement = SignedAnnouncement.read(question).announcement
    private = {public_text(each.public_key()): each for each in map(read_private, key)}
    if set(private) != set(announcement.token_keys):
        raise InvalidParameter(
            f"The keys are not those that {question} announces for tokens. "
            "Give --key for each of its --tokens and --former-tokens, and for no other."
        )
    sockets = [listen(host, check.integer("collect issue", "port", port, 0, 65535))]
    there = CodeStore(used)
    there.add(announcement.fingerprint, check_codes(lines_of(codes)))
    there.close()
    where = f"[{host}]" if ":" in host else host
    show.line(f"Issuing on http://{where}:{sockets[0].getsockname()[1]}")
    sys.stdout.flush()  # whoever waits for this through a pipe waits no longer
    keys = {announcement.fingerprint: [private[each] for each in announcement.token_keys]}
    settings = IssuerSettings(
        used, keys, tuple(origin or ()), rate, connections, watched_port(sockets, metrics_port)
    )
    with HEARTBEAT.quiet():
        run(settings, sockets, proxies=proxy or ())


def read_private(path: Path) -> "RSAPrivateKey":
    """The private key of tokens in a file."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError):
        key = None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise InvalidParameter(
            f"There is no key of tokens in {path}. Make one with 'sourdine collect token-key'."
        )
    return key
