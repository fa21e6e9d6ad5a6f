"""Policies: a view of the cluster in, a plan out. The same code decides in the simulator and live."""

from slacktide.policy.api import Bind, Hold, Plan, Policy, View
from slacktide.policy.loader import available
from slacktide.policy.pieces import Metric, Pieces

__all__ = ["Bind", "Hold", "Metric", "Pieces", "Plan", "Policy", "View", "available"]
