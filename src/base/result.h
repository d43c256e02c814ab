// Result<T> holds a T or an Error: expected failures are values.
//
// Errors:  a programming error aborts with a message (PERSEUS_CHECK). An expected failure (a bad file, a full disk) is
//          an Error whose message names the problem, the value and what is allowed. A fact about a problem ("no plan is
//          that fast") is part of the answer, never an Error.
// Cost:    a variant.
// Threads: plain values.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

namespace perseus {

/// Kind of failure; base/error_table.h maps each to exit code, HTTP status, C code and Python exception.
enum class ErrorCode {
  invalid_input,  ///< the content of an input is wrong: a file's line, a schedule that deadlocks
  usage,          ///< the call is wrong: unknown option, value out of range
  not_found,      ///< a named thing does not exist or cannot be read
  cannot_write,   ///< an output cannot be created
  internal,       ///< a certificate failed: a bug in Perseus
  conflict,       ///< the current state does not allow this, or a concurrent request changed it first
  unauthorized,   ///< no token, or an unknown token
  forbidden,      ///< the token is known but lacks the right
  too_large,      ///< more bytes, ranks or connections than the limits allow
  unavailable,    ///< database, disk or server cannot serve now; the same call may succeed later
};

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
};

/// E differs from Error only where the kinds of failure differ (training/device/gpu.h); it has a member `message`.
template <class T, class E = Error>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}  // NOLINT(google-explicit-constructor): `return value;`
  Result(E error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor): `return Error{...};`

  [[nodiscard]] bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }

  /// Returns the value; aborts if there is none: test ok() first.
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

/// Aborts with file, line and message if the condition is false, in every build type.
#define PERSEUS_CHECK(condition, message)                                                             \
  do {                                                                                                \
    if (!(condition)) {                                                                               \
      std::fprintf(stderr, "%s:%d: check failed: %s: %s\n", __FILE__, __LINE__, #condition, message); \
      std::abort();                                                                                   \
    }                                                                                                 \
  } while (false)
