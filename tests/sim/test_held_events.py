"""Events of who waits in vain: one row where that begins."""

from __future__ import annotations

from itertools import pairwise

import polars as pl

import slacktide as st


def test_whoever_waits_in_vain_is_told_of_once() -> None:
    """Three times as many as there is room for: nearly every turn of each pass is in vain."""
    count = 90
    workload = pl.DataFrame({"id": range(count), "cpu": 1.0, "memory": 1.0}).with_columns(
        admission=pl.col("id") * 10.0, duration=900.0, **{"class": pl.lit("silver")}
    )
    hosts = pl.DataFrame({"id": range(10), "name": [f"h{number}" for number in range(10)], "cpu": 3.0, "memory": 3.0})
    found = st.simulate(workload, hosts, "priority", end="1h")
    waited = 0
    for _, events in found.events.group_by("request"):
        kinds = events["event"].to_list()
        assert ("held", "held") not in pairwise(kinds), "told again though nothing changed"
        held = kinds.count("held")
        if found.requests.filter(pl.col("id") == events["request"][0])["pending"][0] > 0.0:
            assert held, "waits, and nobody says so"
            waited += held
    assert waited > 20
    assert found.events.height < 8 * count
    bare = st.simulate(workload, hosts, "priority", end="1h", events=False)
    assert bare.requests.equals(found.requests)
    assert bare.totals == found.totals
