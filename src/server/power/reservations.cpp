#include "server/power/reservations.h"

#include <fmt/format.h>

#include <algorithm>

namespace perseus::power {
namespace {

constexpr const char* kListKey = "site/reservations";

/// What a later version wrote is ignored: reservations expire soon.
Reservations::List list_in(const std::optional<std::string>& text) {
  if (!text) return {};
  auto read = jobs::reservations_in(*text, kListKey);
  return read ? *std::move(read) : Reservations::List();
}

}  // namespace

Status Reservations::open(store::Store& from) {
  const auto text = from.blob(kListKey);
  if (!text) return text.error();
  list_ = list_in(*text);
  return Ok{};
}

Reservations::List Reservations::at(double now_s) const {
  List list = list_;
  std::erase_if(list, [now_s](const jobs::Reservation& one) { return one.expires_s <= now_s; });
  return list;
}

void Reservations::change(Change change, work::Done<Ok> done) {
  const auto turn = [this, change = std::move(change)](const work::Done<Ok>& ended) {
    change(list_, [this, ended](const Result<std::optional<List>>& next) {
      if (!next) return ended(next.error());
      if (!*next) return ended(Ok{});
      store_.put_blob({kListKey, jobs::reservations_text(**next)}, [this, ended, list = **next](const Result<Ok>& put) {
        if (put) list_ = list;
        ended(put);
      });
    });
  };
  turns_.add(turn, std::move(done));
}

void Reservations::end_over(const std::vector<std::string>& used, const std::map<std::string, std::string>& moved,
                            double now_s) {
  const auto why = [used, moved](const jobs::Reservation& one, double then_s) -> std::string {
    const auto other = moved.find(one.job);
    if (other != moved.end()) return fmt::format("its job has started in another domain, '{}'", other->second);
    if (std::ranges::find(used, one.job) != used.end()) return "its job has started";
    return one.expires_s <= then_s ? "it has expired" : "";
  };
  const bool any = std::ranges::any_of(list_, [&](const auto& one) { return !why(one, now_s).empty(); });
  if (!any || ending_) return;
  ending_ = true;
  change(
      [this, why, now_s, before = list_](List list, const work::Done<std::optional<List>>& then) {
        std::erase_if(list, [&](const jobs::Reservation& one) {
          // Another one of the same name, made meanwhile, stays.
          const auto same = [&](const jobs::Reservation& other) {
            return other.is_same(one) && other.since_s == one.since_s && other.expires_s == one.expires_s;
          };
          const std::string reason = std::ranges::any_of(before, same) ? why(one, now_s) : "";
          if (!reason.empty()) {
            options_.host->log(fmt::format("site: the reservation of {:.6g} W for the job '{}' has ended: {}",
                                           one.power.value(), one.job, reason));
          }
          return !reason.empty();
        });
        then(std::optional(std::move(list)));
      },
      [this](const Result<Ok>&) { ending_ = false; });
}

}  // namespace perseus::power
