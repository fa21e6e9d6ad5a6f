"""What a selector that was not seen before, a new node, and a label that changed cost the live scheduler.

    python bench/new_selectors.py [--nodes 5000] [--selectors 100] [--against SRC ...]

A cluster of nodes in three zones with ten instance types, one pod on each, and pods that wait with as many different
selectors; some are spread over zones. Each line is the median and the largest processor time, in ms, in which the
tables take in one such change before the next pass, and of that pass itself with one pod more that waits. ``--against``
measures other sources of slacktide too (the folder with the package), in turn with these, each in its own process.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from measuring import announce, options, table

from slacktide.engine.core.engine import Engine
from slacktide.engine.warm_up import warm
from slacktide.model import Constraint, Placement, ServiceClass, Term
from slacktide.model.placement import Rule, Topology
from slacktide.settings import load_live
from slacktide.state.spec import Spec

AT = 1.8e9
HIGH, LOW = ServiceClass("high", 1.0, 1), ServiceClass("low", 0.5, 3)
AMOUNTS = {"cpu": 8000, "memory": 2**35, "pods": 110}
SPREAD = Placement(marks=("app",), rules=(Rule("spread", "app", Topology("zone"), skew=10**6),))
REPEATS = 20
CHANGES = ("none", "selector: of a zone and a type", "selector: of one node", "node added", "label changed")


def labels(number: int, **further: str) -> dict[str, str]:
    """As cloud providers label nodes."""
    return {
        "kubernetes.io/hostname": f"node-{number}",
        "zone": f"zone-{number % 3}",
        "node.kubernetes.io/instance-type": f"type-{number % 10}",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        **further,
    }


class Cluster:
    """An engine with nodes, pods, and ways to change something."""

    def __init__(self, nodes: int, selectors: int) -> None:
        config = load_live(None, None, [])
        warm(config)
        self.engine = Engine(config)
        self.nodes, self.pods = nodes, 0
        for number in range(nodes):
            self.engine.host(f"node-{number}", AMOUNTS, labels(number), True)
        self.engine.spec(0, Spec((("cpu", 1000), ("memory", 2**27), ("pods", 1)), LOW, placement=SPREAD))
        for number in range(nodes):
            self.engine.controller(f"l{number}", LOW, 0, False)
            self.engine.found(f"l{number}", "l", f"l{number}", 0, f"node-{number}", AT)
        for number in range(selectors):
            self.arrive(self.term(number % 3, number // 3 % 10, f"known-{number}"))
        self.engine.run(AT)

    def term(self, zone: int, kind: int, other: str) -> Term:
        """Nodes of a zone and of two types; an architecture that no node has makes the selector another one."""
        return Term((
            Constraint("zone", "in", values=(f"zone-{zone}",)),
            Constraint("node.kubernetes.io/instance-type", "in", values=(f"type-{kind}", f"type-{(kind + 1) % 10}")),
            Constraint("kubernetes.io/arch", "not in", values=(other,)),
        ))  # fmt: skip

    def arrive(self, term: Term) -> None:
        """A pod with this selector waits; no node has so much room as it wants."""
        self.pods += 1
        self.engine.spec(self.pods, Spec((("cpu", 80000), ("memory", 2**27), ("pods", 1)), HIGH, term))
        self.engine.controller(f"h{self.pods}", HIGH, 0, False)
        self.engine.arrive(f"h{self.pods}", "h", f"h{self.pods}", self.pods, AT)
        self.engine.wake(f"h{self.pods}")

    def none(self, _: int) -> None:
        """A pod with a selector that is known."""
        self.arrive(self.term(0, 0, "known-0"))

    def selector(self, number: int) -> None:
        """A pod with a new selector, by which equal nodes stay equal."""
        self.arrive(self.term(number % 3, number % 10, f"new-{number}"))

    def pinned(self, number: int) -> None:
        """A pod with a selector of one node, as DaemonSets have."""
        self.arrive(Term((Constraint("kubernetes.io/hostname", "in", values=(f"node-{number * 7}",)),)))

    def node(self, _: int) -> None:
        """A node more."""
        self.engine.host(f"node-{self.nodes}", AMOUNTS, labels(self.nodes), True)
        self.nodes += 1

    def label(self, number: int) -> None:
        """A label of a node changes that no selector asks for."""
        self.engine.host(f"node-{number}", AMOUNTS, labels(number, **{f"version-{number}": str(number)}), True)

    def taken_in(self, change: Callable[[int], None]) -> tuple[float, float, float, float]:
        """Median and largest milliseconds that the tables and the pass take."""
        settled, passed = [], []
        for number in range(REPEATS):
            change(number)
            begun = time.process_time()
            self.engine.tables.settle()
            between = time.process_time()
            self.engine.run(AT)
            settled.append(1000.0 * (between - begun))
            passed.append(1000.0 * (time.process_time() - between))
        return statistics.median(settled), max(settled), statistics.median(passed), max(passed)


def measured(nodes: int, selectors: int) -> dict[str, tuple[float, float, float, float]]:
    """All changes, one after the other."""
    cluster = Cluster(nodes, selectors)
    ways = (cluster.none, cluster.selector, cluster.pinned, cluster.node, cluster.label)
    return {name: cluster.taken_in(way) for name, way in zip(CHANGES, ways, strict=True)}


def elsewhere(sources: Path, nodes: int, selectors: int) -> dict[str, tuple[float, float, float, float]]:
    """The same by other sources."""
    words = [sys.executable, __file__, "--json", "--nodes", str(nodes), "--selectors", str(selectors)]
    environment = {**os.environ, "PYTHONPATH": str(sources)}
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, check=True)
    found: dict[str, tuple[float, float, float, float]] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print the table."""
    parser = options(__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--selectors", type=int, default=100)
    parser.add_argument("--against", type=Path, action="append", default=[], metavar="SRC")
    parser.add_argument("--json", action="store_true", help="figures of these sources only, as JSON")
    arguments = parser.parse_args()
    if arguments.json:
        print(json.dumps(measured(arguments.nodes, arguments.selectors)))
        return
    sources = [*arguments.against, *(Path(one) for one in sys.path if (Path(one) / "slacktide").is_dir())][
        : len(arguments.against) + 1
    ]
    found = [elsewhere(one.resolve(), arguments.nodes, arguments.selectors) for one in sources]
    announce(f", {arguments.nodes:,} nodes, {arguments.selectors} selectors:")
    head = ["change", *(f"{what}, {one}" for one in map(str, sources) for what in ("taken in, ms", "pass, ms"))]
    rows = [
        [name, *(f"{median:.1f} ({most:.1f})" for one in found for median, most in (one[name][:2], one[name][2:]))]
        for name in CHANGES
    ]
    print(table(head, rows))


if __name__ == "__main__":
    main()
