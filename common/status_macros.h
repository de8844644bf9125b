// Early return on a failed absl::Status; Abseil 20220623 has no macros of its own for it.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define AERIE_RETURN_IF_ERROR(expression)                               \
  do {                                                                  \
    if (absl::Status aerie_status = (expression); !aerie_status.ok()) { \
      return aerie_status;                                              \
    }                                                                   \
  } while (false)

#define AERIE_STATUS_CONCAT_INNER(a, b) a##b
#define AERIE_STATUS_CONCAT(a, b) AERIE_STATUS_CONCAT_INNER(a, b)

// AERIE_ASSIGN_OR_RETURN(auto value, Compute());
#define AERIE_ASSIGN_OR_RETURN(declaration, expression)                                      \
  AERIE_ASSIGN_OR_RETURN_INNER(AERIE_STATUS_CONCAT(aerie_status_or_, __LINE__), declaration, \
                               expression)
#define AERIE_ASSIGN_OR_RETURN_INNER(status_or, declaration, expression) \
  auto status_or = (expression);                                         \
  if (!status_or.ok()) return std::move(status_or).status();             \
  declaration = *std::move(status_or)
