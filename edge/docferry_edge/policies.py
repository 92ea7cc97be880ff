"""Policies by tenant and by document type: the most particular one that fits decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from docferry.document import Document
from docferry.errors import ConfigurationError
from docferry.fields import DocumentType, classify, find_rows
from docferry.fields.sensitive import Sensitive
from docferry.route import PicturePlan
from docferry_edge.rates import HourLimits
from docferry_edge.route import Mode, Policy


@dataclass(frozen=True, slots=True)
class Scoped:
    """What differs from the device's own policy for a tenant, a document type, or both; None fits any."""

    tenant: str | None
    document: DocumentType | None
    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Policies:
    """What a device is told about all documents.

    Attributes:
        base: The device's own policy.
        scoped: What differs for some; of those that fit a later one wins over an earlier one, and one that names the
            document type over one that does not.
        tenant: Whose documents this device captures.
        hour: What may leave in any hour.
    """

    base: Policy = field(default_factory=Policy)
    scoped: tuple[Scoped, ...] = ()
    tenant: str = "default"
    hour: HourLimits = field(default_factory=HourLimits)

    def of(self, document: Document) -> Policy:
        """The policy for a document as it was read."""
        kind = classify(find_rows(document)) if self.scoped else None
        fitting = [
            each
            for each in self.scoped
            if each.tenant in {None, self.tenant} and (each.document is None or each.document is kind)
        ]
        policy = self.base
        for each in sorted(fitting, key=lambda each: each.document is not None):
            policy = replace(policy, **each.changes)
        return policy

    @property
    def may_redact(self) -> bool:
        """Whether any document could have to be masked: one that cannot be read must then stay."""
        return any(bool(redact) for redact in (self.base.redact, *(each.changes.get("redact") for each in self.scoped)))

    @property
    def may_withhold(self) -> bool:
        """Whether pictures of any document must stay: one that cannot be read then does."""
        modes = [self.base.mode, *(each.changes.get("mode", Mode.NORMAL) for each in self.scoped)]
        return self.may_redact or any(mode in {Mode.NO_IMAGES, Mode.OFFLINE} for mode in modes)


def policies_of(values: Mapping[str, Any]) -> Policies:
    """The checked policies from the agent's settings.

    Raises:
        ConfigurationError: A value is none of those allowed.
    """
    overview = PicturePlan(values["send.overview_side"], values["send.overview_quality"])
    names = {each.name for each in fields(Policy)} - {"overview"}
    base = replace(Policy(overview=overview), **{name: _checked(name, values[f"route.{name}"]) for name in names})
    return Policies(
        base=base,
        scoped=tuple(_scoped(each, names) for each in values["route.policies"]),
        tenant=values["route.tenant"],
        hour=HourLimits(values["route.mb_per_hour"] * 1_000_000, values["route.pages_per_hour"]),
    )


def _scoped(table: Any, names: set[str]) -> Scoped:
    if not isinstance(table, dict):
        raise ConfigurationError(
            f"route.policies holds {table!r}",
            remedy='a list of tables such as {document = "invoice", mode = "no_images"}',
            setting="route.policies",
        )
    for name in table.keys() - names - {"tenant", "document"}:
        raise ConfigurationError(
            f"route.policies: unknown key {name!r}",
            remedy=f"tenant, document, and what differs: {', '.join(sorted(names))}",
            setting="route.policies",
        )
    document = table.get("document")
    return Scoped(
        tenant=table.get("tenant"),
        document=None if document is None else _one_of(DocumentType, "document", document),
        changes={name: _checked(name, value) for name, value in table.items() if name in names},
    )


def _checked(name: str, value: Any) -> Any:
    """A policy's value in the type the policy has."""
    if name == "mode":
        return _one_of(Mode, name, value)
    if name == "redact":
        if not isinstance(value, list):
            raise _wrong(name, value, f"a list of {', '.join(Sensitive)}")
        return frozenset(_one_of(Sensitive, name, each) for each in value)
    wanted = type(getattr(Policy(), name))
    number = float(value) if wanted is float and type(value) is int else value
    shares = {"target_risk", "audit_share"}
    if type(number) is not wanted or (wanted in {int, float} and not 0 <= number <= (1 if name in shares else 1e12)):
        raise _wrong(name, value, f"a {wanted.__name__}" + (" of 0..1" if name in shares else ", not negative"))
    return number


def _one_of(kind: Any, name: str, value: Any) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise _wrong(name, value, f"one of {', '.join(kind)}") from None


def _wrong(name: str, value: Any, remedy: str) -> ConfigurationError:
    return ConfigurationError(f"route.{name} is {value!r}", remedy=remedy, setting=f"route.{name}")
