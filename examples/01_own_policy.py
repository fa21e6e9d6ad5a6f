"""A policy of your own: first come, first served, on the first host with room. Nobody is preempted.

    slacktide generate cell --set hosts=62 --set requests=2300 --out small
    slacktide simulate small/workload.parquet small/hosts.parquet --end 3600 --policy examples/01_own_policy.py:FirstFit

A policy is asked once a pass, while somebody waits. It answers with a plan. The plan says who
starts where, and why the others do not start. It is checked before it is carried out.
"""

from slacktide.policy import Bind, Hold, Plan, View


class FirstFit:
    """Serves requests in the order of admission. One that fits nowhere lets the next go first."""

    def decide(self, view: View, now: float) -> Plan:  # noqa: ARG002
        """Must be deterministic. If you need chance, take it from ``view.random``. ``now`` is in seconds."""
        free = view.free  # a copy, shape (hosts, resources): what this plan takes is taken off here
        taken: dict[int, set[int]] = {}  # hosts that this plan gives to an anti-affine job
        failed: set[tuple[bytes, int, int | None]] = set()  # what found no host need not be tried again in this pass
        binds: list[Bind] = []
        holds: list[Hold] = []
        for row in view.waiting.tolist():
            demand = view.demand(row)
            job = int(view.workload.job[row]) if view.workload.anti_affinity[row] else None
            asks = (demand.tobytes(), int(view.workload.term[row]), job)
            if asks in failed:
                holds.append(Hold(row, "an equal request found no host in this pass"))
                continue
            fits = view.allowed(row) & (free >= demand).all(axis=1)
            if job is not None:
                fits[sorted(taken.get(job, ()))] = False
            if not fits.any():
                failed.add(asks)
                holds.append(Hold(row, f"0/{len(fits)} hosts: no allowed host has room"))
                continue
            host = int(fits.argmax())
            free[host] -= demand
            if job is not None:
                taken.setdefault(job, set()).add(host)
            binds.append(Bind(row, host, reason=f"{view.hosts.names[host]} is the first with room"))
        return Plan(tuple(binds), tuple(holds))
