"""What is written for people and for the next leader: Availability objects, events, conditions."""
