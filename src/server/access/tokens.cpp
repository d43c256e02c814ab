#include "server/access/tokens.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "io/formats/sha256.h"
#include "io/http/http_message.h"
#include "server/jobs/identity.h"
#include "server/work/store_access.h"

namespace perseus::access {
namespace {

constexpr std::array<std::pair<Role, std::string_view>, 3> kRoles{
    {{Role::job, "job"}, {Role::infrastructure, "infrastructure"}, {Role::read_only, "read-only"}}};
constexpr std::size_t kShownDigits = 12;
constexpr const char* kSettingKey = "setting/tokens";

std::string base64_decoded(std::string_view text) {
  std::string bytes(text.size() / 4 * 3 + 3, '\0');
  const int length =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (length < 0) return "";
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  bytes.resize(static_cast<std::size_t>(length) - padding);
  return bytes;
}

/// The token in the header's value; "" if there is none.
std::string secret_in(std::string_view authorization) {
  constexpr std::size_t most = 1024;
  const std::size_t space = authorization.find(' ');
  if (space == std::string_view::npos || authorization.size() > most) return "";
  const std::string_view scheme = authorization.substr(0, space);
  std::string_view value = authorization.substr(space);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  if (http::same_without_case(scheme, "Bearer")) return std::string(value);
  if (!http::same_without_case(scheme, "Basic")) return "";
  const std::string user_and_password = base64_decoded(value);
  const std::size_t colon = user_and_password.find(':');
  return colon == std::string::npos ? "" : user_and_password.substr(colon + 1);
}

}  // namespace

std::string_view name_of(Role role) {
  for (const auto& [known, name] : kRoles) {
    if (known == role) return name;
  }
  return "";
}

Result<Role> role_named(std::string_view name) {
  for (const auto& [role, known] : kRoles) {
    if (known == name) return role;
  }
  return Error{ErrorCode::usage, fmt::format("role: '{}'; allowed: job, infrastructure, read-only", name)};
}

std::string author_of(const Identity& identity) {
  if (!identity.name.empty()) return identity.name;
  return identity.token.empty() ? "client" : "token " + identity.token;
}

Status check_token(const store::TokenRow& wanted) {
  const auto role = role_named(wanted.role);
  if (!role) return role.error();
  if (wanted.job.empty() || *role == Role::job) return Ok{};
  return Error{ErrorCode::usage,
               fmt::format("job: '{}'; a token of the role {} reaches all jobs", wanted.job, wanted.role)};
}

Status check_first_token(const store::TokenRow& wanted) {
  if (wanted.role == name_of(Role::infrastructure)) return Ok{};
  return Error{ErrorCode::conflict,
               "role: the first token must have the role infrastructure; without it, no other token could be created"};
}

NewToken make_token(store::TokenRow wanted, double now_s) {
  const std::string secret = "perseus_" + jobs::random_hex_id();
  wanted.hash = formats::sha256(secret);
  wanted.created_s = now_s;
  const std::string id = wanted.hash.substr(0, kShownDigits);
  return {secret, std::move(wanted), id};
}

std::string without_tokens(std::string text) {
  constexpr std::string_view start = "perseus_";
  for (std::size_t at = text.find(start); at != std::string::npos; at = text.find(start, at + start.size())) {
    const std::size_t secret = at + start.size();
    const std::size_t end = std::min(text.find_first_not_of("0123456789abcdef", secret), text.size());
    constexpr std::size_t shortest = 16;
    if (end - secret >= shortest) text.replace(secret, end - secret, "...");
  }
  return text;
}

void require_tokens(store::Store& store, bool required, store::Store::Done<Ok> done) {
  store.put_blob({kSettingKey, required ? "on" : "off"}, std::move(done));
}

Tokens::Tokens(store::Store& store, bool local)
    : store_(store), local_(local), required_(!local), first_secret_("perseus_first_" + jobs::random_hex_id()) {}

Result<Tokens::Rows> Tokens::read(store::Store& store) {
  auto tokens = store.tokens();
  if (!tokens) return tokens.error();
  auto setting = store.blob(kSettingKey);
  if (!setting) return setting.error();
  return Rows{*std::move(tokens), *std::move(setting)};
}

Status Tokens::load() {
  auto rows = read(store_);
  if (!rows) return rows.error();
  take(*std::move(rows));
  return Ok{};
}

void Tokens::refresh(std::function<void(const Error&)> failed) {
  PERSEUS_CHECK(access_, "serve() comes first");
  access_->read<Rows>(read, [this, before = ++changes_, failed = std::move(failed)](Result<Rows> rows) {
    if (!rows) return failed(rows.error());
    // The rows read may lack changes made during the read.
    before == changes_ ? take(*std::move(rows)) : refresh(failed);
  });
}

void Tokens::take(Rows rows) {
  rows_.clear();
  for (store::TokenRow& row : rows.tokens) rows_.emplace(row.hash, std::move(row));
  setting_known_ = rows.setting.has_value();
  required_ = !local_ || (setting_known_ && *rows.setting != "off");
  require_if_any();
  if (changed_) changed_();
}

void Tokens::require_if_any() {
  if (setting_known_ || rows_.empty()) return;
  required_ = true;
  setting_known_ = true;
  // If this write is lost, the next start repeats it.
  require_tokens(store_, true, [](const Result<Ok>&) {});
}

const store::TokenRow* Tokens::find(std::string_view authorization) const {
  const auto found = rows_.find(formats::sha256(secret_in(authorization)));
  return found == rows_.end() ? nullptr : &found->second;
}

Result<Identity> Tokens::identify(std::string_view authorization, double now_s) const {
  if (!required_) return Identity{};
  if (rows_.empty()) {
    return Error{ErrorCode::unauthorized,
                 "this server requires tokens and has none; 'perseus token create --data DIR' creates one"};
  }
  if (secret_in(authorization).empty()) {
    return Error{ErrorCode::unauthorized, "a token is required: send the header 'Authorization: Bearer TOKEN'"};
  }
  const store::TokenRow* const row = find(authorization);
  if (row == nullptr) return Error{ErrorCode::unauthorized, "this token is unknown or was revoked"};
  if (row->expires_s > 0 && now_s >= row->expires_s) return Error{ErrorCode::unauthorized, "this token has expired"};
  const auto role = role_named(row->role);
  if (!role) return Error{ErrorCode::unauthorized, role.error().message};
  const std::string id = row->hash.substr(0, kShownDigits);
  return Identity{*role, id, row->name, row->team.empty() ? id : row->team, row->job};
}

bool Tokens::holds(const Identity& identity, double now_s) const {
  if (identity.token.empty()) return !required_;
  const auto row = rows_.lower_bound(identity.token);
  if (row == rows_.end() || !row->first.starts_with(identity.token)) return false;
  return row->second.expires_s <= 0 || now_s < row->second.expires_s;
}

bool Tokens::shows_first_secret(std::string_view authorization) const {
  return !required_ && formats::sha256(secret_in(authorization)) == formats::sha256(first_secret_);
}

std::vector<store::TokenRow> Tokens::list() const {
  std::vector<store::TokenRow> rows;
  rows.reserve(rows_.size());
  for (const auto& [hash, row] : rows_) {
    rows.push_back(row);
    rows.back().hash.resize(kShownDigits);
  }
  return rows;
}

void Tokens::put(const store::TokenRow& token, std::function<void(Status)> done) {
  const auto answered = [this, token, done = std::move(done)](const Status& put) {
    if (put) {
      ++changes_;
      rows_.emplace(token.hash, token);
      require_if_any();
      if (changed_) changed_();
    }
    done(put);
  };
  access_ ? access_->write(&store::Store::put_token, token, answered) : store_.put_token(token, answered);
}

void Tokens::revoke(const std::string& id, std::function<void(Status)> done) {
  const auto found = rows_.lower_bound(id);
  const bool known = id.size() >= 8 && found != rows_.end() && found->first.starts_with(id);
  if (!known || (std::next(found) != rows_.end() && std::next(found)->first.starts_with(id))) {
    return done(Error{ErrorCode::not_found,
                      fmt::format("no token '{}': give at least the first 8 digits of its id", without_tokens(id))});
  }
  // A token that expires does not count as permanent access.
  const auto administers = [](const auto& row) {
    return row.second.role == name_of(Role::infrastructure) && row.second.expires_s <= 0;
  };
  if (required_ && administers(*found) && std::ranges::count_if(rows_, administers) == 1) {
    return done(Error{ErrorCode::conflict,
                      "this is the last token of the role infrastructure that does not expire: create another one "
                      "first; without it no token could be created"});
  }
  const std::string hash = found->first;
  const auto answered = [this, hash, done = std::move(done)](const Status& revoked) {
    if (revoked) {
      ++changes_;
      rows_.erase(hash);
      if (changed_) changed_();
    }
    done(revoked);
  };
  access_ ? access_->write(&store::Store::revoke_token, hash, answered) : store_.revoke_token(hash, answered);
}

}  // namespace perseus::access
