"""Where a waiting instance goes: the search for a host, and for victims on it."""
