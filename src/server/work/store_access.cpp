#include "server/work/store_access.h"

#include <fmt/format.h>

#include <string_view>

namespace perseus::work {

Error StoreAccess::not_answered() {
  return {ErrorCode::unavailable,
          "database: it does not answer; a change that was sent to it may still take effect: try again"};
}

std::uint64_t StoreAccess::begin(Kind kind, std::function<void()> late) {
  open_[kind].emplace(next_, Call{clock_.now_s(), std::move(late)});
  set_alarm();
  return next_++;
}

void StoreAccess::end(Kind kind, std::uint64_t id, const std::optional<Error>& error) {
  open_[kind].erase(id);
  late_[kind].erase(id);
  unhurried_.erase(id);
  if (kind == reads) read_answered_s_ = clock_.now_s();
  set_alarm();
  if (!error || error->code != ErrorCode::unavailable) {
    failed_[kind].reset();
  } else if (failed_[kind]) {
    failed_[kind]->error = *error;
  } else {
    failed_[kind] = Failure{*error, clock_.now_s()};
  }
  tell(kind);
}

void StoreAccess::tell(Kind kind) {
  const bool fails = failed_[kind] || !late_[kind].empty();
  if (failed_[kind] && late_[kind].empty() && clock_.now_s() < quiet_until_s_[kind]) return;
  if (std::exchange(told_[kind], fails) == fails) return;
  const std::string_view calls = kind == reads ? "reads" : "writes";
  if (!fails) return warn_(fmt::format("the database takes {} again", calls));
  quiet_until_s_[kind] = clock_.now_s() + kQuiet_s;
  warn_(fmt::format("{} fail until this is mended: {}", calls,
                    failed_[kind] ? failed_[kind]->error.message : "database: it does not answer"));
}

void StoreAccess::append(store::Append append, Done<store::Appended> done, std::function<void()> slow,
                         std::function<void()> late) {
  const std::uint64_t id = begin(writes, std::move(late));
  unhurried_.emplace(id, Call{clock_.now_s(), std::move(slow)});
  set_alarm();
  store_.append(std::move(append),
                gate_.pass<store::Appended>([this, id, done = std::move(done)](Result<store::Appended> result) {
                  end(writes, id, result ? std::nullopt : std::optional(result.error()));
                  done(std::move(result));
                }));
}

void StoreAccess::give_up(double now_s) {
  std::vector<std::function<void()>> over;
  const auto take = [&](Kind kind, Calls& calls, double after_s, Calls* given_up) {
    while (!calls.empty() && waits_since(kind, calls.begin()->second) + after_s <= now_s) {
      auto call = calls.extract(calls.begin());
      over.push_back(std::move(call.mapped().over));
      if (given_up != nullptr) given_up->insert(std::move(call));
    }
  };
  take(writes, unhurried_, kSlow_s, nullptr);
  for (const Kind kind : {reads, writes}) take(kind, open_[kind], limit_s_, &late_[kind]);
  for (const Kind kind : {reads, writes}) tell(kind);
  set_alarm();
  for (const auto& call : over) call();
}

void StoreAccess::set_alarm() {
  std::optional<double> next;
  const auto earlier = [&](Kind kind, const Calls& calls, double after_s) {
    if (calls.empty()) return;
    const double wake_s = waits_since(kind, calls.begin()->second) + after_s;
    next = std::min(next.value_or(wake_s), wake_s);
  };
  earlier(writes, unhurried_, kSlow_s);
  for (const Kind kind : {reads, writes}) earlier(kind, open_[kind], limit_s_);
  alarm_.set(next);
}

void StoreAccess::probe() {
  if (std::exchange(probing_, true)) return;
  const auto write = [this](const Result<Ok>&) {
    // Only a successful write shows that a disk is no longer full.
    const bool may_write = !failed_[writes] && store_.read_only().empty();
    if (may_write || writes_late()) return void(probing_ = false);
    put_blob({"probe", ""}, [this](const Result<Ok>&) { probing_ = false; });
  };
  read<Ok>(
      [](store::Store& store) -> Result<Ok> {
        if (const auto read = store.read("probe", 0); !read) return read.error();
        const auto blob = store.blob("probe");
        return blob ? Result<Ok>(Ok{}) : Result<Ok>(blob.error());
      },
      write);
}

std::optional<std::int64_t> StoreAccess::size_bytes() {
  if (!std::exchange(measuring_, true)) {
    read<std::int64_t>([](store::Store& store) { return store.size_bytes(); },
                       [this](const Result<std::int64_t>& bytes) {
                         measuring_ = false;
                         if (bytes) size_bytes_ = *bytes;
                       });
  }
  return size_bytes_;
}

bool StoreAccess::is_busy() const {
  const auto any = [](const Calls& calls) { return !calls.empty(); };
  return std::ranges::any_of(open_, any) || std::ranges::any_of(late_, any);
}

StoreHealth StoreAccess::health() const {
  const double now_s = clock_.now_s();
  StoreHealth health;
  const auto failing = [&](const std::string& problem, double since_s) {
    if (health.answers || since_s < health.since_s) health = {false, problem, since_s};
  };
  if (const std::string why = store_.read_only(); !why.empty()) failing(why, opened_s_);
  for (const Kind kind : {reads, writes}) {
    if (failed_[kind]) failing(failed_[kind]->error.message, failed_[kind]->since_s);
    for (const Calls* calls : {&open_[kind], &late_[kind]}) {
      if (calls->empty()) continue;
      const double since_s = waits_since(kind, calls->begin()->second);
      if (since_s + kSlow_s <= now_s) failing("it does not answer", since_s);
    }
  }
  return health;
}

}  // namespace perseus::work
