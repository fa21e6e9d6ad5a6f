"""The statistics of the generated cell: rounded frequencies of the published one-hour sample of the Google trace.

docs/generators.md compares what comes out with that sample.
"""

from __future__ import annotations

from dataclasses import dataclass

from slacktide.model import Constraint, Term

# Share of hosts, CPU, memory, generation (an attribute that goes with the shape).
SHAPES = (
    (0.523, 0.5, 0.5, "6"),
    (0.301, 0.5, 0.25, "4"),
    (0.085, 0.5, 0.75, "9"),
    (0.074, 1.0, 1.0, "11"),
    (0.017, 0.25, 0.25, "5"),
)
PLATFORM = {1.0: "1", 0.5: "2", 0.25: "3"}
SOCKETS = {1.0: "2", 0.5: "4", 0.25: "4"}
# Kernel version and its share; "turbo" stands on six hosts of ten, "drained" on two of five, "reserved" on few.
KERNELS = (("3", 0.565), ("13", 0.203), ("2", 0.132), ("15", 0.052), ("12", 0.032), ("14", 0.010), ("11", 0.006))
TURBO = 0.61
DRAINED = 0.38
RESERVED = 0.003
HOSTS_PER_RACK = 2.1
HOSTS_PER_BOARD = 1.08


def terms(racks: int) -> tuple[tuple[Term, float], ...]:
    """The vocabulary of constraints with relative frequencies; the first term is 'anywhere', with none."""
    open_to_all = Constraint("reserved", "==", "0")
    not_big = Constraint("platform", "/=", "1")
    turbo = Constraint("turbo", "==", "2")
    common = (
        ((open_to_all,), 30.0),
        ((not_big, open_to_all), 27.5),
        ((Constraint("kernel", "<", "5"), Constraint("kernel", ">", "2"), turbo), 10.0),
        ((Constraint("kernel", ">", "4"), Constraint("kernel", "<", "14"), turbo), 5.4),
        ((not_big,), 4.5),
        ((Constraint("generation", ">", "5"),), 2.2),
        ((Constraint("generation", ">", "2"),), 1.8),
        ((Constraint("kernel", ">", "0"), Constraint("kernel", "<", "3"), turbo), 1.5),
        ((Constraint("sockets", ">", "2"), open_to_all), 1.5),
        ((Constraint("platform", "==", "2"), open_to_all), 1.3),
        ((Constraint("sockets", "==", "4"),), 0.6),
        ((Constraint("drained", "==", "0"), open_to_all), 0.6),
    )
    # Requests that must stay away from some racks: many rare terms.
    away = []
    for number in range(36):
        avoided = [Constraint("rack", "/=", f"r{(number * 7 + step * 11) % racks}") for step in range(1 + number % 4)]
        away.append(((*avoided, open_to_all) if number % 3 else tuple(avoided), 12.0 / 36))
    return ((Term(), 0.0), *((Term(constraints), weight) for constraints, weight in (*common, *away)))


@dataclass(frozen=True, slots=True)
class Population:
    """A kind of job. Its templates (job shapes that come again and again) are drawn from these figures.

    tasks       share among the tasks of its group (standing services, or arrivals)
    templates   how many different ones; popularity falls as 1 / rank^0.9
    cpu, memory quantiles 0, .1, .25, .5, .75, .9, 1 of the demand
    sizes       tasks of a job, and share of tasks in such jobs
    siblings    jobs admitted at one instant
    apart       share of tasks in anti-affine jobs, among jobs of more than one task
    constrained share of tasks with constraints
    duration    median duration of a template's tasks: quantiles as for cpu, in the scale of the sample
    """

    service_class: int
    tasks: float
    templates: int
    cpu: tuple[float, ...]
    memory: tuple[float, ...]
    sizes: tuple[tuple[int, float], ...]
    siblings: int
    apart: float
    constrained: float
    duration: tuple[float, ...] = ()


LEVELS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)

SERVICES = (
    Population(
        0, 0.41, 180,
        (0.0006, 0.019, 0.056, 0.0625, 0.1125, 0.1875, 0.30),
        (0.0006, 0.007, 0.026, 0.038, 0.080, 0.139, 0.24),
        ((1, 0.45), (2, 0.12), (3, 0.10), (6, 0.10), (14, 0.10), (30, 0.13)), 1, 0.78, 0.65,
    ),
    Population(
        1, 0.17, 70,
        (0.0006, 0.025, 0.031, 0.0625, 0.0625, 0.094, 0.25),
        (0.0016, 0.010, 0.013, 0.033, 0.064, 0.118, 0.13),
        ((1, 0.25), (5, 0.20), (26, 0.25), (60, 0.20), (150, 0.10)), 1, 0.24, 0.10,
    ),
    Population(
        2, 0.42, 70,
        (0.0006, 0.006, 0.0125, 0.019, 0.041, 0.0625, 0.25),
        (0.0008, 0.004, 0.007, 0.016, 0.021, 0.040, 0.24),
        ((1, 0.10), (5, 0.10), (40, 0.20), (120, 0.30), (600, 0.30)), 1, 0.17, 0.04,
    ),
)  # fmt: skip
"""Standing load: services that are there at the start and never complete."""

_FARM = (0.025,) * 7
ARRIVALS = (
    # One user's farm of equal jobs, twenty at a time: half of all rows of the sample.
    Population(1, 0.590, 1, _FARM, (0.0334,) * 7, ((52, 1.0),), 20, 1.0, 0.0, (320.0,) * 7),
    Population(1, 0.115, 1, _FARM, (0.0255,) * 7, ((52, 1.0),), 10, 1.0, 0.0, (340.0,) * 7),
    Population(1, 0.055, 1, _FARM, (0.0119,) * 7, ((52, 1.0),), 20, 1.0, 0.0, (240.0,) * 7),
    Population(
        1, 0.142, 170,
        (0.0006, 0.009, 0.0125, 0.031, 0.0625, 0.1, 0.125),
        (0.0001, 0.003, 0.006, 0.012, 0.021, 0.05, 0.08),
        ((1, 0.14), (4, 0.10), (12, 0.20), (50, 0.36), (190, 0.20)), 1, 0.2, 0.015,
        (15.0, 100.0, 150.0, 300.0, 600.0, 2400.0, 20000.0),
    ),
    Population(
        2, 0.093, 90,
        (0.006, 0.006, 0.0063, 0.0125, 0.031, 0.034, 0.125),
        (0.0002, 0.003, 0.005, 0.0155, 0.0155, 0.06, 0.064),
        ((1, 0.10), (30, 0.05), (220, 0.40), (500, 0.45)), 1, 0.0, 0.002,
        (18.0, 150.0, 250.0, 450.0, 4000.0, 20000.0, 30000.0),
    ),
    Population(
        0, 0.005, 20,
        (0.006, 0.0125, 0.056, 0.0625, 0.0625, 0.0625, 0.0625),
        (0.0016, 0.0023, 0.016, 0.064, 0.127, 0.127, 0.13),
        ((1, 0.6), (10, 0.4)), 1, 0.0, 0.03, (70.0, 90.0, 200.0, 600.0, 1600.0, 7700.0, 7700.0),
    ),
)  # fmt: skip
"""What arrives and completes."""

# Durations within a template: log-normal about its median; a few run up to a hundred times longer.
SPREAD = 0.5
TAIL_SHARE = 0.03
TAIL_POWER = 1.3
TAIL_LONGEST = 100.0
