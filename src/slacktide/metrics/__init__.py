"""What was promised against what was delivered: pure functions, columns in, table out."""

from slacktide.metrics.summary import Availability, ClassSummary, over_all, per_class

__all__ = ["Availability", "ClassSummary", "over_all", "per_class"]
