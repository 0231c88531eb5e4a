"""The card of a model: what to tell about it wherever it goes."""

import json
from dataclasses import dataclass

from sourdine.accounting.certificate import Certificate


@dataclass(frozen=True, kw_only=True)
class Card:
    """What to tell about a model: facts, assumptions, limits, and the certificate if it was paid."""

    name: str
    facts: dict[str, str]
    assumptions: tuple[str, ...]
    limits: tuple[str, ...]
    certificate: Certificate | None

    def text(self) -> str:
        """The card as Markdown."""
        rows = [f"| {name} | {value} |" for name, value in self.facts.items()]
        lines = [f"# {self.name}", "", "| | |", "| --- | --- |", *rows, "", "## What the guarantee rests on"]
        lines += [f"- {each}" for each in self.assumptions]
        lines += ["", "## What it does not say"] + [f"- {each}" for each in self.limits]
        if self.certificate is not None:
            lines += ["", "## Certificate", "```json", self.certificate.to_json(), "```"]
        else:
            lines += ["", "No ledger paid for this model, so there is no certificate."]
        return "\n".join(lines) + "\n"

    def to_json(self) -> str:
        """The card for machines."""
        card = {
            "name": self.name,
            "facts": self.facts,
            "assumptions": list(self.assumptions),
            "limits": list(self.limits),
            "certificate": None if self.certificate is None else json.loads(self.certificate.to_json()),
        }
        return json.dumps(card, indent=2)
