#include "server/engine/row_bucket.h"

#include <algorithm>

namespace aerie {

absl::Duration RowBucket::Take(int64_t rows, absl::Time now) {
  // A clock that was set back must shut nobody out until it has caught up.
  if (now < latest_ && full_ > absl::InfinitePast()) full_ += now - latest_;
  latest_ = now;
  if (rows == 0) return absl::ZeroDuration();
  full_ = std::max(full_, now);
  const absl::Duration wait = full_ - now + TimeOf(1) - depth_;
  if (wait > absl::ZeroDuration()) return wait;
  full_ += TimeOf(rows);
  return absl::ZeroDuration();
}

}  // namespace aerie
