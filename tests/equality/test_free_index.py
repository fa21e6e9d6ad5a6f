"""The free index finds what a scan finds, after a failure as well, and with less work."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.clusters import POLICIES_WITH_RULES, cluster
from support.runs import core, everything
from support.small import GOLD, Request, machines, small


@pytest.mark.parametrize("policy", POLICIES_WITH_RULES)
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_it_changes_nothing_on_clusters_where_many_hosts_change(policy: str, several: bool, tmp_path: Path) -> None:
    for seed in range(7300, 7306):
        one = cluster(seed, 60, 400, several=several, neighbours=seed % 3 == 0).with_(policy={"name": policy})
        plain = everything(core(one.naively(), tmp_path))
        assert everything(core(one, tmp_path)) == plain, f"cluster({seed}, 60, 400, {several}), {policy}"


def test_after_a_failure_changed_hosts_are_not_gone_through_for_who_finds_room(tmp_path: Path) -> None:
    # The request that fails at 1 s is remembered for ever: by priority nobody makes room for it but who completes.
    count = 200
    rows = [Request(GOLD, 0.0, 10.0) for _ in range(count)] + [Request(GOLD, 1.0, 1.0)]
    rows += [Request(GOLD, 100.0, 10.0) for _ in range(count)]
    one = small(rows, machines(*[1.0] * count), policy={"name": "priority"})
    result = core(one, tmp_path)
    assert result.placements == len(rows)
    assert result.operations < 3 * len(rows)
    assert everything(result) == everything(core(one.naively(), tmp_path))
