"""`sourdine certificate keys`: a pair of keys, one to sign with and one to hand out."""

from pathlib import Path
from typing import Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.heartbeat import ask_passphrase
from sourdine.cli.shared.parse import AsJson
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter


def keys(
    name: Annotated[Path, typer.Argument(help="What to call them: office makes office.key and office.pub.")],
    *,
    passphrase: Annotated[
        bool, typer.Option("--passphrase", help="Ask for a passphrase, without which the key does not sign.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a pair of keys: NAME.key signs and is yours alone, NAME.pub checks and is for everybody.

    Whoever gets NAME.key can sign in your name: keep it out of folders that are handed out, and keep a copy
    in a safe place. Give NAME.pub to whoever shall check, by another way than the releases, and let them
    compare its id with you. Nothing is written over; a lost NAME.pub is made again from NAME.key.

    Example: sourdine certificate keys office
    """
    from sourdine.accounting.certificate import CERTIFICATE, SigningKey
    from sourdine.accounting.certificate.keys import PRIVATE, PUBLIC

    base = name.with_suffix("") if name.suffix in (PRIVATE, PUBLIC) else name
    private, public = (base.with_name(base.name + ending) for ending in (PRIVATE, PUBLIC))
    show.check_place(private)
    if (private.parent / CERTIFICATE).exists():
        raise InvalidParameter(
            f"{private.parent} holds a release, which is handed out, and a private key never is. Name "
            "another folder."
        )
    if public.exists() and not private.exists():
        raise InvalidParameter(f"{public} exists already, without {private.name}. Choose another name.")
    show.refuse_existing([public], "Use it, or choose another name.")
    if again := private.exists():
        pair = SigningKey.read(private, ask_passphrase)
    else:
        secret = _new_passphrase() if passphrase else None
        pair = SigningKey.generate(base.name)
        pair.write(private, secret)
    disk.write_whole(public, pair.public.pem(), over=False)
    if as_json:
        show.document({"private": str(private), "public": str(public), "id": pair.public.id})
        return
    show.line(f"{private}  {'was there already' if again else 'signs'}: yours alone, never hand it out.")
    show.line(f"{public}  checks: give it to everybody who shall check what you sign.")
    show.line(f"Its id, to compare by telephone: {grouped(pair.public.id)}")


def grouped(text: str) -> str:
    """An id in groups of four, to be read aloud."""
    return " ".join(text[k : k + 4] for k in range(0, len(text), 4))


def _new_passphrase() -> str:
    passphrase = ask_passphrase(twice=True)
    if not passphrase.strip():
        raise InvalidParameter("A passphrase of nothing protects nothing. Give some words.")
    return passphrase
