"""What a plan costs: processor time of passes that make one, and of those that do not, against the services there are.

    python bench/plans.py [--hosts 250 --hosts 2500 --hosts 22500]

Services of three classes over windows of 30 days ask for 110 % of hosts of 8 CPU (``loaded`` of bench/promises.py). A
pass is made at each event of two days; those of the second half day on are measured, when all have come.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from measuring import announce, options, table
from promises_parts.inputs import DAY, loaded
from promises_parts.outcome import Waits, words_of

from slacktide.kernels.drive import event_loop
from slacktide.kernels.tables import schema
from slacktide.policy.loader import load as own_code
from slacktide.settings import load
from slacktide.sim.engine import drive, prepare

UNTIL, SETTLED = 2 * DAY, DAY / 2
LOAD = 1.1


def measured(hosts: int) -> list[str]:
    """A row of the table."""
    one = loaded(load=LOAD, budget="whole", hosts=hosts)
    with tempfile.TemporaryDirectory() as folder:
        config = load(None, "recommended", words_of(one, UNTIL, Path(folder)))
        tb = prepare(one.workload, one.hosts, config, own_code(config), schema.RECORD_EVENTS)
        marks: list[tuple[float, int, float]] = []

        def step() -> int:
            code = event_loop.run(tb.state, 1)
            marks.append((float(tb.control["now"]), int(tb.control["plans"]), time.process_time()))
            return code

        drive(tb, step, Waits(one.workload), lambda: None)
    seen = np.array(marks)
    took, planned = np.diff(seen[:, 2]) * 1e3, np.diff(seen[:, 1]) > 0
    late = seen[1:, 0] > SETTLED
    with_one, without = took[late & planned], took[late & ~planned]
    services = len(one.workload.duration)
    counts = [f"{hosts:,}", f"{services:,}", f"{len(with_one)}", f"{len(without):,}"]
    times = [f"{with_one.mean():.2f}", f"{with_one.max():.2f}", f"{without.mean():.3f}"]
    return [*counts, *times, f"{with_one.mean() / services * 1e3:.2f}"]


def main() -> None:
    """Measure and print."""
    parser = options(__doc__)
    parser.add_argument("--hosts", type=int, action="append", help="again for more (250, 2500, 22500)")
    asked = parser.parse_args()
    announce()
    head = ["hosts", "services", "plans", "other passes", "a plan, ms", "longest, ms", "other, ms", "us a service"]
    print(table(head, [measured(hosts) for hosts in asked.hosts or (250, 2500, 22500)]))


if __name__ == "__main__":
    main()
