"""llama.cpp's HTTP server, run by the Python that has xllamacpp; ends with SIGTERM.

What one would get wrong: with two threads its barriers spin, and on a busy machine each waits for
the other's core.
"""

import argparse
import pathlib
import signal

import xllamacpp


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", required=True, help="GGUF of the target")
    parser.add_argument("--drafter", help="GGUF of the head; without it nothing is drafted")
    parser.add_argument("--k", type=int, default=0, help="tokens of a draft")
    parser.add_argument("--port-file", type=pathlib.Path, required=True, help="gets its address")
    arguments = parser.parse_args()
    parameters = xllamacpp.CommonParams()
    parameters.model.path = arguments.target
    parameters.n_ctx, parameters.n_parallel = 1024, 1
    parameters.fit_params, parameters.endpoint_metrics = False, True
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    if arguments.drafter:
        kinds, draft = xllamacpp.common_speculative_type, parameters.speculative.draft
        parameters.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_EAGLE3]
        draft.mparams.path = arguments.drafter
        # Drafts of always k tokens, however unlikely, as the other engines make them.
        draft.n_max, draft.p_min = arguments.k, 0.0
        draft.cpuparams.n_threads = 1
    stopped = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stopped)
    server = xllamacpp.Server(parameters)
    arguments.port_file.write_text(server.listening_address)
    signal.sigwait(stopped)


if __name__ == "__main__":
    main()
