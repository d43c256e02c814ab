#include "server/service/reservations.h"

#include <fmt/format.h>

#include <algorithm>

namespace perseus::service {
namespace {

constexpr const char* kListKey = "site/reservations";
constexpr const char* kReserve = "site/reserve";
/// From a read until what follows from it is stored.
constexpr double kGrant_s = 2;

/// What a later version wrote is ignored: reservations expire soon.
Reservations::List list_in(const std::optional<std::string>& text) {
  if (!text) return {};
  auto read = jobs::reservations_in(*text, kListKey);
  return read ? *std::move(read) : Reservations::List();
}

}  // namespace

Reservations::Reservations(const ServiceOptions& options, StoreAccess& store, const Clock& clock)
    : options_(options),
      store_(store),
      clock_(clock),
      turns_(std::make_shared<StoreTurns>(
          kReserve, Error{ErrorCode::unavailable, "another server is admitting a job: repeat the request"}, options,
          store, clock)) {}

Status Reservations::open(store::Store& from) {
  const auto text = from.blob(kListKey);
  if (!text) return text.error();
  apply(list_in(*text), clock_.now_s());
  read_s_ = clock_.now_s();
  return Ok{};
}

Reservations::List Reservations::at(double now_s) const {
  List list = list_;
  std::erase_if(list, [now_s](const jobs::Reservation& one) { return one.expires_s <= now_s; });
  return list;
}

void Reservations::apply(List list, double now_s) {
  decltype(known_s_) known_s;
  for (const jobs::Reservation& one : list) {
    const std::pair key(one.job, one.since_s);
    const auto before = known_s_.find(key);
    known_s.emplace(key, before == known_s_.end() ? now_s : before->second);
  }
  known_s_ = std::move(known_s);
  list_ = std::move(list);
}

void Reservations::read(Done<Ok> done) {
  const double began_s = clock_.now_s();
  const std::uint64_t changes = changes_;
  store_.read<std::optional<std::string>>(
      [](store::Store& from) { return from.blob(kListKey); },
      [weak = weak_from_this(), began_s, changes,
       done = std::move(done)](const Result<std::optional<std::string>>& text) {
        const auto self = weak.lock();
        if (!self) return;
        if (!text) return done(text.error());
        if (changes == self->changes_) {  // otherwise this may be the list before a change of this server
          self->apply(list_in(*text), self->clock_.now_s());
          self->read_s_ = began_s;
        }
        done(Ok{});
      });
}

void Reservations::change(Change change, Done<Ok> done) {
  const auto turn = [weak = weak_from_this(), change = std::move(change)](const Done<Ok>& ended) {
    const auto self = weak.lock();
    if (!self) return;
    self->read([weak, change, ended](const Result<Ok>& read) {
      const auto still = weak.lock();
      if (!still) return;
      if (!read) return ended(read.error());
      change(still->list_, [weak, ended](const Result<std::optional<List>>& next) {
        const auto owner = weak.lock();
        if (!owner) return;
        if (!next) return ended(next.error());
        if (!*next) return ended(Ok{});
        owner->store_.put_blob({kListKey, jobs::reservations_text(**next)},
                               [weak, ended, list = **next](const Result<Ok>& put) {
                                 const auto last = weak.lock();
                                 if (!last) return;
                                 if (put) {
                                   ++last->changes_;
                                   last->apply(list, last->clock_.now_s());
                                 }
                                 ended(put);
                               });
      });
    });
  };
  turns_->add(turn, std::move(done));
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
      [weak = weak_from_this(), why, now_s, before = list_](List list, const Done<std::optional<List>>& then) {
        const auto self = weak.lock();
        if (!self) return;
        std::erase_if(list, [&](const jobs::Reservation& one) {
          // Another one of the same name, made meanwhile, stays.
          const auto same = [&](const jobs::Reservation& other) {
            return other.is_same(one) && other.since_s == one.since_s && other.expires_s == one.expires_s;
          };
          const std::string reason = std::ranges::any_of(before, same) ? why(one, now_s) : "";
          if (!reason.empty() && self->options_.log) {
            self->options_.log(fmt::format("site: the reservation of {:.6g} W for the job '{}' has ended: {}",
                                           one.power.value(), one.job, reason));
          }
          return !reason.empty();
        });
        then(std::optional(std::move(list)));
      },
      [weak = weak_from_this()](const Result<Ok>&) {
        if (const auto self = weak.lock()) self->ending_ = false;
      });
}

void Reservations::tick(double now_s) {
  if (options_.site_poll_s <= 0 || now_s < next_read_s_) return;
  next_read_s_ = now_s + options_.site_poll_s;
  read([](const Result<Ok>&) {});
}

bool Reservations::is_fresh(double now_s) const {
  return options_.site_poll_s <= 0 || now_s <= read_s_ + options_.site_poll_s + kLate_s;
}

bool Reservations::is_known_to_all(const jobs::Reservation& reservation, double now_s) const {
  const auto known = known_s_.find({reservation.job, reservation.since_s});
  if (known == known_s_.end()) return false;
  return options_.site_poll_s <= 0 || now_s >= known->second + options_.site_poll_s + kLate_s + kGrant_s;
}

}  // namespace perseus::service
