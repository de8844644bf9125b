"""The log of llama.cpp is read as its source writes it. Lines were logged by xllamacpp 2026.10.11549."""

import pytest
from llamacpp_log import Drafting, build, drafting, pass_us

LOG = """\
0.00.001.924 I cmn  common_param: system_info: n_threads = 1 (n_threads_batch = 1) / 2 | CPU : AVX2 = 1 | REPACK = 1 |
0.06.916.007 I spec common_specu: - n_max=4, n_min=0, p_min=0.000000, backend_sampling=1
2.01.348.212 I spec common_specu: statistics     draft-eagle3: #calls(b,g,a) =    1     58     58, #gen drafts =     58, \
#acc drafts =     1, #gen tokens =    226, #acc tokens =     4, #mean acc len = 1.07, #acc rate/pos = (0.017, 0.017, \
0.017, 0.017), dur(b,g,a) = 0.004, 4842.046, 0.108 ms
2.17.224.295 I spec common_specu: statistics     draft-eagle3: #calls(b,g,a) =    2    102    102, #gen drafts =    102, \
#acc drafts =    20, #gen tokens =    397, #acc tokens =    23, #mean acc len = 1.23, #acc rate/pos = (0.196, 0.010, \
0.010, 0.010), dur(b,g,a) = 0.008, 5670.132, 0.191 ms
2.17.224.300 I spec common_specu: statistics     ngram-simple: #calls(b,g,a) =    2    102    102, #gen drafts =    102, \
#acc drafts =    20, #gen tokens =    397, #acc tokens =    23, dur(b,g,a) = 0.008, 1.000, 0.191 ms
"""


def test_each_request_that_ended_has_its_sums():
    assert drafting(LOG) == [Drafting(58, 226, 4842.046), Drafting(102, 397, 5670.132)]


def test_another_way_to_draft_is_told_apart():
    assert drafting(LOG, "ngram-simple") == [Drafting(102, 397, 1.0)]


def test_a_pass_is_a_request_s_share_by_calls_times_k_without_the_first_request():
    # 44 calls of 4 passes, of whose tokens 5 were cut off at the end of the answer.
    assert pass_us(drafting(LOG), 4) == [pytest.approx((5670.132 - 4842.046) * 1e3 / (44 * 4))]


@pytest.mark.parametrize(
    "sums, words",
    [
        ([Drafting(58, 226, 4842.0)], "1 requests"),
        ([Drafting(1, 4, 1.0), Drafting(1, 4, 1.0)], "0 draft calls"),
        ([Drafting(1, 4, 1.0), Drafting(3, 13, 2.0)], "2 draft calls gave 9 tokens"),
        ([Drafting(1, 4, 1.0), Drafting(3, 5, 2.0)], "2 draft calls gave 1 tokens"),
    ],
)
def test_sums_that_cannot_be_are_refused(sums, words):
    with pytest.raises(ValueError, match=words):
        pass_us(sums, 4)


def test_the_build_names_its_cpu_features():
    assert build(LOG) == "n_threads = 1 (n_threads_batch = 1) / 2 | CPU : AVX2 = 1 | REPACK = 1 |"
    assert build("nothing") == ""
