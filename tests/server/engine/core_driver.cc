#include "tests/server/engine/core_driver.h"

#include <utility>

#include "gtest/gtest.h"

namespace aerie {

CoreDriver::CoreDriver(const EngineOptions& options, FakeDraftModelOptions model_options,
                       RowObserver* row_observer)
    : model(std::move(model_options)), core(options, &model, &observer, row_observer) {}

CoreDriver::~CoreDriver() {
  core.Shutdown(now);
  Deliver();
}

absl::StatusOr<OpenResult> CoreDriver::Open(const Manifest& manifest, SessionOptions options) {
  Reply<OpenResult> reply;
  core.Open(
      manifest, options, [&reply](auto result) { reply.Set(std::move(result)); }, now);
  Deliver();
  return reply.value();
}

ReplyPtr<DraftResult> CoreDriver::Draft(DraftCall call) {
  auto reply = std::make_shared<Reply<DraftResult>>();
  core.Draft(
      std::move(call), [reply](auto result) { reply->Set(std::move(result)); }, now);
  Deliver();
  return reply;
}

ReplyPtr<AcceptanceRecord> CoreDriver::Close(const std::string& id,
                                             std::vector<int32_t> final_tokens, SessionEnd end) {
  auto reply = std::make_shared<Reply<AcceptanceRecord>>();
  core.Close(
      id, std::move(final_tokens), end, [reply](auto result) { reply->Set(std::move(result)); },
      now);
  Deliver();
  return reply;
}

bool CoreDriver::Pass(absl::Duration duration) {
  const bool formed = core.FormPass(now);
  Deliver();
  if (!formed) return false;
  core.RunPass();
  now += duration;
  core.SettlePass(now);
  Deliver();
  return true;
}

void CoreDriver::RunAll() {
  while (Pass()) {
  }
}

std::string CoreDriver::OpenSession(const Manifest& manifest) {
  const auto opened = Open(manifest);
  EXPECT_TRUE(opened.ok()) << opened.status();
  return opened.ok() ? opened->session_id : "";
}

std::string CoreDriver::OpenSession(const SessionOptions& options) {
  const auto opened = Open(FittingManifest(), options);
  EXPECT_TRUE(opened.ok()) << opened.status();
  return opened.ok() ? opened->session_id : "";
}

absl::StatusOr<DraftResult> CoreDriver::Run(DraftCall call) {
  const auto reply = Draft(std::move(call));
  RunAll();
  return reply->value();
}

absl::StatusOr<AcceptanceRecord> CoreDriver::RunClose(const std::string& id,
                                                      std::vector<int32_t> final_tokens) {
  const auto reply = Close(id, std::move(final_tokens));
  RunAll();
  return reply->value();
}

void CoreDriver::Deliver() {
  for (DraftCore::Answer& answer : core.TakeAnswers()) answer();
}

}  // namespace aerie
