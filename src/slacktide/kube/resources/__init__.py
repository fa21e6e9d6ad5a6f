"""Objects of the API server as types: only the fields in use, and the bodies that are sent."""
