"""The live driver: what Kubernetes says becomes events, what a policy decides becomes API calls.

``connection`` speaks HTTP, ``objects`` decodes what the API server sends, ``watching`` keeps a handler
up to date, ``leases`` says who may act and ``recorder`` writes events. Nothing here decides where a pod runs.
"""
