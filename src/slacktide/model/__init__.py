"""What is scheduled, where, and what was promised: plain, validated data without behaviour."""

from slacktide.model.constraint import NO_CONSTRAINT, Constraint, Term
from slacktide.model.disruption_limits import DisruptionLimits
from slacktide.model.hosts import Hosts
from slacktide.model.hours import Hours
from slacktide.model.label import NO_LABEL, Label
from slacktide.model.network import NO_ACCESS, Access, Image, Network
from slacktide.model.placement import NO_NEIGHBOURS, Budget, Placement, Preference, Rule, Topology
from slacktide.model.request_events import ALWAYS_READY, NEVER_RESIZED, NOTHING_LOST, Past, Resizing, Unreadiness
from slacktide.model.service_class import DEFAULT_CLASSES, PenaltyTier, ServiceClass
from slacktide.model.window import Window
from slacktide.model.workload import AGGREGATED, APPROACHES, CONCURRENT, INDEPENDENT, Requests, Workload

__all__ = [
    "AGGREGATED",
    "ALWAYS_READY",
    "APPROACHES",
    "CONCURRENT",
    "DEFAULT_CLASSES",
    "INDEPENDENT",
    "NEVER_RESIZED",
    "NOTHING_LOST",
    "NO_ACCESS",
    "NO_CONSTRAINT",
    "NO_LABEL",
    "NO_NEIGHBOURS",
    "Access",
    "Budget",
    "Constraint",
    "DisruptionLimits",
    "Hosts",
    "Hours",
    "Image",
    "Label",
    "Network",
    "Past",
    "PenaltyTier",
    "Placement",
    "Preference",
    "Requests",
    "Resizing",
    "Rule",
    "ServiceClass",
    "Term",
    "Topology",
    "Unreadiness",
    "Window",
    "Workload",
]
