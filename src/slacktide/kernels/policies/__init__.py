"""The built-in policies, each in a file to be held beside the paper, and :mod:`.in_force`: which one decides now."""
