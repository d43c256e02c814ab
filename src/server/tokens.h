// Who may do what: bearer tokens, of which only the hashes are kept.
//
// Problem: training jobs, the infrastructure and dashboards share one server; a job must not reach another one. Input:
// the Authorization header. Output: whose it is. Roles: `infrastructure` may do everything; `read-only` may look at
// everything; `job` may register jobs and reaches those that it registered, or only the one that it was made for.
// While there is no token at all, everybody is `infrastructure` (and the server listens on loopback only). Errors:
// unauthorised: no or an unknown token; usage: a role that does not exist. Cost: one SHA-256 a request.
// Threads: io thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"

namespace perseus::server {

enum class Role { job, infrastructure, read_only };
std::string_view name_of(Role role);
Result<Role> role_named(std::string_view name);

struct Identity {
  Role role = Role::infrastructure;
  std::string token;  ///< the beginning of its hash; "" while there are no tokens
  std::string job;    ///< the only job it reaches, or ""
};

struct NewToken {
  std::string secret;  ///< shown once, not kept
  TokenRow row;
};
/// A secret that nobody can guess, and what is kept of it.
NewToken make_token(Role role, std::string job, std::string name, double now_s);

class Tokens {
 public:
  explicit Tokens(Store& store) : store_(store) {}
  /// Reads them from the store again.
  Status load();
  [[nodiscard]] bool none() const { return rows_.empty(); }
  [[nodiscard]] Result<Identity> identify(std::string_view authorization) const;
  [[nodiscard]] std::vector<TokenRow> list() const;

  void put(const TokenRow& token, std::function<void(Status)> done);
  /// `id`: the hash or at least the first 8 digits of it.
  void revoke(const std::string& id, std::function<void(Status)> done);

 private:
  Store& store_;
  std::map<std::string, TokenRow, std::less<>> rows_;  ///< by hash
};

}  // namespace perseus::server
