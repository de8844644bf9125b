"""Lets llama.cpp draft with one thread, and leaves it to its log to tell how long that took.

    build/llamacpp/venv/bin/python tests/benchmarks/llamacpp_drafts.py --target FILE --drafter FILE

Run by the Python that has xllamacpp; its log is on stderr, and llamacpp_log.py reads it. Drafts are
much longer than what is kept of them: the target's pass between two drafts throws the head out of
the cache, and nobody wants to time its coming back.
"""

import argparse
import http.client
import json
import urllib.parse

import xllamacpp

# What makes llama.cpp tell the times of its drafts.
TRACE = 4


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", required=True, help="GGUF of the target")
    parser.add_argument("--drafter", required=True, help="GGUF of the head")
    parser.add_argument("--k", type=int, default=16, help="tokens of a draft")
    parser.add_argument("--context", type=int, default=120, help="tokens of the prompt")
    parser.add_argument("--tokens", type=int, default=4, help="of an answer")
    parser.add_argument("--requests", type=int, default=20)
    arguments = parser.parse_args()
    parameters = xllamacpp.CommonParams()
    parameters.model.path = arguments.target
    parameters.n_ctx, parameters.n_parallel = 1024, 1
    parameters.fit_params, parameters.verbosity = False, TRACE
    kinds, draft = xllamacpp.common_speculative_type, parameters.speculative.draft
    parameters.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_EAGLE3]
    draft.mparams.path = arguments.drafter
    draft.n_max, draft.p_min = arguments.k, 0.0  # always k tokens, however unlikely
    for threads in (
        parameters.cpuparams,
        parameters.cpuparams_batch,
        draft.cpuparams,
        draft.cpuparams_batch,
    ):
        threads.n_threads = 1
    server = xllamacpp.Server(parameters)
    address = urllib.parse.urlparse(server.listening_address).netloc
    prompt = [7 * i % 4000 + 300 for i in range(arguments.context)]
    body = {"prompt": prompt, "n_predict": arguments.tokens, "temperature": 0, "ignore_eos": True}
    for _ in range(arguments.requests):
        connection = http.client.HTTPConnection(address, timeout=600)
        try:
            connection.request(
                "POST", "/completion", json.dumps(body), {"Content-Type": "application/json"}
            )
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            parser.exit(1, f"/completion answered {answer.status}: {content[:500]!r}\n")


if __name__ == "__main__":
    main()
