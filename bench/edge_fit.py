"""Of a testbed's run (``run.yaml``, docs/edge.md) the parameters that come nearest to the published completion times.

All pods of a node are alike and start together, so a node's end is a formula here (slacktide.edge.sharing computes the
same event by event), and many sets of parameters are computed at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

METHODS = ("least-requested", "elastic-fog", "tsra", "nas", "kcss", *(f"delay-aware {a}" for a in (0.25, 0.5, 0.75)))
COMPLETION = {  # tables 6 and 7, seconds, in the order of METHODS
    (1, "low"): (13.25, 11.80, 11.78, 16.62, 17.04, 11.31, 11.23, 11.02),
    (1, "high"): (127.0, 104.03, 104.01, 198.51, 204.19, 101.52, 100.91, 99.41),
    (2, "low"): (16.92, 15.95, 15.65, 17.49, 19.59, 14.05, 14.37, 14.39),
    (2, "high"): (168.47, 160.13, 159.09, 277.20, 284.81, 139.95, 141.05, 143.17),
}
ITERATIONS = {"low": 250, "high": 3000}
VCPUS = {1: (2.0, 2.0, 2.0), 2: (2.0, 1.0, 1.0)}
BOUNDS = {  # of run.yaml, in its units; own loads are vCPUs by scenario and node
    "work": (1e-3, 0.02),
    "first_work": (0.01, 3.0),
    "startup": (0.5, 8.0),
    "requests": (0.1, 60.0),
    "requests_per_iteration": (0.01, 0.5),
    "competition": (1e-5, 0.1),
    "sustained": (1e-5, 1.0),
    "growth": (1.5, 40.0),
    "onset": (1.0, 60.0),
    "daemons": (0.01, 0.7),
    **{f"own {scenario} n{node}": (1e-3, 0.8 if VCPUS[scenario][node - 1] > 1 else 0.2)
       for scenario in (1, 2) for node in (1, 2, 3)},
}  # fmt: skip
LOW, HIGH = (np.log([one[side] for one in BOUNDS.values()]) for side in (0, 1))
PUBLISHED = np.log([COMPLETION[column] for column in COMPLETION])
PAIRS = [(a, b) for a in range(len(METHODS)) for b in range(len(METHODS)) if a < b]
APART = 1e-4
"""Logarithms of two completion times that differ by less are a tie; the nearest that are published differ by .00019."""

FIRM = 3.0
"""What an order missed weighs in a fit, beside an error of the same logarithm."""

Numbers = NDArray[np.float64]
Way = tuple[tuple[int, ...], tuple[float, ...]]
"""Pods on each node, and the longest delay of a request on each, seconds."""


@dataclass(frozen=True)
class Outcomes:
    """What a set of placements looks like: of every way in which a method places, its share of the method's runs."""

    ways: Mapping[tuple[int, str], Mapping[Way, float]]

    def arrays(self, scenario: int) -> tuple[NDArray[np.int64], Numbers, Numbers]:
        """Pods and longest delay by way and node, and the share of each way by method."""
        rows = [(m, way, share) for m, name in enumerate(METHODS) for way, share in self.ways[scenario, name].items()]
        shares = np.zeros((len(METHODS), len(rows)))
        for row, (m, _, share) in enumerate(rows):
            shares[m, row] = share
        return np.array([way[0] for _, way, _ in rows]), np.array([way[1] for _, way, _ in rows]), shares


