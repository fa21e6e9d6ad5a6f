"""What can be asked of a running scheduler: metrics, explanations, pages over HTTP."""
