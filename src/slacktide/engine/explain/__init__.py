"""Why a pod waits: what stands in the way on each host. It reads the tables and changes nothing."""
