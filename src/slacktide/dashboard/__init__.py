"""A page in the browser: who keeps its promise, who waits and why, and who made room for whom.

One model (:mod:`.view`) is what the page shows, whether it comes from a live scheduler (:mod:`.live`), from the results
of a simulation (:mod:`.simulation`) or from a recorded session (:mod:`.recorded`).
"""
