"""The cluster as the API server last described it."""
