// Expected failures are values: Result<T> is a T or an Error.
//
// Programmer's mistakes abort with a message (PERSEUS_CHECK); expected failures (a bad file, a full disk) are an Error
// whose message says what, the value, and what was allowed; facts about a problem ("no plan is that fast") are part
// of the answer and never an Error. Cost: a variant. Threads: values.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

namespace perseus {

/// What kind of failure it is; base/error_table.h maps each to exit code, HTTP status, C code and Python exception.
enum class ErrorCode {
  invalid_input,  ///< the content of an input is wrong: a file's line, a schedule that deadlocks
  usage,          ///< the call is wrong: unknown option, value out of range
  not_found,      ///< a named thing does not exist or cannot be read
  cannot_write,   ///< an output cannot be created
  internal,       ///< a certificate failed: a bug of ours, said rather than hidden
  conflict,       ///< the thing is in a state that does not allow this, or somebody else changed it first
  unauthorised,   ///< no token, or one that is not known
  forbidden,      ///< the token is known and does not reach this
  too_large,      ///< more bytes, ranks or connections than the limits allow
  unavailable,    ///< database, disk or server cannot serve now; the same call may succeed later
};

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
};

/// E is another type than Error only where the kinds of failure are others (training/device/gpu.h); it has a `message`.
template <class T, class E = Error>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}  // NOLINT(google-explicit-constructor): `return value;`
  Result(E error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor): `return Error{...};`

  [[nodiscard]] bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }

  /// The value; aborts if there is none, so test ok() first.
  T& value() & {
    require();
    return std::get<T>(state_);
  }
  const T& value() const& {
    require();
    return std::get<T>(state_);
  }
  T&& value() && {
    require();
    return std::get<T>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] const E& error() const { return std::get<E>(state_); }

 private:
  void require() const {
    if (ok()) return;
    std::fprintf(stderr, "perseus: value() of a failed Result: %s\n", error().message.c_str());
    std::abort();
  }
  std::variant<T, E> state_;
};

/// A Result without a value: `return Ok{};`
struct Ok {};
using Status = Result<Ok>;

}  // namespace perseus

/// Aborts with file, line and message when a programmer's assumption does not hold. Always on.
#define PERSEUS_CHECK(condition, message)                                                             \
  do {                                                                                                \
    if (!(condition)) {                                                                               \
      std::fprintf(stderr, "%s:%d: check failed: %s: %s\n", __FILE__, __LINE__, #condition, message); \
      std::abort();                                                                                   \
    }                                                                                                 \
  } while (false)
