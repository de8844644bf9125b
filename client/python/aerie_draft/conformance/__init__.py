"""Plays a strict server to a worker under test, and a strict worker to a server under test.

Every rule of docs/worker-contract.md that can be seen from outside has a name and a check here; a
rule that never came into play is reported as skipped, not as passed. From programs:
`worker_suite.check_worker` and `server_suite.check_server`; from a shell: `aerie-conformance`.
"""
