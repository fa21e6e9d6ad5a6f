"""Scores that compare hosts with each other: delay-aware and its comparators, one file each."""
