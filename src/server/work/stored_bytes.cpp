#include "server/work/stored_bytes.h"

#include <set>
#include <utility>

#include "server/jobs/view_json.h"

namespace perseus::work {
namespace {

constexpr double kEvery_s = 600;

std::int64_t find(const StoredBytes::ByToken& bytes, const std::string& token) {
  const auto found = bytes.find(token);
  return found == bytes.end() ? 0 : found->second;
}

}  // namespace

StoredBytes::StoredBytes(StoreAccess& store, Due& due, Result<ByToken> counted, double now_s)
    : store_(store), alarm_(due, Due::Turn::sizes, *this) {
  alarm_.set(counted ? now_s + kEvery_s : now_s);
  if (counted) counted_ = *std::move(counted);
}

std::int64_t StoredBytes::of(const std::string& token) const {
  return find(counted_, token) + find(before_, token) + find(since_, token);
}

Result<StoredBytes::ByToken> StoredBytes::count(store::Store& store) {
  const auto jobs = store.jobs();
  if (!jobs) return jobs.error();
  const auto held = store.held_blobs();
  if (!held) return held.error();
  ByToken bytes;
  std::unordered_map<std::string, std::string> token_of;
  for (const store::JobIndexRow& row : *jobs) {
    if (row.damaged) continue;
    const std::string token = jobs::parse_summary(row.summary).owner.value_or("");
    if (token.empty()) continue;
    bytes[token] += row.bytes;
    token_of.emplace(row.job, token);
  }
  const auto histories = store.history_bytes();
  if (!histories) return histories.error();
  for (const store::HistoryBytes& history : *histories) {
    const auto token = token_of.find(history.job);
    if (token != token_of.end()) bytes[token->second] += history.bytes;
  }
  std::set<std::pair<std::string, std::string>> seen;
  for (const store::HeldBlob& blob : *held) {
    const auto token = token_of.find(blob.job);
    if (token != token_of.end() && seen.emplace(token->second, blob.key).second) bytes[token->second] += blob.bytes;
  }
  return bytes;
}

void StoredBytes::correct(double now_s) {
  alarm_.set(now_s + kEvery_s);
  if (std::exchange(counting_, true)) return;
  for (const auto& [token, bytes] : std::exchange(since_, {})) before_[token] += bytes;
  store_.read<ByToken>([](store::Store& store) { return count(store); },
                       [this](Result<ByToken> counted) {
                         counting_ = false;
                         if (!counted) return;
                         counted_ = *std::move(counted);
                         before_.clear();
                       });
}

}  // namespace perseus::work
