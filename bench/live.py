"""The live scheduler beside kube-scheduler on a real control plane: throughput, preemption, single pods; and offline.

    python bench/live.py [--cases throughput preemption singles pass churn] [--nodes 1000 5000] [--pods 10000]

Each case starts a control plane of its own (etcd, kube-apiserver, kube-controller-manager; programs as for
``slacktide lab``) and runs one scheduler at a time on it, in the same run: kube-scheduler with 5,000 requests a second
(burst 10,000), slacktide without a limit, the API server without priority and fairness. All write events. A repetition
runs every scheduler once; tables have medians of the repetitions, and their ratios to kube-scheduler's.

throughput  pods of 100m and 100Mi by 64 posts at once; pods/s from the first create to the last binding seen on a
            watch; processor seconds and peak memory of the scheduler's process. ``bare binder`` is the least that a
            client can do (aiohttp, uvloop, nodes in turn, a binding and an event each).
preemption  nodes of 4 cores, full of low pods of one core, grace 0, that run since 20 s; then a high pod for each node.
singles     20 pods a second on an idle cluster: from the create's answer to the binding on a watch.
crowded     the same before anybody waits, beside thousands that nobody looks at (they name another scheduler: what the
            API server alone makes of so many objects), and beside as many that fit nowhere (all have been told so, if
            ``--patience`` allows).
pass        one pass over all that wait, without a cluster.
churn       controllers with templates of their own come and go: memory at each simulated hour, without a cluster.

KWOK plays kubelets for preemption only: elsewhere they would take processor time that on a cluster is other machines'
(``--kubelets`` lets it play everywhere).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from math import isnan
from pathlib import Path

from live_parts import cases, offline
from live_parts.cases import Found
from live_parts.cluster import BINDER, KUBE, Cluster
from measuring import announce, table

POLICIES = ("priority", "qos-driven")
CASES = ("throughput", "preemption", "singles", "crowded", "pass", "churn")
WHO_WAITS = {"alone": "nobody", "unseen": "pods that nobody looks at", "stages": "pods that fit nowhere"}
Case = Callable[[Cluster, str], Found]


def deciding(options: argparse.Namespace) -> list[str]:
    """The schedulers that decide, of those that are chosen."""
    return [one for one in options.schedulers or (KUBE, *POLICIES) if one != BINDER]


def measured(
    options: argparse.Namespace, nodes: int, cpu: str, names: Sequence[str], case: Case, *, kubelets: bool
) -> dict[str, list[Found]]:
    """All repetitions of a case on one control plane, by scheduler."""
    found: dict[str, list[Found]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory(prefix="slacktide-bench-") as directory:
        cluster = Cluster(Path(directory), nodes, cpu=cpu, kubelets=kubelets or options.kubelets,
                          gates=options.gates)  # fmt: skip
        try:
            for repetition in range(options.repeats):
                for name in names:
                    print(f"{nodes} nodes, {name}, {repetition + 1} ...", file=sys.stderr)
                    found[name].append(case(cluster, name))
                    print(f"  {found[name][-1]}", file=sys.stderr)
        finally:
            cluster.close()
    return found


def median(runs: Sequence[Found], name: str) -> float:
    return statistics.median(getattr(one, name) for one in runs)


def ratio(value: float, of: float) -> str:
    return f"{value / of:.2f}" if of else ""


def stall(runs: Sequence[Found]) -> str:
    longest = max(one.stall for one in runs)
    return "" if isnan(longest) else f"{longest:.0f}"


def throughput(options: argparse.Namespace) -> None:
    head = ("nodes", "scheduler", "pods/s", "of kube-scheduler's", "bound", "processor s", "peak MB",
            "of kube-scheduler's", "longest stall ms")  # fmt: skip
    rows = []
    for nodes in options.nodes:
        names = tuple(options.schedulers or (KUBE, *POLICIES, BINDER)) + tuple(
            f"priority+{one}" for one in options.score
        )

        def case(cluster: Cluster, name: str) -> Found:
            return cases.throughput(cluster, name, options.pods, bool(options.score))

        found = measured(options, nodes, "32", names, case, kubelets=False)
        base = found[names[0]]
        for name, runs in found.items():
            rate, peak = median(runs, "rate"), median(runs, "peak")
            bound = f"{min(one.bound for one in runs):,} of {options.pods:,}"
            rows.append([f"{nodes:,}", name, f"{rate:.0f}", ratio(rate, median(base, "rate")), bound,
                         f"{median(runs, 'cpu'):.1f}", f"{peak:.0f}", ratio(peak, median(base, "peak")),
                         stall(runs)])  # fmt: skip
    print(f"Throughput: {options.pods:,} pods\n\n{table(head, rows)}\n", flush=True)


def preemption(options: argparse.Namespace) -> None:
    head = ("scheduler", "pods/s", "of kube-scheduler's", "bound", "pods on nodes then", "processor s", "peak MB",
            "longest stall ms")  # fmt: skip
    nodes = options.full_nodes

    def case(cluster: Cluster, name: str) -> Found:
        return cases.preemption(cluster, name, 4, options.patience)

    found = measured(options, nodes, "4", deciding(options), case, kubelets=True)
    rows, base = [], next(iter(found.values()))
    for name, runs in found.items():
        rate = median(runs, "rate")
        bound = ", ".join(f"{one.bound:,}" for one in runs)
        rows.append([name, f"{rate:.0f}", ratio(rate, median(base, "rate")), bound,
                     ", ".join(f"{one.left:,}" for one in runs), f"{median(runs, 'cpu'):.1f}",
                     f"{median(runs, 'peak'):.0f}", stall(runs)])  # fmt: skip
    print(f"Preemption: {nodes:,} high pods on {nodes:,} full nodes, bound within {options.patience:.0f} s\n\n"
          f"{table(head, rows)}\n", flush=True)  # fmt: skip


def singles(options: argparse.Namespace) -> None:
    head = ("scheduler", "p50 ms", "of kube-scheduler's", "p99 ms", "of kube-scheduler's", "processor s", "peak MB",
            "longest stall ms")  # fmt: skip
    nodes = max(options.nodes)

    def case(cluster: Cluster, name: str) -> Found:
        return cases.singles(cluster, name, options.singles, 20.0)

    found = measured(options, nodes, "32", deciding(options), case, kubelets=False)
    rows, base = [], next(iter(found.values()))
    for name, runs in found.items():
        p50, p99 = median(runs, "p50"), median(runs, "p99")
        rows.append([name, f"{p50:.1f}", ratio(p50, median(base, "p50")), f"{p99:.1f}",
                     ratio(p99, median(base, "p99")), f"{median(runs, 'cpu'):.1f}",
                     f"{median(runs, 'peak'):.0f}", stall(runs)])  # fmt: skip
    print(f"Single pods: {options.singles:,} at 20/s on {nodes:,} idle nodes\n\n{table(head, rows)}\n", flush=True)


def crowded(options: argparse.Namespace) -> None:
    head = ("scheduler", "who else waits", "p50 ms", "ratio", "p99 ms", "ratio", "bound, each", "processor s, each",
            "peak MB so far", "longest stall ms", "told that they wait", "ledgers that waited in the end")  # fmt: skip
    nodes = max(options.nodes)
    crowd = cases.Crowd(options.crowd, options.stages, 2.0 * options.patience)

    def case(cluster: Cluster, name: str) -> Found:
        return cases.crowded(cluster, name, options.singles, 20.0, crowd)

    found = measured(options, nodes, "32", deciding(options), case, kubelets=False)
    rows = []
    for name, runs in found.items():
        base = [stage for one in runs for stage in one.alone]
        for field, who in WHO_WAITS.items():
            these = [stage for one in runs for stage in getattr(one, field)]
            row = [name, who]
            for which in ("p50", "p99"):
                row += [of_stages(these, which), ratio(median(these, which), median(base, which))]
            told = [f"{min(one.told for one in runs):,}", f"{max(one.pending for one in runs):,.0f}"]
            rows.append([*row, f"{min(one.bound for one in these):,}", f"{median(these, 'cpu'):.1f}",
                         f"{max(one.peak for one in these):.0f}", stall(these),
                         *(told if field == "stages" else ("", ""))])  # fmt: skip
    print(f"Single pods beside {options.crowd:,} that wait: {options.stages} times {options.singles:,} at 20/s on "
          f"{nodes:,} idle nodes, medians of the stages (each)\n\n{table(head, rows)}\n", flush=True)  # fmt: skip


def of_stages(stages: Sequence[Found], which: str) -> str:
    """Their median, and each."""
    return f"{median(stages, which):.1f} ({', '.join(f'{getattr(one, which):.0f}' for one in stages)})"


def passes(options: argparse.Namespace) -> None:
    head = ("policy", "nodes", "whole pass, processor ms", "longest stall in parts, processor ms", "placed",
            "preempted", "the next pass ms")  # fmt: skip
    nodes, rows = max(options.nodes), []
    for policy in POLICIES:
        for full in (False, True):
            found = offline.passes(policy, nodes, options.pods, full=full)
            state = f"{nodes:,}, {'full of low pods' if full else 'empty'}"
            rows.append([policy, state, f"{found.first * 1000:.0f}", f"{found.longest * 1000:.0f}",
                          f"{found.placed:,}", f"{found.preempted:,}",
                         f"{found.second * 1000:.1f}"])  # fmt: skip
    print(f"A pass over {options.pods:,} waiting pods\n\n{table(head, rows)}\n", flush=True)


def churn(options: argparse.Namespace) -> None:
    head = ("hour", "pods so far", "MB", "live pods", "controllers", "specs", "kinds in the tables")
    day, rows = offline.Day(200), []
    for hour, memory, came in day.hours(options.hours, options.controllers, 10):
        engine = day.engine
        rows.append([str(hour), f"{came:,}", f"{memory:.0f}", f"{len(engine.pods):,}",
                     f"{len(engine.controllers):,}", f"{len(engine.specs):,}", f"{engine.tables.kinds:,}"])  # fmt: skip
    print(f"Churn: {options.controllers:,} controllers an hour, each of 10 pods with a template of its own, "
          f"living half an hour on average\n\n{table(head, rows)}\n", flush=True)  # fmt: skip


def main() -> None:
    """Print the tables of the cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--nodes", nargs="+", type=int, default=[1000, 5000])
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--full-nodes", type=int, default=1000, help="Of the preemption.")
    parser.add_argument("--patience", type=float, default=240.0, help="Seconds until who is not bound counts as such.")
    parser.add_argument("--score", nargs="+", default=[], help="Throughput: also priority with these scores; all "
                        "pods have users at two zones then.")  # fmt: skip
    parser.add_argument("--schedulers", nargs="+", choices=(KUBE, *POLICIES, BINDER), help="These only; the first "
                        "stands for kube-scheduler in the columns of ratios.")  # fmt: skip
    parser.add_argument("--singles", type=int, default=1000, help="How many single pods.")
    parser.add_argument("--crowd", type=int, default=20_000, help="Pods that fit nowhere.")
    parser.add_argument("--stages", type=int, default=3, help="Of single pods, before and beside these, each.")
    parser.add_argument("--gates", default="", help="Feature gates of the API server, such as "
                        "DetectCacheInconsistency=false.")  # fmt: skip
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--controllers", type=int, default=1000, help="That come in an hour of churn.")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--kubelets", action="store_true", help="KWOK plays kubelets in every case.")
    options = parser.parse_args()
    with contextlib.suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    announce(f", {options.repeats} repetitions:" if options.repeats > 1 else ":")
    offline.ready()
    every = {"throughput": throughput, "preemption": preemption, "singles": singles, "crowded": crowded,
             "pass": passes, "churn": churn}  # fmt: skip
    for name in options.cases:
        every[name](options)


if __name__ == "__main__":
    main()
