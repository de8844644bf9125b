// Upper bounds of the histograms' buckets, each chosen for its quantity. All grow and leave out
// +Inf.
#pragma once

#include <cstdint>
#include <vector>

namespace aerie {

// 25 us to 1 s, about 1.6 apart: five to a decade.
std::vector<double> DraftDurationBuckets();
// The same, then up to an hour: a stream lives as long as its client.
std::vector<double> RpcDurationBuckets();
// 1 to max_k + 1 in steps of a quarter.
std::vector<double> AcceptLengthBuckets(int32_t max_k);
// 0.05 to 1 in steps of 0.05.
std::vector<double> RatioBuckets();
// 1 to 5000.
std::vector<double> TokensPerSecondBuckets();
// 1 to `most`: every number up to 8, then four to a doubling, and `most` itself.
std::vector<double> CountBuckets(int32_t most);
// The same from 0 on.
std::vector<double> CountBucketsFromZero(int32_t most);

}  // namespace aerie
