"""A release that was paid and signed, with a ledger and keys, to be tampered with."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.cli.table_case import build, run


@dataclass(frozen=True)
class SignedRelease:
    """The folder of a release, whoever paid and signed for it, and another release of the same ledger."""

    folder: Path
    ledger: Path
    private: Path
    public: Path
    other: Path

    def copied(self, to: Path) -> "SignedRelease":
        """The same with a folder of its own, which may be changed."""
        shutil.copytree(self.folder, to)
        return SignedRelease(to, self.ledger, self.private, self.public, self.other)


def build_signed(folder: Path) -> SignedRelease:
    """The case in a folder."""
    case = build(folder)
    private, public = folder / "office.key", folder / "office.pub"
    assert run("certificate", "keys", folder / "office")[0] == 0
    case.change("epsilon = 0.5", "epsilon = 0.25")
    for name in ("out", "other"):
        assert run("release", case.spec, "-o", folder / name)[0] == 0
        words = ("sign", folder / name, "--key", private, "--name", "Privacy office")
        assert run("certificate", *words)[0] == 0
    return SignedRelease(folder / "out", case.ledger, private, public, folder / "other")
