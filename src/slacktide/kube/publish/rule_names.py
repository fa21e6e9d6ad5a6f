"""What users of Kubernetes call rules about neighbours."""

from __future__ import annotations

from slacktide.engine.explain.feasibility import rule_text
from slacktide.model import Rule

NAMED_MARKS = {
    ("away", "port:"): "have no free host port",
    ("away", "claim:"): "are barred as another pod uses a claim that one pod at a time may use",
    ("away", "avoids:"): "did not satisfy existing pods' anti-affinity",
    ("away", "pods:"): "did not match pod anti-affinity",
    ("near", "pods:"): "did not match pod affinity",
    ("spread", "counted:"): "did not match pod topology spread constraints",
}


def named_rule(rule: Rule) -> str:
    """What users of Kubernetes call a rule about neighbours (:mod:`.affinity_groups` makes the marks)."""
    head = rule.mark.partition(":")[0] + ":"
    return NAMED_MARKS.get((rule.kind, head)) or rule_text(rule)
