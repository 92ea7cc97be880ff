"""What a key must allow for each rpc, in one table. A method that is not in it cannot be called at all."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


class Scope(enum.StrEnum):
    """What a key allows within its tenant.

    SUBMIT hands documents in and changes them, READ sees results, DEVICE is what a kiosk needs: to hand in, to see
    what became of it, and to be asked for pictures. ADMIN is everything but a device's own calls.
    """

    SUBMIT = "submit"
    READ = "read"
    DEVICE = "device"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Rule:
    """Any one of `scopes` suffices; a call that is `recorded` stands in the audit log, a refused one always does.

    Attributes:
        claimed: Whether a claim's session may call it, about its own analysis.
        names: Where the analysis stands in the request, dots between; empty if the request names none.
        opens: Whether a claim's link calls it.
        keyed: Whether it takes a key: a token of the settings must not outlive its line there by what it makes.
    """

    scopes: frozenset[Scope]
    recorded: bool = True
    claimed: bool = False
    names: str = "analysis_id"
    opens: bool = False
    keyed: bool = False


def _rule(*scopes: Scope, recorded: bool = True) -> Rule:
    return Rule(frozenset(scopes), recorded)


def _shared(*scopes: Scope, names: str = "analysis_id") -> Rule:
    """What the holder of a claim may call too."""
    return Rule(frozenset(scopes), claimed=True, names=names)


_ANALYSIS, _CLAIM, _DEVICE, _SUBSCRIPTION, _OPERATOR = (
    f"docferry.v1.{name}Service" for name in ("Analysis", "Claim", "Device", "Subscription", "Operator")
)

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        f"{_ANALYSIS}.Submit": _rule(Scope.SUBMIT, Scope.DEVICE, Scope.ADMIN),
        # Its Submit is recorded; the chunks of one file would bury everything else.
        f"{_ANALYSIS}.Supply": _rule(Scope.SUBMIT, Scope.DEVICE, Scope.ADMIN, recorded=False),
        f"{_ANALYSIS}.Get": _shared(Scope.READ, Scope.DEVICE, Scope.ADMIN),
        f"{_ANALYSIS}.List": _rule(Scope.READ, Scope.ADMIN),
        f"{_ANALYSIS}.Watch": _shared(Scope.READ, Scope.DEVICE, Scope.ADMIN),
        f"{_ANALYSIS}.GetPart": _rule(Scope.READ, Scope.ADMIN),
        f"{_ANALYSIS}.GetPage": _shared(Scope.READ, Scope.ADMIN),
        f"{_ANALYSIS}.Ask": _shared(Scope.READ, Scope.ADMIN),
        f"{_ANALYSIS}.Fill": _rule(Scope.READ, Scope.ADMIN),
        f"{_ANALYSIS}.Export": _shared(Scope.READ, Scope.ADMIN),
        f"{_ANALYSIS}.Cancel": _rule(Scope.SUBMIT, Scope.ADMIN),
        f"{_ANALYSIS}.Delete": _rule(Scope.SUBMIT, Scope.ADMIN),
        f"{_ANALYSIS}.Correct": _rule(Scope.SUBMIT, Scope.DEVICE, Scope.ADMIN),
        f"{_ANALYSIS}.RequestPart": _rule(Scope.SUBMIT, Scope.ADMIN),
        f"{_CLAIM}.Create": _rule(Scope.SUBMIT, Scope.DEVICE, Scope.ADMIN),
        # No key opens a link, only the link itself.
        f"{_CLAIM}.Open": Rule(frozenset(), opens=True),
        f"{_CLAIM}.Revoke": _rule(Scope.SUBMIT, Scope.DEVICE, Scope.ADMIN),
        f"{_DEVICE}.Enroll": _rule(Scope.DEVICE),
        f"{_DEVICE}.Renew": _rule(Scope.DEVICE),
        f"{_DEVICE}.GetConfiguration": _rule(Scope.DEVICE),
        f"{_DEVICE}.Watch": _rule(Scope.DEVICE),
        f"{_DEVICE}.Refuse": _rule(Scope.DEVICE),
        f"{_SUBSCRIPTION}.Create": _shared(Scope.ADMIN, names="subscription.analysis_id"),
        f"{_SUBSCRIPTION}.List": _rule(Scope.ADMIN),
        f"{_SUBSCRIPTION}.Delete": _rule(Scope.ADMIN),
        f"{_SUBSCRIPTION}.Rotate": _rule(Scope.ADMIN),
        f"{_SUBSCRIPTION}.ListDeliveries": _rule(Scope.ADMIN),
        f"{_SUBSCRIPTION}.Replay": _rule(Scope.ADMIN),
        # Public by its nature: a browser subscribes with it.
        f"{_SUBSCRIPTION}.GetPushKey": _shared(Scope.READ, Scope.ADMIN, names=""),
        # Sessions are for the pages of people who look at results.
        f"{_OPERATOR}.OpenSession": _rule(Scope.READ, Scope.ADMIN),
        # Asked with every page, and it says nothing that the caller does not bring along.
        f"{_OPERATOR}.GetSession": _rule(*Scope, recorded=False),
        f"{_OPERATOR}.CloseSession": _rule(*Scope),
        f"{_OPERATOR}.GetFigures": _rule(Scope.READ, Scope.ADMIN),
        f"{_OPERATOR}.ListDevices": _rule(Scope.READ, Scope.ADMIN),
        f"{_OPERATOR}.CreateKey": Rule(frozenset({Scope.ADMIN}), keyed=True),
        f"{_OPERATOR}.ListKeys": _rule(Scope.ADMIN),
        f"{_OPERATOR}.RevokeKey": _rule(Scope.ADMIN),
    }
)
"""By the rpc's full name."""
