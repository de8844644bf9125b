// Which drafter serves which call: new sessions by the name in their manifest, all else by the id
// of the session.
//
// What one would get wrong: of one name there may be two versions. New sessions get the newest; the
// sessions of the one before go on with it, forks of them included, until it is removed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "server/transport/served_drafter.h"

namespace aerie {

// Any thread.
class DrafterDirectory {
 public:
  // From now on new sessions of its name are its own. Its tag must be new.
  void Serve(ServedDrafterPtr drafter);
  // From now on there are no new sessions of this name.
  void Retire(const std::string& name);
  // From now on nobody finds it; calls that found it before still hold it.
  void Remove(const ServedDrafter* drafter);

  // Whose new sessions are; empty: the only one that takes any. FAILED_PRECONDITION, as for every
  // manifest that does not fit: there is none of this name, or none is named and there are several.
  absl::StatusOr<ServedDrafterPtr> ForManifest(const std::string& name) const;
  // Who holds the session; of an id that is nobody's the only one there is, whose engine will say
  // what it knows of it. NOT_FOUND, as engines say it: it is nobody's, and there are several.
  absl::StatusOr<ServedDrafterPtr> ForSession(const std::string& session_id) const;
  // Those that take new sessions, by the time at which their names were first served.
  std::vector<ServedDrafterPtr> Current() const;
  // The first of these; the first of all when none takes new sessions. There must be one.
  ServedDrafterPtr First() const;

 private:
  mutable Mutex mutex_;
  std::vector<ServedDrafterPtr> current_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, ServedDrafterPtr, std::less<>> by_tag_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace aerie
