"""Annotations on a pod that steer a played kubelet (KWOK, as the lab configures it).

Values are seconds as decimal numbers, in a pod's (template's) annotations. What cannot be read as a number
counts as absent.
"""

from __future__ import annotations

STARTUP_SECONDS = "slacktide.io/startup-seconds"
"""From the binding to the Ready condition; at once without it."""

RUN_SECONDS = "slacktide.io/run-seconds"
"""From Ready to the containers' end, of pods whose restartPolicy is not Always; never without it."""

EXIT_CODE = "slacktide.io/exit-code"
"""With which the containers end then; 0 without it."""

SHUTDOWN_SECONDS = "slacktide.io/shutdown-seconds"
"""From the deletion to the containers' end, at most the grace period; exactly the grace period without it."""

REJECT_REASON = "slacktide.io/reject-reason"
"""The kubelet refuses the pod with this reason (OutOfcpu, for example)."""
