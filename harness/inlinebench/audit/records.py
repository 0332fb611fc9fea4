"""What an audit finds out about a problem. The process that audits sends these records to the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Flaw:
    """One thing that an audit found."""

    name: str
    """Its short name, such as "constant output"."""
    fault: bool
    """Whether it makes the problem a bad one. Otherwise it is a remark."""
    text: str
    """What was found, as a sentence."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """The evidence: numbers and names."""


@dataclass(frozen=True)
class Audit:
    """The result for one problem at one shape."""

    problem: str
    """The problem's name."""
    shape: str
    """The shape's name."""
    findings: tuple[Flaw, ...]
    """What was found, in the order of the checks."""
    seconds: float
    """The time that it took."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """The constants of a derived shape."""

    @property
    def faults(self) -> tuple[Flaw, ...]:
        """The findings that are faults."""
        return tuple(finding for finding in self.findings if finding.fault)

    def to_json(self) -> dict[str, Any]:
        """Returns the audit as values that JSON can represent."""
        return {**asdict(self), "seconds": round(self.seconds, 3), "faults": len(self.faults)}


@dataclass(frozen=True)
class AuditReady:
    """Auditing process to command line, once: the device."""

    device: str
    """The device, such as `cuda:0`."""
    unusable: str = ""
    """Why the device cannot be used. Empty if it can."""


@dataclass(frozen=True)
class Checking:
    """Auditing process to command line: a check begins."""

    name: str
    """What is checked."""


@dataclass(frozen=True)
class Audited:
    """Auditing process to command line: all checks of a problem have ended."""

    constants: Mapping[str, Any]
    """The constants of the problem's file that the reference ran with."""
