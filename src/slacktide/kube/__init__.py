"""The live driver: what Kubernetes says becomes events, what a policy decides becomes API calls.

From ``client`` (HTTP) upwards: ``resources``, ``translate``, ``mirror``, ``feed``, ``publish``, ``act``, ``scheduler``.
Nothing here decides where a pod runs.
"""
