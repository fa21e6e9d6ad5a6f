"""The shipped alerts, evaluated by a real Prometheus on a lab: calm while all is well, in time for each of ten faults.

    PYTHONPATH=src:tests python bench/alerts.py                  the ten faults, about 35 minutes
    PYTHONPATH=src:tests python bench/alerts.py --calm 60        an hour of a lively lab before them
    PYTHONPATH=src:tests python bench/alerts.py --calm 1 --factor 20 --interval 1
                                                                 minutes: times in rules are shortened, and one fault,
                                                                 which shows once a minute, is left out

Two replicas run on a real API server, beside them workloads that come, change, roll, are scaled and deleted; a leader
is killed now and then (not with --factor, as nobody takes over within seconds). Prometheus (Debian's) scrapes both. In
the calm part every alert that fires is told. Then faults are made, several at a time where they do not disturb each
other, and mended once they were paged. A fault counts from when its alert's condition can be seen, as its rule and the
scheduler's own looks say, plus ``for:``; it has to be paged within ``--late`` seconds (120) of that, and to resolve
after it was mended.

Prints a table; ends with 1 where a fault was not paged in time or did not resolve, or a page came though no promise was
in danger.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from measuring import announce, table

from cluster.alerting import FAULTS, Fault, Life, Site, site
from cluster.paging import lasting
from slacktide.lab import Binaries

RESOLVED_SECONDS = 2100.0
"""A burn is over when the short window is: half an hour in the longest rule that pages."""


def calm(where: Site, chosen: argparse.Namespace) -> list[str]:
    """What fired though nothing was broken."""
    life = Life(where, chosen.seed, kills=chosen.factor == 1.0)
    begun = time.time()
    life.go_on(begun + chosen.calm * 60.0, chosen.between)
    print(f"calm for {chosen.calm:g} minutes: " + ", ".join(f"{count} x {name}" for name, count in life.done.items()))
    fired = [one for one in where.prometheus.fired if one.since >= begun]
    for one in fired:
        said = dict(one.labels)
        print(f"  {one.name} ({one.severity}) after {one.since - begun:.0f} s: {said}")
    return [one.name for one in fired if one.severity == "page"]


def paged(where: Site, faults: Sequence[Fault], factor: float, late: float) -> list[list[str]]:
    """A row for each of these faults, made at once and mended when all were paged, or too late."""
    rows, begun, lasts = [], dict[str, float](), lasting(factor)
    for one in faults:
        begun[one.alert] = time.time()
        one.make(where)
    due = {one.alert: begun[one.alert] + one.shown + lasts[one.alert] for one in faults}
    while time.time() < max(due.values()) + late + where.prometheus.interval:
        if all(where.prometheus.since(name, at) is not None for name, at in begun.items()):
            break
        time.sleep(0.5)
    found = {name: where.prometheus.since(name, at) for name, at in begun.items()}
    for one in faults:
        one.mend(where)
    mended = time.time()
    while where.prometheus.firing() & set(begun) and time.time() < mended + RESOLVED_SECONDS:
        time.sleep(0.5)
    for name, at in begun.items():
        fired = found[name]
        ends = [one.until for one in where.prometheus.fired if one.name == name and one.since >= at]
        resolved = bool(ends) and all(ends)
        after = "never" if fired is None else f"{fired - at:.0f} s"
        beyond = "" if fired is None else f"{fired - due[name]:+.0f} s"
        how = "resolved" if resolved else "not resolved"
        rows.append([name, after, beyond, f"{how} after {max(ends) - mended:.0f} s" if resolved else how])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calm", type=float, default=0.0, metavar="MINUTES")
    parser.add_argument("--between", type=float, default=4.0, help="seconds between two changes while it is calm")
    parser.add_argument("--faults", nargs="*", default=[one.alert for one in FAULTS], metavar="ALERT")
    parser.add_argument("--factor", type=float, default=1.0, help="by which times in the rules are shortened")
    parser.add_argument("--interval", type=float, default=15.0, help="seconds between two scrapes, and evaluations")
    parser.add_argument("--late", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    announce()
    faults = [one for one in FAULTS if one.alert in chosen.faults and not (one.slow and chosen.factor > 1.0)]
    beside = [one for one in faults if not one.alone]
    groups = [group for group in (beside, *([one] for one in faults if one.alone)) if group]
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="slacktide-bench-") as folder:
        found = Binaries.find(("etcd", "kube-apiserver", "kube-controller-manager", "kwok", "kubectl"))
        with site(found, Path(folder) / "alerts", chosen.factor, chosen.interval) as where:
            false = calm(where, chosen) if chosen.calm else []
            for group in groups:
                rows += paged(where, group, chosen.factor, chosen.late)
                print(f"  {[row[0] for row in rows[-len(group) :]]}", file=sys.stderr)
    if rows:
        print(table(["alert", "fires after", "of when it should", "then"], rows))
    wrong = [row for row in rows if not row[2] or float(row[2][:-2]) > chosen.late or "not" in row[3]]
    print(f"{len(rows) - len(wrong)} of {len(rows)} faults paged within {chosen.late:g} s of when they should, and "
          f"resolved; {len(false)} pages while it was calm")  # fmt: skip
    return int(bool(wrong or false))


if __name__ == "__main__":
    sys.exit(main())
