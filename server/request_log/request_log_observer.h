// What the request log tells of itself; server/metrics counts it.
#pragma once

namespace aerie {

// Why a record is not in the log.
enum class RecordLoss {
  kQueueFull,    // sessions ended faster than the disk takes records
  kWriteFailed,  // the disk is full, or the file is not ours any more
};

// Any thread. Implementations must not block.
class RequestLogObserver {
 public:
  virtual ~RequestLogObserver() = default;
  virtual void OnRecordWritten() = 0;
  virtual void OnRecordLost(RecordLoss loss) = 0;
};

}  // namespace aerie
