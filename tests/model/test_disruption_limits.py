"""Limits on disruption as data: what is refused, and what is stricter."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from slacktide.errors import ConfigError
from slacktide.model import DisruptionLimits, Hours, ServiceClass


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"most": 65, "per": 1.0}, "disruptions.max: found 65, expected a whole number from 0 to 64"),
        ({"most": -1, "per": 1.0}, "disruptions.max: found -1"),
        ({"most": 1}, "disruptions.per: found 0.0, expected seconds above 0"),
        ({"cooldown": -1.0}, "cooldown: found -1.0"),
        ({"min_running": float("nan")}, "min_running: found nan"),
        ({"hours": ()}, "hours: found []"),
    ],
)
def test_what_is_no_limit_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        DisruptionLimits(**values)
    assert said in str(refused.value)


def most_in(window: int, most: int, per: int) -> int:
    """The most beginnings, at whole seconds, in any half-open window, with at most ``most`` in any of ``per``."""
    begun: list[int] = []
    for t in range(3 * (window + per)):
        while sum(t - per < b for b in begun) < most and len(begun) < 500:
            begun.append(t)
    return max(sum(t <= b < t + window for b in begun) for t in range(2 * window))


@pytest.mark.parametrize(("most", "per"), [(1, 4), (2, 6), (3, 12), (6, 12), (0, 5)])
def test_a_workload_may_only_be_stricter_than_its_class(most: int, per: int) -> None:
    limits = DisruptionLimits(most, float(per))
    for own, own_per in product(range(5), (1, 2, 3, 4, 5, 6, 8, 12, 24)):
        wanted = DisruptionLimits(own, float(own_per))
        if most_in(per, own, own_per) <= most:
            assert limits.stricter(wanted) == wanted
        else:
            with pytest.raises(ConfigError, match="disruptions: found"):
                limits.stricter(wanted)


def test_of_all_else_the_stricter_holds_too() -> None:
    night, weekend = (Hours(("Mon",), 1320, 360),), (Hours(("Sat", "Sun"), 0, 1440),)
    limits = DisruptionLimits(2, 3600.0, 600.0, night, 60.0)
    own = DisruptionLimits(cooldown=900.0, hours=weekend, min_running=120.0)
    assert limits.stricter(own) == DisruptionLimits(2, 3600.0, 900.0, night, 120.0, weekend)
    assert limits.stricter(own).intervals(0.0, 30 * 86400.0) == []
    assert limits.stricter(DisruptionLimits()) == limits
    for looser in (DisruptionLimits(cooldown=1.0), DisruptionLimits(min_running=1.0)):
        with pytest.raises(ConfigError):
            limits.stricter(looser)


def test_only_what_is_counted_needs_an_account() -> None:
    assert not DisruptionLimits(min_running=5.0).counts
    assert DisruptionLimits(0, 1.0).counts
    assert DisruptionLimits(cooldown=1.0).counts
    assert ServiceClass("a", 0.9, 1).limits is None
