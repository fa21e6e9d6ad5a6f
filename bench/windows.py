"""A year of services that promise 99 %, accounted over their lifetime and over rolling 30 days.

    python bench/windows.py
    python bench/windows.py --cost      # what windows cost on the one-hour samples (needs the published inputs)

Ten services run on a host that has room for ten. Every 30 days a more important request (it promises 1) takes one of
the ten places, for 60 hours at first and 70 at last: less than the 72 hours that ten services may lose together in 30
days. So every 30-day window of every service can be kept, by some order in which they wait. ``--cost`` prints the
processor time of simulations with and without windows, alternating, and whether all decisions are equal.
"""

from __future__ import annotations

import statistics
from dataclasses import replace

import numpy as np
from measuring import announce, one_hour_files, options, overheads, plain, read, settings, simulated, table

from slacktide.inputs.rows import equal_hosts
from slacktide.kernels.tables.log_records import EVENT_KINDS
from slacktide.metrics.windows import Outages, kept_share, worst_windows
from slacktide.model import Hosts, ServiceClass, Window, Workload
from slacktide.sim import RunResult, run

HOUR, DAY = 3600.0, 86_400.0
SERVICES, MONTH = 10, 30 * DAY
ACCRUED = Window(rolling=MONTH, budget="accrued")
"""By which whoever lives shorter than the window is decided as over a lifetime."""
WINDOWS = {
    "lifetime": None,
    "rolling 30d, accrued": ACCRUED,
    "rolling 30d, whole": Window(rolling=MONTH),
    "calendar 1M": Window(calendar="1M"),
}


def year(window: Window | None, end: float) -> tuple[Workload, Hosts]:
    """The services, from the first second on, and the requests that take one of their places up to ``end``, seconds."""
    begins = np.arange(MONTH, end - 3 * DAY, MONTH)
    lengths = np.linspace(60.0, 70.0, len(begins)) * HOUR
    workload = plain(
        np.concatenate([np.zeros(SERVICES), begins]),
        np.concatenate([np.full(SERVICES, np.inf), lengths]),
        np.ones(SERVICES + len(begins)),
        np.array([1] * SERVICES + [0] * len(begins), np.int16),
        classes=(ServiceClass("gold", 1.0, 1), ServiceClass("service", 0.99, 2, window=window)),
    )
    return workload, equal_hosts(1, {"cpu": SERVICES, "memory": SERVICES})


def lives(result: RunResult, end: float) -> list[Outages]:
    """Outages of each service, seconds, as those who wait see them: from each wait to the next placement."""
    events = result.events or {}
    kinds = [EVENT_KINDS[kind] for kind in events["kind"].tolist()]
    found = []
    for row in range(SERVICES):
        since, until, length = float("nan"), [], []
        for kind, who, time in zip(kinds, events["row"].tolist(), events["time"].tolist(), strict=True):
            if who == row and kind in ("admitted", "preempted"):
                since = time
            elif who == row and kind == "placed":
                until.append(time)
                length.append(time - since)
        found.append(Outages.of(until, length, 0.0, end))
    return found


def measured(name: str, end: float) -> list[str]:
    """A line: the longest outage of any service, its worst window, the share of windows kept, preemptions."""
    workload, hosts = year(WINDOWS[name], end)
    result = run(workload, hosts, settings("recommended", {"simulation.end": end}), events=True)
    services = lives(result, end)
    worst = min(float(worst_windows(one, [MONTH])[0]) for one in services)
    kept = statistics.mean(kept_share(one, MONTH, 0.99) for one in services)
    longest = max(one.longest for one in services) / HOUR
    return [name, f"{longest:.1f}", f"{worst:.4f}", f"{100 * kept:.2f} %", f"{result.preemptions:,}"]


def cost(repeats: int) -> list[list[str]]:
    """Lines: each sample, processor seconds and memory without and with windows, and their ratios."""
    lines = []
    for which in ("higher", "lower"):
        workload, hosts = read(*one_hour_files(which))
        config = settings("recommended", {"simulation.end": HOUR, **overheads()})
        windowed = replace(workload, classes=tuple(replace(one, window=ACCRUED) for one in workload.classes))
        seconds: dict[bool, list[float]] = {False: [], True: []}
        decided = {}
        for _ in range(repeats):
            for over in (False, True):
                one = simulated(windowed if over else workload, hosts, config, decisions=True)
                seconds[over].append(one.seconds)
                decided[over] = one.decisions
        without, with_it = (statistics.median(seconds[over]) for over in (False, True))
        equal = "equal" if decided[False] == decided[True] else "not equal"
        lines.append([which, f"{without:.2f}", f"{with_it:.2f}", f"{with_it / without:.2f}", equal])
    return lines


def main() -> None:
    """Run the year for every window, or measure what windows cost, and print the table."""
    parser = options(__doc__)
    parser.add_argument("--cost", action="store_true", help="what windows cost on the one-hour samples")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each with --cost")
    parser.add_argument("--days", type=int, default=365)
    asked = parser.parse_args()
    announce()
    if asked.cost:
        print(table(["sample", "lifetime, s", "rolling 30d, s", "ratio", "decisions"], cost(asked.repeats)))
        return
    head = ["promise over", "longest outage, h", "worst 30 days", "windows kept", "preemptions"]
    print(table(head, [measured(name, asked.days * DAY) for name in WINDOWS]))


if __name__ == "__main__":
    main()
