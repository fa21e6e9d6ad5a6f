"""What kube-scheduler says of nodes on which a rule about other pods fails."""

from __future__ import annotations

from slacktide.engine.explain.feasibility import rule_text
from slacktide.model import Rule

READ_WRITE_ONCE_POD = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
NAMED_MARKS = {
    ("away", "port:"): "node(s) didn't have free ports for the requested pod ports",
    ("away", "claim:"): READ_WRITE_ONCE_POD,
    ("away", "avoids:"): "node(s) didn't satisfy existing pods anti-affinity rules",
    ("away", "pods:"): "node(s) didn't match pod anti-affinity rules",
    ("near", "pods:"): "node(s) didn't match pod affinity rules",
    ("spread", "counted:"): "node(s) didn't match pod topology spread constraints",
}


def named_rule(rule: Rule) -> str:
    """What kube-scheduler says where a rule about other pods fails (:mod:`.affinity_groups` makes the marks)."""
    head = rule.mark.partition(":")[0] + ":"
    return NAMED_MARKS.get((rule.kind, head)) or rule_text(rule)
