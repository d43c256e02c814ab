#include "base/error_table.h"

#include <algorithm>
#include <array>

namespace perseus {
namespace {

// In the order of the enumeration: the code is the row's index.
constexpr std::array<ErrorEntry, 10> kRows{{
    {ErrorCode::invalid_input, "invalid_input", 65, 422, 1, "InvalidInputError", "invalid content of an input"},
    {ErrorCode::usage, "usage", 64, 400, 2, "UsageError", "invalid command line"},
    {ErrorCode::not_found, "not_found", 66, 404, 3, "NotFoundError", "an input does not exist or cannot be read"},
    {ErrorCode::cannot_write, "cannot_write", 73, 507, 4, "CannotWriteError", "an output cannot be written"},
    {ErrorCode::internal, "internal", 70, 500, 5, "InternalError", "internal error: please report it"},
    {ErrorCode::conflict, "conflict", 75, 409, 6, "ConflictError", "conflicts with the current state"},
    {ErrorCode::unauthorized, "unauthorized", 67, 401, 7, "UnauthorizedError", "the token is missing or unknown"},
    {ErrorCode::forbidden, "forbidden", 77, 403, 8, "ForbiddenError", "the token has no permission for this"},
    {ErrorCode::too_large, "too_large", 76, 413, 9, "TooLargeError", "a limit of the server is exceeded"},
    {ErrorCode::unavailable, "unavailable", 69, 503, 10, "UnavailableError",
     "server or storage unavailable: try again later"},
}};

constexpr bool rows_follow_the_enumeration() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].code) != i) return false;
  }
  return kRows.size() == static_cast<std::size_t>(ErrorCode::unavailable) + 1;
}
static_assert(rows_follow_the_enumeration());

}  // namespace

std::span<const ErrorEntry> error_table() { return kRows; }

const ErrorEntry& entry_of(ErrorCode code) { return kRows[static_cast<std::size_t>(code)]; }

ErrorCode code_of_http_status(int status) {
  constexpr int too_many_requests = 429, too_large_header = 431, server_error = 500;
  const auto* const row = std::ranges::find(kRows, status, &ErrorEntry::http_status);
  if (row != kRows.end()) return row->code;
  if (status == too_large_header) return ErrorCode::too_large;
  return status == too_many_requests || status >= server_error ? ErrorCode::unavailable : ErrorCode::usage;
}

}  // namespace perseus
