"""One palette: a policy has the same colour wherever it is drawn, and no two are drawn alike."""

from __future__ import annotations

import pytest

from slacktide import palette
from slacktide.palette import HATCHES, INKS, MARKERS, POLICIES


@pytest.mark.parametrize("listed", [palette.policies, palette.classes])
def test_twenty_names_are_told_apart_eight_of_them_by_colour(listed: object) -> None:
    names = [f"name {number}" for number in range(20)]
    found = list(listed(names).values())  # type: ignore[operator]
    assert len({one.colour for one in found[:8]}) == 8
    assert len({one.marker for one in found[:8]}) == len(MARKERS) == len(HATCHES) == 8
    assert len({(one.colour, one.marker) for one in found}) == 20


def test_known_policies_keep_their_colour_in_any_order_and_company() -> None:
    for names in (("priority", "recommended"), ("recommended", "priority"), ("mine", "priority", "qos-driven")):
        found = palette.policies(names)
        assert found["priority"].ink == POLICIES[0]
        assert found[next(one for one in names if one not in ("mine", "priority"))].ink == POLICIES[1]
        assert len({one.ink for one in found.values()}) == len(names)
    found = palette.policies(("qos-driven published", "qos-driven recommended", "recommended"))
    assert [POLICIES.index(one.ink) for one in found.values()] == [3, 1, 0]


def test_css_and_styles_name_every_colour_once() -> None:
    for ground in ("light", "dark"):
        said = palette.css(ground)
        assert [part.partition(":")[0] for part in said.split(";") if part] == [f"--{one.name}" for one in INKS]
    text = palette.style({".a": POLICIES[0]})
    assert POLICIES[0].light in text.partition("@media")[0]
    assert POLICIES[0].dark in text.partition("@media")[2]
