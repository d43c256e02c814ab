// Manages API tokens and roles: bearer tokens, of which only the hashes are stored.
//
// The store also keeps whether tokens are required: from the first token on they are, even when none is left. Only a
// server that is reachable from this machine alone may have them off; every caller has the role `infrastructure`
// there, and creates the first token with first_secret().
//
// Problem: training jobs, the infrastructure and dashboards share one server; a job must not access another one.
// Input:   the Authorization header, "Bearer TOKEN", or "Basic" with the token as the password (for clients that only
//          accept a URL); the present time.
// Output:  the caller's identity. Roles: `infrastructure` may do everything; `read-only` may read everything; `job`
//          may register jobs and accesses those that it registered, or only the job that it was made for.
// Errors:  unauthorized: no token, an unknown or an expired one; usage: a role that does not exist; conflict: the
//          last token of the role infrastructure cannot be revoked.
// Cost:    one SHA-256 per request.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/store/store.h"

namespace perseus::work {
class StoreAccess;
}

namespace perseus::access {

enum class Role { job, infrastructure, read_only };
std::string_view name_of(Role role);
Result<Role> role_named(std::string_view name);

struct Identity {
  Role role = Role::infrastructure;
  std::string token;  ///< the beginning of its hash; "" while tokens are off
  std::string name;   ///< its owner, for people
  std::string team;   ///< team that shares learned profiles; the token itself if it has no team
  std::string job;    ///< the only job that it may access, or ""
};

/// For people, as in author_of() of an event.
std::string author_of(const Identity& identity);

struct NewToken {
  std::string secret;   ///< shown once, not stored
  store::TokenRow row;  ///< with hash and time
  std::string id;       ///< as lists show it
};
/// Ok if such a token is allowed: its role exists, and only the role job is limited to one job.
Status check_token(const store::TokenRow& wanted);
/// Ok if it may be the first one: with none of the role infrastructure, no other could be made.
Status check_first_token(const store::TokenRow& wanted);
/// An unguessable secret, and the row to store.
NewToken make_token(store::TokenRow wanted, double now_s);

/// The text with every token in it masked, for logs.
std::string without_tokens(std::string text);

/// Stores whether tokens are required, independent of the tokens that exist.
void require_tokens(store::Store& store, bool required, store::Store::Done<Ok> done);

class Tokens {
 public:
  /// `local`: only this machine can reach the server, so that tokens may be off.
  explicit Tokens(store::Store& store, bool local = true);
  /// Reads the tokens from the store, on this thread: for the start.
  Status load();
  /// From now on uses the store asynchronously, as the io thread must.
  void serve(work::StoreAccess& access) { access_ = &access; }
  /// Reads the tokens again, as on a reload. The tokens in memory apply until then, and if the
  /// read fails.
  void refresh(std::function<void(const Error&)> failed);
  [[nodiscard]] bool required() const { return required_; }
  [[nodiscard]] Result<Identity> identify(std::string_view authorization, double now_s) const;
  /// True if the token has neither been revoked nor expired since.
  [[nodiscard]] bool holds(const Identity& identity, double now_s) const;
  [[nodiscard]] std::vector<store::TokenRow> list() const;

  /// While tokens are off: the secret that allows making the first token. Only the server's log contains it.
  [[nodiscard]] const std::string& first_secret() const { return first_secret_; }
  [[nodiscard]] bool shows_first_secret(std::string_view authorization) const;

  void put(const store::TokenRow& token, std::function<void(Status)> done);
  /// `id`: the hash or at least its first 8 digits.
  void revoke(const std::string& id, std::function<void(Status)> done);
  /// Calls `changed` when tokens were made or revoked.
  void on_change(std::function<void()> changed) { changed_ = std::move(changed); }

 private:
  struct Rows {
    std::vector<store::TokenRow> tokens;
    std::optional<std::string> setting;
  };
  static Result<Rows> read(store::Store& store);
  void take(Rows rows);
  /// Requires tokens from the first one on, unless an operator switched them off.
  void require_if_any();
  [[nodiscard]] const store::TokenRow* find(std::string_view authorization) const;

  store::Store& store_;
  work::StoreAccess* access_ = nullptr;  ///< null: uses the store itself
  std::uint64_t changes_ = 0;            ///< made here or read again
  const bool local_;
  bool required_;
  bool setting_known_ = false;  ///< the store has the setting
  std::string first_secret_;
  std::map<std::string, store::TokenRow, std::less<>> rows_;  ///< by hash
  std::function<void()> changed_;
};

}  // namespace perseus::access
