"""Tables with columns of one's own: which of them are ours (``--columns``), and what their cells mean."""
