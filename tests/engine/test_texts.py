"""A real engine under eight clients: its answers are those of plain decoding, and its counts are the
server's."""

import time

import faults
from engine_answers import SpecDecode
from traffic import Traffic


def settled(world):
    """Both programs' counters, once they stand still: ends of requests are told in passing."""
    end = time.monotonic() + 60.0
    while True:
        engine = SpecDecode.read(world.engine.metrics(), "vllm:", faults.K)
        server = SpecDecode.read(world.server.metrics(), "aerie_", faults.K)
        if engine == server or time.monotonic() > end:
            return engine, server
        time.sleep(0.1)


def test_texts_are_those_of_plain_decoding_and_both_programs_count_the_same(world, plain):
    with Traffic(world.engine, plain, faults.MAX_TOKENS) as traffic:
        # Requests that sample share the batches; their drafts are judged and counted alike. No
        # seed: vLLM 0.32 on the CPU dies of a seeded request whose prompt comes in pieces.
        for prompt in list(plain)[:4]:
            world.engine.ask(prompt, faults.MAX_TOKENS, temperature=0.8)
        traffic.wait_for(16, faults.PATIENCE)
    assert (traffic.verdicts["lost"], traffic.verdicts["wrong"]) == (0, 0), traffic.faults
    page = world.engine.metrics()
    print(
        f"\n{dict(traffic.verdicts)}, preemptions "
        f"{page.sum('vllm:num_preemptions_total'):.0f}, cached prompt tokens "
        f"{page.sum('vllm:prefix_cache_hits_total'):.0f}"
    )
    engine, server = settled(world)
    print(f"engine {engine}\nserver {server}")
    assert engine.drafts > 0 and engine.accepted_tokens > 0
    assert engine == server
    mismatches = world.server.metrics().sum("aerie_accept_report_mismatch_total")
    assert mismatches == 0
