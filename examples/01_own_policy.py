"""A policy of your own: first come, first served, on the first host with room. Nobody is preempted.

    slacktide generate cell --set hosts=62 --set requests=2300 --out small
    slacktide simulate small/workload.parquet small/hosts.parquet --end 3600 --policy examples/01_own_policy.py:FirstFit

A policy is asked once a pass, while somebody waits. It answers with a plan. The plan says who
starts where, and why the others do not start. It is checked before it is carried out.
"""

import numpy as np

from slacktide.policy import Bind, Hold, Plan, View


class FirstFit:
    """Serves requests in the order of admission. One that fits nowhere lets the next go first."""

    def decide(self, view: View, now: float) -> Plan:  # noqa: ARG002
        """Must be deterministic. If you need chance, take it from ``view.random``. ``now`` is in seconds."""
        free = view.free  # a copy, shape (hosts, resources): what this plan takes is taken off here
        taken: dict[int, list[int]] = {}  # hosts that this plan gives to each job
        binds: list[Bind] = []
        holds: list[Hold] = []
        left = np.arange(len(view.waiting))  # places in view.waiting, by admission
        while len(left):
            row, demand = int(view.waiting[left[0]]), view.demands[left[0]]
            fits = view.allowed(row) & (free >= demand).all(axis=1)
            job = int(view.workload.job[row])
            if view.workload.anti_affinity[row]:
                fits[taken.get(job, [])] = False
            if fits.any():
                host = int(fits.argmax())
                free[host] -= demand
                taken.setdefault(job, []).append(host)
                binds.append(Bind(row, host, reason=f"{view.hosts.names[host]} is the first with room"))
                left = left[1:]
            else:  # nor is there one for who asks for as much: in one pass room only becomes less
                hopeless = view.as_hard(left[0], free)[left]
                rows = view.waiting[left[hopeless]].tolist()
                holds.append(Hold(tuple(rows), f"0/{len(fits)} hosts: no allowed host has room"))
                left = left[~hopeless]
        return Plan(tuple(binds), tuple(holds))
