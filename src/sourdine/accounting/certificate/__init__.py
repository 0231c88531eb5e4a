"""Certificates: what they state, the files beside them, signatures, and how all of it is verified."""

from typing import TYPE_CHECKING

from sourdine.core.files import CERTIFICATE
from sourdine.core.lazy import late

if TYPE_CHECKING:
    from sourdine.accounting.certificate.files import Deviance, Discrepancy, digest
    from sourdine.accounting.certificate.keys import PublicKey, SigningKey
    from sourdine.accounting.certificate.signatures import Signature
    from sourdine.accounting.certificate.statement import Certificate
    from sourdine.accounting.certificate.verification import Verification, verify_release

_HOMES = {
    "files": ("Deviance", "Discrepancy", "digest"),
    "keys": ("PublicKey", "SigningKey"),
    "signatures": ("Signature",),
    "statement": ("Certificate",),
    "verification": ("Verification", "verify_release"),
}
__getattr__ = late(__name__, _HOMES)

__all__ = [
    "CERTIFICATE",
    "Certificate",
    "Deviance",
    "Discrepancy",
    "PublicKey",
    "Signature",
    "SigningKey",
    "Verification",
    "digest",
    "verify_release",
]
