#include "common/rpc/wiring_report_codec.h"

#include "common/check.h"

namespace aerie::rpc {
namespace {

void EncodeCapture(const Capture& capture, v1::Capture* out) {
  if (capture.kind == Capture::Kind::kFinalNorm) {
    out->set_kind(v1::CAPTURE_KIND_FINAL_NORM);
    return;
  }
  out->set_kind(v1::CAPTURE_KIND_BOUNDARY);
  out->set_boundary(static_cast<uint32_t>(capture.boundary));
}

uint64_t Count(int64_t count) { return static_cast<uint64_t>(count); }

void EncodeDrafting(const DraftingReport& report, v1::DraftingReport* out) {
  out->set_expected_accuracy(report.expected_accuracy);
  out->set_expected_log_likelihood(report.expected_log_likelihood);
  out->set_expected_accept_length(report.expected_accept_length);
  if (report.accuracy.has_value()) out->set_accuracy(*report.accuracy);
  if (report.log_likelihood.has_value()) out->set_log_likelihood(*report.log_likelihood);
  if (report.accept_length.has_value()) out->set_accept_length(*report.accept_length);
  for (const double share : report.acceptance) out->add_acceptance(share);
  for (const double share : report.expected) out->add_expected_acceptance(share);
  out->set_judged(Count(report.judged));
  out->set_worker_counts(Count(report.worker_counts));
  out->set_worker_differs(Count(report.worker_differs));
  out->set_below_expectation(report.below_expectation);
}

}  // namespace

v1::WiringState EncodeWiringState(WiringState state) {
  switch (state) {
    case WiringState::kUnknown:
      return v1::WIRING_STATE_UNKNOWN;
    case WiringState::kOk:
      return v1::WIRING_STATE_OK;
    case WiringState::kSuspect:
      return v1::WIRING_STATE_SUSPECT;
    case WiringState::kWrong:
      return v1::WIRING_STATE_WRONG;
  }
  AERIE_CHECK(false) << "no such state";
}

v1::WiringGuardMode EncodeGuardMode(GuardMode mode) {
  switch (mode) {
    case GuardMode::kOff:
      return v1::WIRING_GUARD_MODE_OFF;
    case GuardMode::kAlert:
      return v1::WIRING_GUARD_MODE_ALERT;
    case GuardMode::kNotServing:
      return v1::WIRING_GUARD_MODE_NOT_SERVING;
  }
  AERIE_CHECK(false) << "no such mode";
}

void EncodeWiringReport(const WiringReport& report, v1::WiringReport* out) {
  out->set_client(report.client);
  out->set_target(report.target);
  out->set_state(EncodeWiringState(report.state));
  if (report.since != absl::InfinitePast()) {
    const int64_t nanos = absl::ToUnixNanos(report.since);
    out->mutable_since()->set_seconds(nanos / 1'000'000'000);
    out->mutable_since()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  }
  out->set_verdict(report.verdict);
  out->set_rounds(Count(report.rounds));
  out->set_rows(Count(report.rows));
  out->set_sampled_rows(Count(report.sampled_rows));
  out->set_votes(Count(report.votes));
  out->set_odd_votes(Count(report.odd_votes));
  out->set_sessions(Count(report.sessions));
  for (const PlaceReport& place : report.places) {
    v1::PlaceReport* to = out->add_places();
    EncodeCapture(place.declared, to->mutable_declared());
    EncodeCapture(place.looks_like, to->mutable_looks_like());
    to->set_position(place.position);
    to->set_size(place.size);
  }
  if (report.one_layer_earlier.has_value()) out->set_one_layer_earlier(*report.one_layer_earlier);
  if (report.one_layer_later.has_value()) out->set_one_layer_later(*report.one_layer_later);
  if (report.alignment.has_value()) {
    v1::AlignmentReport* to = out->mutable_alignment();
    to->set_preceding(report.alignment->preceding);
    to->set_own(report.alignment->own);
    to->set_earlier(report.alignment->earlier);
    to->set_pairs(Count(report.alignment->pairs));
  }
  if (report.drafting.has_value()) EncodeDrafting(*report.drafting, out->mutable_drafting());
  if (report.replay.has_value()) {
    out->mutable_replay()->set_answered(Count(report.replay->answered));
    out->mutable_replay()->set_best(report.replay->best);
    out->mutable_replay()->set_gain(report.replay->gain);
  }
}

v1::GetWiringReportResponse EncodeWiringReports(absl::Span<const WiringReport> reports,
                                                WiringState worst) {
  v1::GetWiringReportResponse response;
  for (const WiringReport& report : reports) EncodeWiringReport(report, response.add_reports());
  response.set_worst(EncodeWiringState(worst));
  return response;
}

}  // namespace aerie::rpc
