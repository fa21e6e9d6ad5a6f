"""The published edge testbed: its runs computed by processor sharing, and repeated with real work.

A run takes a placement as it is and says how long users wait and when the last
task is done; where pods go is for the policies.
"""
