"""What happens to instances, one event after the other: passes, cycles, gangs, resizes, ends."""
