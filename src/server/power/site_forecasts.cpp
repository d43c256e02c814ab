#include "server/power/site_forecasts.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <utility>

#include "server/jobs/power_budget.h"

namespace perseus::power {

void SiteForecasts::forecast(double hours, work::Done<SiteForecast> done) {
  if (site_.documents().current() == nullptr) return done(no_site());
  const bool fresh = hours == hours_ && clock_.now_s() < last_.now_s + kAge_s &&
                     of_ == jobs::format_site_document(*site_.documents().current());
  if (fresh) return done(last_);
  asked_.push_back({hours, clock_.now_s() + kPatience_s, std::move(done)});
  if (!alarm_.at()) alarm_.set(asked_.front().until_s);
  if (!dividing_) begin(hours);
}

void SiteForecasts::give_up(double now_s) {
  std::vector<Asked> late;
  while (!asked_.empty() && asked_.front().until_s <= now_s) {
    late.push_back(std::move(asked_.front()));
    asked_.erase(asked_.begin());
  }
  const Error error{ErrorCode::unavailable,
                    fmt::format("no forecast within {:g} s, since planners are busy: repeat the request", kPatience_s)};
  if (!asked_.empty()) alarm_.set(asked_.front().until_s);
  for (Asked& asked : late) asked.done(error);
}

void SiteForecasts::begin(double hours) {
  auto found = site_.jobs_now();
  if (!found) {
    const Error error{ErrorCode::unavailable, "the jobs of the site are still being read: repeat the request"};
    for (Asked& asked : std::exchange(asked_, {})) asked.done(error);
    return;
  }
  std::vector<int> accelerators;
  for (const PoweredJob& job : found->jobs) {
    const live::LiveJob* const live = jobs_.in_memory(job.id);
    accelerators.push_back(live == nullptr ? 0 : jobs::counted_accelerators(live->job));
  }
  dividing_ = true;
  const jobs::SiteDocument document = *site_.documents().current();
  of_ = jobs::format_site_document(document);
  const double now_s = clock_.now_s();
  executor_.submit(work::Executor::Kind::planning,
                   [this, document, site = std::move(*found), accelerators, now_s, hours]() -> std::function<void()> {
                     const auto ends = std::chrono::steady_clock::now() + std::chrono::duration<double>(kLongest_s);
                     const auto made = std::make_shared<SiteForecast>(
                         site_forecast(document, site, accelerators, now_s, now_s + hours * 3600,
                                       [ends] { return std::chrono::steady_clock::now() >= ends; }));
                     return [this, made, hours] { this->made(hours, std::move(*made)); };
                   });
}

void SiteForecasts::made(double hours, SiteForecast forecast) {
  dividing_ = false;
  hours_ = hours;
  last_ = std::move(forecast);
  std::vector<Asked> others;
  for (Asked& asked : std::exchange(asked_, {})) {
    asked.hours == hours ? asked.done(last_) : others.push_back(std::move(asked));
  }
  for (Asked& asked : others) asked_.push_back(std::move(asked));
  if (!asked_.empty() && !dividing_) begin(asked_.front().hours);
}

}  // namespace perseus::power
