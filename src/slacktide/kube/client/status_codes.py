"""HTTP statuses that the API server and others answer with, each named once."""

from __future__ import annotations

OK = 200
BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 400, 401, 403, 404
CONFLICT, GONE, TOO_LARGE, MISDIRECTED, UNPROCESSABLE, TOO_MANY = 409, 410, 413, 421, 422, 429
SERVER_ERROR, UNAVAILABLE, GATEWAY_TIMEOUT = 500, 503, 504
PERMANENT = (BAD_REQUEST, TOO_LARGE, UNPROCESSABLE)
"""What is sent again as it is will be refused again."""
