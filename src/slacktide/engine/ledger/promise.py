"""What a controller was promised, as its ledger keeps it: the promise holds on where its class is no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from slacktide.engine.core import types
from slacktide.errors import ConfigError
from slacktide.model import DisruptionLimits, ServiceClass
from slacktide.model.service_class import default_tiers


@dataclass(frozen=True, slots=True)
class Promise:
    """The class, with the SLO of the workload's own; what it may suffer; whether every loss counts."""

    service: ServiceClass
    limits: DisruptionLimits | None = None
    everything: bool = False


def promise_said(controller: types.Controller) -> str:
    """What a controller is promised, for :func:`promise_in`: JSON as text, of which an API server drops nothing."""
    found = msgspec.to_builtins(Promise(controller.service, controller.limits, controller.everything))
    if controller.service.tiers == default_tiers(controller.service.slo):
        del found["service"]["tiers"]
    for name in ("priority", "before_budgets", "before_limits"):
        if not found["service"][name]:
            del found["service"][name]
    return msgspec.json.encode(_said(found)).decode()


def _said(value: Any) -> Any:
    """Without what is None, as by default."""
    if isinstance(value, dict):
        return {name: _said(one) for name, one in value.items() if one is not None}
    return [_said(one) for one in value] if isinstance(value, list) else value


def promise_in(books: Mapping[str, Any]) -> Promise | None:
    """The promise that books tell of; None where they tell of none that can be read, as those of before."""
    try:
        return msgspec.json.decode(str(books.get("promise")), type=Promise)
    except (msgspec.MsgspecError, ConfigError):
        return None
