#include "server/tokens.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "server/identity.h"

namespace perseus::server {
namespace {

constexpr std::array<std::pair<Role, std::string_view>, 3> roles{
    {{Role::job, "job"}, {Role::infrastructure, "infrastructure"}, {Role::read_only, "read-only"}}};
constexpr std::size_t shown_digits = 12;

std::string sha256(std::string_view text) {
  std::array<unsigned char, 32> digest{};
  unsigned int length = 0;
  const int done = EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr);
  PERSEUS_CHECK(done == 1 && length == digest.size(), "SHA-256 is there");
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

}  // namespace

std::string_view name_of(Role role) {
  for (const auto& [known, name] : roles) {
    if (known == role) return name;
  }
  return "";
}

Result<Role> role_named(std::string_view name) {
  for (const auto& [role, known] : roles) {
    if (known == name) return role;
  }
  return Error{ErrorCode::usage, fmt::format("'{}' is no role; there are job, infrastructure and read-only", name)};
}

NewToken make_token(Role role, std::string job, std::string name, double now_s) {
  const std::string secret = "perseus_" + random_hex_id();
  return {secret, {sha256(secret), std::string(name_of(role)), std::move(job), std::move(name), now_s}};
}

Status Tokens::load() {
  auto rows = store_.tokens();
  if (!rows) return rows.error();
  rows_.clear();
  for (TokenRow& row : *rows) rows_.emplace(row.hash, std::move(row));
  return Ok{};
}

Result<Identity> Tokens::identify(std::string_view authorization) const {
  if (none()) return Identity{};
  constexpr std::string_view scheme = "Bearer ";
  if (!authorization.starts_with(scheme)) {
    return Error{ErrorCode::unauthorised, "a token is needed: send the header 'Authorization: Bearer TOKEN'"};
  }
  const auto found = rows_.find(sha256(authorization.substr(scheme.size())));
  if (found == rows_.end()) return Error{ErrorCode::unauthorised, "this token is not known here, or was revoked"};
  const auto role = role_named(found->second.role);
  if (!role) return Error{ErrorCode::unauthorised, role.error().message};
  return Identity{*role, found->first.substr(0, shown_digits), found->second.job};
}

std::vector<TokenRow> Tokens::list() const {
  std::vector<TokenRow> rows;
  rows.reserve(rows_.size());
  for (const auto& [hash, row] : rows_) {
    rows.push_back(row);
    rows.back().hash.resize(shown_digits);
  }
  return rows;
}

void Tokens::put(const TokenRow& token, std::function<void(Status)> done) {
  store_.put_token(token, [this, token, done = std::move(done)](const Status& put) {
    if (put) rows_.emplace(token.hash, token);
    done(put);
  });
}

void Tokens::revoke(const std::string& id, std::function<void(Status)> done) {
  const auto found = rows_.lower_bound(id);
  const bool known = id.size() >= 8 && found != rows_.end() && found->first.starts_with(id);
  if (!known || (std::next(found) != rows_.end() && std::next(found)->first.starts_with(id))) {
    return done(Error{ErrorCode::not_found, fmt::format("no token '{}': give at least the first 8 digits of one", id)});
  }
  const std::string hash = found->first;
  store_.revoke_token(hash, [this, hash, done = std::move(done)](const Status& revoked) {
    if (revoked) rows_.erase(hash);
    done(revoked);
  });
}

}  // namespace perseus::server
