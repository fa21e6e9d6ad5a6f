"""The rule of the papers in numbers: the metric, how it moves in time, and the ledger of a request."""
