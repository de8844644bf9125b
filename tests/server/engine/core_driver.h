// Drives a DraftCore over a FakeDraftModel: the thread and the clock of the engine, in the hands of
// a test.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/engine/draft_core.h"
#include "tests/testing/fake_draft_model.h"
#include "tests/testing/recording_observer.h"
#include "tests/testing/sequences.h"

namespace aerie {

// The answer to one call. Fails the test when it comes twice.
template <typename T>
class Reply {
 public:
  void Set(absl::StatusOr<T> value) {
    EXPECT_FALSE(value_.has_value()) << "a call was answered twice";
    value_ = std::move(value);
  }
  bool here() const { return value_.has_value(); }
  // The test fails when it is not here.
  absl::StatusOr<T> value() const {
    EXPECT_TRUE(here()) << "a call was not answered";
    return here() ? *value_ : absl::UnknownError("no answer");
  }

 private:
  std::optional<absl::StatusOr<T>> value_;
};

template <typename T>
using ReplyPtr = std::shared_ptr<Reply<T>>;

class CoreDriver {
 public:
  explicit CoreDriver(const EngineOptions& options = {}, FakeDraftModelOptions model_options = {},
                      RowObserver* row_observer = nullptr);
  ~CoreDriver();

  // Calls that are begun, not driven to their end.
  absl::StatusOr<OpenResult> Open(const Manifest& manifest, SessionOptions options = {});
  ReplyPtr<DraftResult> Draft(DraftCall call);
  ReplyPtr<AcceptanceRecord> Close(const std::string& id, std::vector<int32_t> final_tokens = {},
                                   SessionEnd end = SessionEnd::kClosed);

  // One pass that takes `duration`; false: there was nothing to run.
  bool Pass(absl::Duration duration = absl::Milliseconds(1));
  // Passes until nothing is left.
  void RunAll();

  // Driven to their end.
  std::string OpenSession(const Manifest& manifest = FittingManifest());
  std::string OpenSession(const SessionOptions& options);
  absl::StatusOr<DraftResult> Run(DraftCall call);
  absl::StatusOr<AcceptanceRecord> RunClose(const std::string& id,
                                            std::vector<int32_t> final_tokens = {});

  FakeDraftModel model;
  RecordingObserver observer;
  DraftCore core;
  absl::Time now = absl::FromUnixSeconds(1000);

 private:
  void Deliver();
};

}  // namespace aerie
