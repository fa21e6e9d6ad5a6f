"""What a cluster did, from whatever tells of it, as the input of a simulation.

Every source becomes a story: objects of the API server, each with the instant from which on it was so. The story is
told to what a live scheduler has: the mirror, the feed, and an engine that follows reality and decides nothing. So
ledgers, causes and constraints are those of a live scheduler.
"""
