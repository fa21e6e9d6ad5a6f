"""Policies, scores and costs as a user would write them: the text of files that tests load."""

from __future__ import annotations

FIRST_FIT = '''
"""Places whoever waits on the first host with room, never preempts."""
from slacktide.policy import Bind, Hold, Plan


class FirstFit:
    def decide(self, view, now):
        free = view.free
        binds, holds, taken = [], [], {}
        for row in view:
            job = int(view.workload.job[row])
            demand = view.demand(row)
            fits = view.allowed(row) & (free >= demand - 1e-12).all(axis=1)
            if view.workload.anti_affinity[row]:
                for host in taken.get(job, ()):
                    fits[host] = False
            hosts = fits.nonzero()[0]
            if len(hosts) == 0:
                holds.append(Hold(row, "no host has room"))
                continue
            host = int(hosts[0])
            free[host] -= demand
            taken.setdefault(job, []).append(host)
            binds.append(Bind(row, host, (), "first fit"))
        return Plan(tuple(binds), tuple(holds))
'''

RANDOM_FIT = FIRST_FIT.replace("hosts[0]", "view.random.choice(hosts)").replace("FirstFit", "RandomFit")

LEAST_REQUESTED = """
def score(capacity, free, demand):
    total = 0.0
    for r in range(2):
        if capacity[r] > 0.0:
            total += (free[r] - demand[r]) / capacity[r]
    return total
"""

FEWEST = """
def cost(slack, rank, out):
    out[0] = -len(slack)


def most_slack(slack, rank, out):
    out[0] = slack.sum()
"""

BAD_PLANS = {
    "a row that does not wait": ("Plan((Bind(10**6, 0),))", "bound without waiting"),
    "a negative row": ("Plan((Bind(-1, 0),))", "bound without waiting"),
    "bound twice": ("Plan((Bind(0, 0), Bind(0, 0)))", "bound without waiting"),
    "no such host": ("Plan((Bind(0, 99),))", "host 99"),
    "a host that is not allowed": ("Plan((Bind(2, 0),))", "not allowed: its attributes do not satisfy the constraints"),
    "no room": ("Plan((Bind(0, 0), Bind(1, 0)))", "has no room"),
    "a victim that does not run": ("Plan((Bind(0, 0, (1,)),))", "victim 1"),
    "a victim of another host": ("Plan((Bind(1, 1), Bind(0, 0, (1,))))", "victim 1"),
    "a victim named twice": ("Plan((Bind(0, 0), Bind(1, 0, (0, 0))))", "named twice"),
    "a victim that is nobody": ("Plan((Bind(0, 0, (-7,)),))", "victim -7"),
    "no plan": ("None", "expected a Plan"),
    "no list of binds": ("[3]", "found 3 in Plan.binds"),
    "no row": ("Plan(holds=[Hold('all', 'full')])", "in Plan.holds"),
    "an exception": ("1 / 0", r"at 0 s: .*bad.py:6: ZeroDivisionError"),
    "an exception in what it calls": ("view.metric(10**6)", r"at 0 s: .*bad.py:6: IndexError"),
}
"""What decide() returns, and what the error must say; rows 0 and 1 fill a host each, row 2 wants host 1."""


def policy_returning(expression: str) -> str:
    """A policy's source whose every decision is this expression."""
    head = "from slacktide.policy import Bind, Hold, Plan\n\n\nclass Bad:\n    def decide(self, view, now):\n"
    return f"{head}        return {expression}\n"
