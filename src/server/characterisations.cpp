#include "server/characterisations.h"

#include <fmt/format.h>

#include <algorithm>

namespace perseus::server {
namespace {

constexpr std::size_t kept_frontiers = 8;

}  // namespace

Characterisations::Characterisations(std::string owner, double lease_s, StoreAccess& store, const Clock& clock,
                                     Executor& executor)
    : owner_(std::move(owner)), lease_s_(lease_s), store_(store), clock_(clock), executor_(executor) {}

Characterisations::Frontier Characterisations::known(const std::string& key) const {
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : found->second.lock();
}

void Characterisations::want(const std::string& key, Answer answer) {
  Work& work = work_[key];
  work.answers.push_back(std::move(answer));
  if (work.answers.size() == 1) start(key);
}

void Characterisations::start(const std::string& key) {
  work_[key].look_again_s.reset();
  if (known(key)) return read_frontier(key, "");
  store_.read<Bytes>([key](Store& store) { return store.blob("frontier/" + key); },
                     [weak = weak_from_this(), key](Result<Bytes> stored) {
                       const auto self = weak.lock();
                       if (!self) return;
                       if (!stored) return self->finish(key, stored.error());
                       *stored ? self->read_frontier(key, std::move(**stored)) : self->claim_and_compute(key);
                     });
}

void Characterisations::read_frontier(const std::string& key, std::string bytes) {
  executor_.submit(
      Executor::Kind::reading,
      [weak = weak_from_this(), key, known = known(key), bytes = std::move(bytes)]() -> std::function<void()> {
        Result<Frontier> result = known;
        if (!known) {
          auto parsed = parse_frontier(key, bytes);
          result = parsed ? Result<Frontier>(std::make_shared<const CharacterisedPipeline>(*std::move(parsed)))
                          : Result<Frontier>(parsed.error());
        }
        return [weak, key, result = std::move(result)] {
          const auto self = weak.lock();
          if (!self) return;
          // A frontier that cannot be read, from a later version perhaps, is made again.
          result ? self->finish(key, result) : self->claim_and_compute(key);
        };
      });
}

void Characterisations::claim_and_compute(const std::string& key) {
  const double now_s = clock_.now_s();
  store_.claim("characterise/" + key, owner_, now_s, lease_s_,
               [weak = weak_from_this(), key, now_s](const Result<bool>& claimed) {
                 const auto self = weak.lock();
                 if (!self) return;
                 if (!claimed) return self->finish(key, claimed.error());
                 Work& work = self->work_[key];
                 if (!*claimed) {
                   work.look_again_s = now_s + self->lease_s_ / 4;
                   return;
                 }
                 work.claimed = true;
                 work.renew_s = now_s + self->lease_s_ / 3;
                 self->compute(key);
               });
}

void Characterisations::compute(const std::string& key) {
  store_.read<Bytes>(
      [key](Store& store) { return store.blob("input/" + key); },
      [weak = weak_from_this(), key](Result<Bytes> input) {
        const auto self = weak.lock();
        if (!self) return;
        if (input && *input) return self->compute(key, std::move(**input));
        const Error missing{ErrorCode::not_found, fmt::format("the profile {} is not in the store", key)};
        self->finish(key, input ? missing : input.error());
      });
}

void Characterisations::compute(const std::string& key, std::string text) {
  executor_.submit(Executor::Kind::planning,
                   [weak = weak_from_this(), key, text = std::move(text)]() -> std::function<void()> {
                     Frontier frontier;
                     std::string bytes;
                     std::optional<Error> error;
                     if (const auto parsed = parse_input(text, "input/" + key); !parsed) {
                       error = parsed.error();
                     } else if (auto made = characterise(key, *parsed); !made) {
                       error = made.error();
                     } else {
                       bytes = format_frontier(*made);
                       frontier = std::make_shared<const CharacterisedPipeline>(*std::move(made));
                     }
                     return [weak, key, frontier, error, bytes = std::move(bytes)]() mutable {
                       const auto self = weak.lock();
                       if (!self) return;
                       error ? self->finish(key, *error) : self->save(key, std::move(frontier), std::move(bytes));
                     };
                   });
}

void Characterisations::save(const std::string& key, Frontier frontier, std::string bytes) {
  ++computed_;
  store_.put_blob({"frontier/" + key, std::move(bytes)},
                  [weak = weak_from_this(), key, frontier = std::move(frontier)](const Result<Ok>& saved) {
                    const auto self = weak.lock();
                    if (!self) return;
                    saved ? self->finish(key, frontier) : self->finish(key, saved.error());
                  });
}

void Characterisations::finish(const std::string& key, Result<Frontier> result) {
  const auto found = work_.find(key);
  if (found == work_.end()) return;
  const Work work = std::move(found->second);
  work_.erase(found);
  if (work.claimed) store_.release("characterise/" + key, owner_);
  if (result) {
    known_[key] = *result;
    std::erase(recent_, *result);
    recent_.push_back(*result);
    if (recent_.size() > kept_frontiers) recent_.pop_front();
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  } else if (result.error().code != ErrorCode::unavailable) {
    ++failed_;
  }
  for (const Answer& answer : work.answers) answer(result);
}

void Characterisations::tick(double now_s) {
  std::vector<std::string> again;
  for (auto& [key, work] : work_) {
    if (work.look_again_s && *work.look_again_s <= now_s) again.push_back(key);
    if (work.claimed && work.renew_s <= now_s) {
      work.renew_s = now_s + lease_s_ / 3;
      store_.claim("characterise/" + key, owner_, now_s, lease_s_, [](const Result<bool>&) {});
    }
  }
  for (const std::string& key : again) start(key);
}

std::optional<double> Characterisations::next_wake() const {
  std::optional<double> next;
  for (const auto& [key, work] : work_) {
    const std::optional<double> due = work.claimed ? work.renew_s : work.look_again_s;
    if (due && (!next || *due < *next)) next = due;
  }
  return next;
}

}  // namespace perseus::server
