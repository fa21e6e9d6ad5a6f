"""The policy ``hybrid``: ``qos-driven`` while the queue is short, ``priority`` while it is long.

An outlook of the doctoral thesis behind da Silva et al., "QoS-driven scheduling in the cloud"
(2020), its chapter 8: deciding by priority costs less work, so that a pass over a long queue
ends in time. It has no rule of its own but which of the two decides a pass: order of the queue,
eligibility, order of victims and cost are those of :mod:`.qos_driven` and :mod:`.priority`.
"""

from __future__ import annotations

from slacktide.kernels.builtin import PRIORITY, QOS_DRIVEN
from slacktide.kernels.runtime.compiling import leaf


@leaf
def decider(waiting: int, limit: int) -> int:
    """The policy that decides a pass over a queue of this length, with the setting ``queue_limit``; O(1)."""
    return QOS_DRIVEN if waiting <= limit else PRIORITY
