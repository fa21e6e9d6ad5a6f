"""What was promised against what was delivered: pure functions, columns in, table out."""

from slacktide.metrics.summary import ApproachSummary, Availability, ClassSummary, over_all, per_approach, per_class
from slacktide.metrics.unserved import Unserved, unserved

__all__ = [
    "ApproachSummary",
    "Availability",
    "ClassSummary",
    "Unserved",
    "over_all",
    "per_approach",
    "per_class",
    "unserved",
]
