"""The API server over HTTP: credentials, requests, lists and watches."""
