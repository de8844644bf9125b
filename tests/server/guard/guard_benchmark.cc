// What the guard costs a round: the promise is less than a hundredth of a round of 1 ms, 10 us.
//
// Sizes as with the demo's target (3 captures of 576) and with a large one (3 of 7168), bf16. Rows
// are made up; the guard's work does not depend on what they hold.
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "common/check.h"
#include "common/float16.h"
#include "server/guard/guard_profile_builder.h"
#include "server/guard/live_guard.h"
#include "server/guard/wiring_guard.h"

namespace aerie {
namespace {

std::string RandomRows(int64_t rows, int64_t width, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes;
  for (int64_t i = 0; i < rows * width; ++i) {
    const float value = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
    const uint16_t bits = FloatToBf16(value * static_cast<float>(seed % 7 + 1));
    bytes.push_back(static_cast<char>(bits & 0xff));
    bytes.push_back(static_cast<char>(bits >> 8));
  }
  return bytes;
}

HiddenRows View(const std::string& bytes, int64_t rows, int64_t width) {
  absl::StatusOr<HiddenRows> view = HiddenRows::Create(DType::kBF16, rows, width, bytes);
  AERIE_CHECK(view.ok()) << view.status().message();
  return *view;
}

// Of a target with 31 recorded captures.
GuardProfile MakeProfile(int32_t hidden) {
  constexpr int64_t kRows = 120;
  std::vector<Capture> recorded;
  std::vector<std::string> bytes;
  RecordedRows rows;
  for (int32_t b = 0; b <= 30; ++b) {
    recorded.push_back(Capture::Boundary(b));
    bytes.push_back(RandomRows(kRows, hidden, static_cast<uint32_t>(b)));
  }
  for (const std::string& capture : bytes) rows.push_back(View(capture, kRows, hidden));
  const Wiring declared =
      *Wiring::Create({Capture::Boundary(2), Capture::Boundary(15), Capture::Boundary(27)}, 30);
  absl::StatusOr<GuardProfile> profile = BuildGuardProfile(declared, recorded, {rows});
  AERIE_CHECK(profile.ok()) << profile.status().message();
  return *std::move(profile);
}

// Rounds of range(1) rows of one session; votes and their weighing are part of it.
void BM_Round(benchmark::State& state) {
  const auto hidden = static_cast<int32_t>(state.range(0));
  const int64_t rows = state.range(1);
  WiringGuard guard({.profile = MakeProfile(hidden), .captures = 3});
  const auto watch = guard.Watch("client", "target", absl::UnixEpoch());
  const std::string bytes = RandomRows(rows, 3 * hidden, 5);
  const HiddenRows view = View(bytes, rows, 3 * hidden);
  std::vector<int32_t> tokens(static_cast<size_t>(rows));
  int64_t length = 100;
  for (auto _ : state) {
    for (int32_t& token : tokens) token = static_cast<int32_t>(length * 7919 % 211);
    watch->OnRows(length, tokens, view, absl::UnixEpoch());
    length += rows;
  }
}
BENCHMARK(BM_Round)->ArgsProduct({{576, 7168}, {1, 4, 64, 512}})->Unit(benchmark::kMicrosecond);

// All that a call pays in a server: behind the engine's observer, with a judgement.
void BM_LiveRound(benchmark::State& state) {
  const auto hidden = static_cast<int32_t>(state.range(0));
  const int64_t rows = state.range(1);
  LiveGuard guard({.profile = MakeProfile(hidden), .captures = 3});
  Manifest manifest;
  manifest.target_id = "target";
  const std::string client = "client";
  const auto watch = guard.Watch({.client = client, .manifest = manifest}, absl::UnixEpoch());
  const std::string bytes = RandomRows(rows, 3 * hidden, 5);
  const HiddenRows view = View(bytes, rows, 3 * hidden);
  std::vector<int32_t> tokens(static_cast<size_t>(rows));
  int64_t length = 100;
  for (auto _ : state) {
    for (int32_t& token : tokens) token = static_cast<int32_t>(length * 7919 % 211);
    watch->OnRows(length, tokens, view, absl::UnixEpoch());
    watch->OnJudgement({.proposed = 3, .depth = 3, .accepted = 1}, absl::UnixEpoch());
    length += rows;
  }
}
BENCHMARK(BM_LiveRound)->ArgsProduct({{576, 7168}, {1, 4}})->Unit(benchmark::kMicrosecond);

// What a session, or a stateless call, pays beside its rows.
void BM_LiveSession(benchmark::State& state) {
  LiveGuard guard({.profile = MakeProfile(576), .captures = 3});
  Manifest manifest;
  manifest.target_id = "target";
  const std::string client = "client";
  for (auto _ : state) guard.Watch({.client = client, .manifest = manifest}, absl::UnixEpoch());
}
BENCHMARK(BM_LiveSession)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace aerie

BENCHMARK_MAIN();