class Fit:
    """Completion times of all methods, scenarios and loads, for many parameters at once; logarithms throughout."""

    def __init__(self, outcomes: Outcomes, limit: float, image: float) -> None:
        self.placed = {scenario: outcomes.arrays(scenario) for scenario in (1, 2)}
        self.limit, self.image = limit, image

    def seconds(self, logs: Numbers) -> Numbers:
        """By set, column of COMPLETION and method; ``logs``: by set, of BOUNDS' names."""
        given = dict(zip(BOUNDS, np.exp(logs).T[:, :, None, None], strict=True))
        columns = []
        for scenario, load in COMPLETION:
            pods, delays, shares = self.placed[scenario]
            vcpus = np.array(VCPUS[scenario])
            taken = given["daemons"] + np.concatenate([given[f"own {scenario} n{n}"] for n in (1, 2, 3)], axis=2)
            speed = np.minimum(self.limit, np.maximum(vcpus - taken, 0.01) / np.maximum(pods, 1))
            crowded = pods > vcpus
            now = 1.0 + crowded * given["competition"] * 2.0 ** (pods - 1)
            felt = now + crowded * given["sustained"] * given["growth"] ** (pods / vcpus - 1)
            work = given["first_work"] + ITERATIONS[load] * given["work"]
            before = work * now / speed
            onset = given["onset"]
            long = onset + (work - onset * speed / now) * felt / speed
            asked = given["requests"] + ITERATIONS[load] * given["requests_per_iteration"]
            ends = np.where(before > onset, long, before) + asked * delays
            last = np.where(pods > 0, ends, 0.0).max(axis=2)
            columns.append((given["startup"][:, :, 0] + self.image + last) @ shares.T)
        return np.stack(columns, axis=1)

    def residuals(self, logs: Numbers, firm: float = FIRM) -> Numbers:
        """By set: how far each logarithm is from the published one, then by how much each pair's order is missed."""
        found = np.log(self.seconds(logs))
        first, second = ([pair[side] for pair in PAIRS] for side in (0, 1))
        wanted = np.sign(PUBLISHED[:, second] - PUBLISHED[:, first])
        missed = firm * np.maximum(10 * APART - wanted * (found[:, :, second] - found[:, :, first]), 0.0)
        return np.concatenate([(found - PUBLISHED).reshape(len(logs), -1), missed.reshape(len(logs), -1)], axis=1)

    def judged(self, logs: Numbers) -> tuple[float, float]:
        """Mean error of the logarithm of all completion times, and how many pairs are in another order (ties: half)."""
        found = np.log(self.seconds(logs[None]))[0]
        wrong = 0.0
        for a, b in PAIRS:
            apart = (found[:, b] - found[:, a]) * np.sign(PUBLISHED[:, b] - PUBLISHED[:, a])
            wrong += float((apart <= -APART).sum() + (np.abs(apart) < APART).sum() / 2)
        return float(np.abs(found - PUBLISHED).mean()), wrong

    def fitted(self, logs: Numbers, steps: int, firm: float = FIRM) -> Numbers:
        """From a set of parameters on, by so many steps of Levenberg and Marquardt.

        Errors weigh by their inverse root (between least squares and least absolute errors), so that what cannot be
        met at all does not spoil the rest.
        """
        damping, each = 1e-2, 1e-4
        logs = np.clip(logs, LOW, HIGH)
        for _ in range(steps):
            points = np.vstack([logs, logs + each * np.eye(len(logs))])
            found = self.residuals(points, firm)
            weight = 1.0 / np.sqrt(np.abs(found[0]) + 0.01)
            slope = ((found[1:] - found[0]) / each * weight).T
            normal, right = slope.T @ slope, slope.T @ (found[0] * weight)
            dampings = damping * np.array([0.1, 1.0, 10.0, 100.0])
            diagonal = np.diag(np.diag(normal) + 1e-6)
            tried = np.clip([logs - np.linalg.solve(normal + d * diagonal, right) for d in dampings], LOW, HIGH)
            costs = ((self.residuals(tried, firm) * weight) ** 2).sum(axis=1)
            best = int(costs.argmin())
            if costs[best] >= ((found[0] * weight) ** 2).sum():
                damping *= 100.0
                if damping > 1e6:
                    break
                continue
            logs, damping = tried[best], max(float(dampings[best]), 1e-6)
        return logs
