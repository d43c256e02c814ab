// Who may do what: bearer tokens, of which only the hashes are kept.
//
// Problem: training jobs, the infrastructure and dashboards share one server; a job must not reach another one.
// Input:   the Authorization header, "Bearer TOKEN", or "Basic" with the token as the password (for clients that only
//          take a URL); the time now.
// Output:  whose it is. Roles: `infrastructure` may do everything; `read-only` may look at everything; `job` may
//          register jobs and reaches those that it registered, or only the one that it was made for. Whether tokens
//          are required is kept beside them: from the first one on they are, also when none is left. Only a server
//          that this machine alone reaches may have them off; everybody is `infrastructure` there, and makes the
//          first token with first_secret().
// Errors:  unauthorized: no token, an unknown or an expired one; usage: a role that does not exist; conflict: the
//          last token of the role infrastructure is not revoked.
// Cost:    one SHA-256 a request.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/store/store.h"

namespace perseus::service {

class StoreAccess;

enum class Role { job, infrastructure, read_only };
std::string_view name_of(Role role);
Result<Role> role_named(std::string_view name);

struct Identity {
  Role role = Role::infrastructure;
  std::string token;  ///< the beginning of its hash; "" while tokens are off
  std::string name;   ///< whose it is, for people
  std::string team;   ///< what jobs learn is shared within it; the token itself where it has none
  std::string job;    ///< the only job it reaches, or ""
};

struct NewToken {
  std::string secret;   ///< shown once, not kept
  store::TokenRow row;  ///< its hash and time are set
};
/// Whether there can be such a token: its role is known, and only one of the role job is for one job.
Status check_token(const store::TokenRow& wanted);
/// A secret that nobody can guess, and what is kept of it.
NewToken make_token(store::TokenRow wanted, double now_s);

/// The text with every token in it made unreadable, for logs: somebody may put one where it does not belong.
std::string without_tokens(std::string text);

/// Keeps in the store whether tokens are required, whatever tokens there are.
void require_tokens(store::Store& store, bool required, store::Store::Done<Ok> done);

class Tokens {
 public:
  /// `local`: only this machine reaches the server, so that tokens may be off.
  explicit Tokens(store::Store& store, bool local = true);
  /// Reads them from the store, on this thread: for the start.
  Status load();
  /// From now on the store is used as the io thread may: without waiting for it.
  void serve(std::shared_ptr<StoreAccess> access) { access_ = std::move(access); }
  /// Reads them again after another server has changed them. What is in memory holds until then, and if that fails.
  void refresh(std::function<void(const Error&)> failed);
  [[nodiscard]] bool required() const { return required_; }
  [[nodiscard]] Result<Identity> identify(std::string_view authorization, double now_s) const;
  /// Whether it was neither revoked nor has expired since.
  [[nodiscard]] bool holds(const Identity& identity, double now_s) const;
  [[nodiscard]] std::vector<store::TokenRow> list() const;

  /// While tokens are off: who knows it may make the first one. It is in the server's log and nowhere else.
  [[nodiscard]] const std::string& first_secret() const { return first_secret_; }
  [[nodiscard]] bool shows_first_secret(std::string_view authorization) const;

  void put(const store::TokenRow& token, std::function<void(Status)> done);
  /// `id`: the hash or at least the first 8 digits of it.
  void revoke(const std::string& id, std::function<void(Status)> done);
  /// Called when tokens were made or revoked, here or by another server.
  void on_change(std::function<void()> changed) { changed_ = std::move(changed); }

 private:
  struct Rows {
    std::vector<store::TokenRow> tokens;
    std::optional<std::string> setting;
  };
  static Result<Rows> read(store::Store& store);
  void take(Rows rows);
  /// Tokens that nobody has switched off are required from the first one on.
  void require_if_any();
  [[nodiscard]] const store::TokenRow* find(std::string_view authorization) const;

  store::Store& store_;
  std::shared_ptr<StoreAccess> access_;  ///< null: the store itself is used
  std::uint64_t changes_ = 0;            ///< made here, or heard of
  const bool local_;
  bool required_;
  bool setting_known_ = false;  ///< the store says whether they are required
  std::string first_secret_;
  std::map<std::string, store::TokenRow, std::less<>> rows_;  ///< by hash
  std::function<void()> changed_ = [] {};
};

}  // namespace perseus::service
