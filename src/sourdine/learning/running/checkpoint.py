"""A run on disk, so that one that was killed goes on where it was saved, paid once.

A checkpoint holds the model, the optimizer, how many batches were drawn and the receipt. It holds no noise,
no key and no order of the data: what comes after a resumption is drawn afresh. Steps that were taken after
the last checkpoint are taken again with other noise; nobody saw what they gave, so they cost nothing more.

Where noise is correlated, later steps need some of the noise of earlier ones. That lies in another file
beside the checkpoint, `NAME.noise-TOKEN`, which is as secret as the data, and is deleted when the run is
over.
"""

import contextlib
import glob
import json
import pickle
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from sourdine.accounting.ledger import Ledger, Receipt
from sourdine.core import check
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter, LedgerError
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.core.serialization import decoded, encoded

_FORMAT = 1
_PARAMETERS = {  # what some settings are called in Python; on disk they keep the name they were given first
    "batch": "batch_size",
    "noise": "noise_multiplier",
    "most": "max_batch_size",
    "unit": "units",
}

_UNREADABLE = (
    ArithmeticError,
    EOFError,
    KeyError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
)


@dataclass(frozen=True, kw_only=True)
class State:
    """Where a run stands. `settings` are what its epsilon rests on."""

    settings: dict[str, str]
    receipt: Receipt | None
    secure: bool
    step: int
    parts: dict[str, Any]
    history: tuple[dict[str, Any], ...] = ()
    token: str = ""  # of the file with the noise that is kept between steps

    def on_cpu(self) -> "State":
        """The same, with its tensors in memory: another process may have no such device."""
        return replace(self, parts=tree_map_only(Tensor, Tensor.cpu, self.parts))


class Checkpoint:
    """The file of one run. Only one process may go on with it at a time.

    It is written after each epoch, and after `every` steps where a step can be drawn by itself.
    """

    def __init__(self, path: Path | str, *, every: int | None = None) -> None:
        self.path = Path(path)
        self.every = None if every is None else check.integer("Checkpoint", "every", every, 1, 1 << 40)

    def save(self, state: State, secrets: list[Tensor] | None = None, bits: Bits = SYSTEM) -> None:
        """Put a state in the place of the last; a kill in between leaves one of the two.

        `secrets` is noise that later steps need: it is kept in a file of its own, under a name that was never
        used before and that the state tells.
        """
        token = ""
        if secrets:
            token = bits.words(2).tobytes().hex()
            with disk.whole_file(self._noise_file(token)) as place:
                torch.save({"format": _FORMAT, "token": token, "step": state.step, "noise": secrets}, place)
        content = {
            "format": _FORMAT,
            "settings": state.settings,
            "receipt": None if state.receipt is None else _written(state.receipt),
            "secure": state.secure,
            "step": state.step,
            "parts": state.parts,
            "history": list(state.history),
        } | ({"token": token} if token else {})
        with disk.whole_file(self.path) as place:
            torch.save(content, place)
        for old in self.path.parent.glob(glob.escape(self.path.name) + ".noise-*"):
            if old != self._noise_file(token):
                old.unlink(missing_ok=True)

    def _noise_file(self, token: str) -> Path:
        return self.path.with_name(f"{self.path.name}.noise-{token}")

    def secrets(self, state: State) -> list[Tensor]:
        """The noise that steps after a state need."""
        path = self._noise_file(state.token)
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
            if (content["format"], content["token"], content["step"]) != (_FORMAT, state.token, state.step):
                raise ValueError("of another state")
            return list(content["noise"])
        except _UNREADABLE as problem:
            raise InvalidParameter(
                f"The noise that was kept beside the checkpoint {self.path}, in the file {path.name}, cannot "
                "be read, and later steps take some of it back. Put it there as it was, or move the "
                "checkpoint away to begin anew, which is paid anew."
            ) from problem

    def load(self) -> State | None:
        """The state of a run that was begun, if there is one."""
        if not self.path.exists():
            return None
        try:
            content = torch.load(self.path, map_location="cpu", weights_only=True)
            if content["format"] != _FORMAT:
                raise ValueError("unknown format")
            receipt = content["receipt"]
            return State(
                settings=content["settings"],
                receipt=None if receipt is None else _read(receipt),
                secure=bool(content["secure"]),
                step=int(content["step"]),
                parts=content["parts"],
                history=tuple(content["history"]),
                token=content.get("token", ""),
            )
        except (*_UNREADABLE, InvalidParameter, LedgerError) as problem:
            raise InvalidParameter(
                f"The checkpoint {self.path} cannot be read. It is none, or was cut short. "
                "Move it away to begin anew, which is paid anew."
            ) from problem

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from going on with the same run; a kill lets go."""
        if not self.path.parent.is_dir():
            raise InvalidParameter(
                f"There is no folder {self.path.parent} for the checkpoint. Make it first."
            )
        beside = self.path.with_name(self.path.name + ".lock")
        lock = sqlite3.connect(beside, timeout=0, isolation_level=None)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as problem:
            lock.close()
            raise InvalidParameter(
                f"Another process is training with the checkpoint {self.path}. "
                "Two runs from one payment would cost twice. Wait for it, or take another path."
            ) from problem
        try:
            yield
        finally:
            lock.close()  # the file stays: whoever waits for it would hold one that nobody else finds


def check_same(path: Path, state: State, settings: dict[str, str], ledger: Ledger | None) -> None:
    """Refuse to go on with a run under other settings, or from a ledger that did not pay for it."""
    if differ := sorted(
        name for name in settings | state.settings if settings.get(name) != state.settings.get(name)
    ):
        raise InvalidParameter(
            f"The run in the checkpoint {path} has another {_PARAMETERS.get(differ[0], differ[0])}. "
            "Its epsilon holds for its own settings. Repeat them, or take another path."
        )
    if ledger is None:
        return
    if state.receipt is None or state.receipt.ledger != ledger.terms.identity:
        raise LedgerError(
            f"The run in the checkpoint {path} was not paid from this ledger. "
            "Pass the one that paid, or take another path."
        )
    entry = ledger.entry(state.receipt.number)
    if entry is None or entry.fingerprint != state.receipt.fingerprint:
        raise LedgerError(
            f"The ledger does not hold the payment for the run in the checkpoint {path}. Do not rely on it."
        )


def _written(receipt: Receipt) -> str:
    return json.dumps(encoded(receipt))


def _read(text: str) -> Receipt:
    fields = json.loads(text)
    if "reserve_left" in fields:  # as version 0.1 wrote it
        fields["selection_delta_left"] = fields.pop("reserve_left")
    return decoded(Receipt, fields | {"number": int(fields["number"])}, strict=True)  # it was once a text
