// A site with random limits, ranks that are cut off, restarts, and messages that are late, repeated or lost: what the
// ranks' clocks draw is never more than what the server counts, which exceeds a limit only where that fell, a job
// came, pacing ended, or a straggler began whose job has no plan within its grant.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "oracles/dice.h"
#include "tests/server/scenario/budgeted_job.h"
#include "tests/server/scenario/in_process.h"

namespace perseus::testing {
namespace {

constexpr double kStep_s = 0.25, kSlack_w = 1e-3, kMixed = 1.03;
constexpr std::array kDomains{"hall", "row-a", "row-b"};

struct RunningJob {
  std::string id;
  int microbatches = 4, domain = 0;
  bool keeps_budgets = true, paces = false;
  std::vector<BudgetedRank> ranks;
  /// When the test looked last.
  bool was_paced = false;
  Watts was_counted;

  [[nodiscard]] double period_s(double now_s) const {
    return std::max(ranks[0].period_s(now_s), ranks[1].period_s(now_s));
  }
  [[nodiscard]] Watts draws(double now_s) const {
    return mean_power({microbatches, {ranks[0].clocks(now_s), ranks[1].clocks(now_s)}, period_s(now_s)});
  }
  /// Clocks of two plans may draw more than either plan.
  [[nodiscard]] Watts may_draw(Watts counted, double now_s) const {
    const bool same = ranks[0].version(now_s) == ranks[1].version(now_s);
    return same ? counted : kMixed * counted;
  }
  [[nodiscard]] bool is_inside(int of) const { return of == 0 || of == domain; }
};

class RandomSite {
 public:
  explicit RandomSite(Dice& dice) : dice_(dice) {
    for (int j = dice.roll(2, 4); j > 0; --j) job_comes();
  }

  void run(int actions) {
    for (int n = 0; n < actions; ++n) {
      act();
      pass(dice_.one_in(4) ? dice_.real(10, 40) : dice_.real(0.25, 6));
    }
    calm_down();
  }

 private:
  static constexpr std::array kProfiles{std::pair{"short", 3}, std::pair{"long", 6}};

  void act() {
    switch (dice_.roll(0, 11)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return limits_change();
      case 4:
      case 5:
        return a_rank_is_cut_off();
      case 6:
        return server_.restart();
      case 7:
        return a_rank_starts_anew();
      case 8:
        return a_straggler();
      case 9:
        return server_stays_down();
      case 10:
        if (jobs_.size() < 5 && dice_.one_in(2)) job_comes();
        return;
      default:
        if (jobs_.size() > 2) job_goes();
    }
  }

  void job_comes() {
    const auto& [profile, microbatches] = kProfiles[dice_.roll(0, 1)];
    jobs::RegisterJob request;
    request.name = fmt::format("job-{}", ++named_);
    request.degrees = {1, 2, 1};
    request.profile = profile;
    const int domain = dice_.roll(0, 2);
    request.tier.domain = kDomains[domain];
    if (dice_.one_in(3)) request.tier.least_rate = dice_.one_in(2) ? 0.9 : 0.5;
    const auto registered = server_.register_job(request);
    RC_ASSERT(registered.ok());
    RunningJob job{registered->job, microbatches, domain, !dice_.one_in(6), dice_.one_in(2), {}, false, {}};
    for (int rank = 0; rank < 2; ++rank) {
      job.ranks.emplace_back(job.id, rank, microbatches);
      job.ranks.back().start(server_, job.keeps_budgets, job.paces);
    }
    jobs_.push_back(std::move(job));
    excused_ = true;
  }
  void job_goes() {
    const auto gone = jobs_.begin() + dice_.roll(0, static_cast<int>(jobs_.size()) - 1);
    RC_ASSERT(server_.finish_job(gone->id).ok());
    jobs_.erase(gone);
  }
  RunningJob& some_job() { return jobs_[dice_.roll(0, static_cast<int>(jobs_.size()) - 1)]; }
  BudgetedRank& some_rank() { return some_job().ranks[dice_.roll(0, 1)]; }
  void a_rank_is_cut_off() { some_rank().cut_off(now_s() + dice_.real(5, 60)); }
  void a_rank_starts_anew() {
    RunningJob& job = some_job();
    job.ranks[dice_.roll(0, 1)].start(server_, job.keeps_budgets, job.paces);
    excused_ = true;
  }
  void a_straggler() {
    jobs::SetStraggler request;
    request.job = some_job().id;
    request.target.rank = dice_.roll(0, 1);
    request.delay = Seconds(dice_.one_in(2) ? 0 : 5);
    straggles_s_.push_back(seconds_ + request.delay.value());
    request.degree = dice_.one_in(3) ? 1 : dice_.real(1, 2);
    RC_ASSERT(server_.set_straggler(request).ok());
  }
  /// Nobody renews a lease meanwhile, and a limit that was announced falls without the server.
  void server_stays_down() {
    std::map<std::string, Watts> counted;
    if (has_site_) {
      for (const power::SiteJobView& job : view().jobs) counted[job.job] = job.counted;
    }
    server_.stay_down(seconds_ += dice_.real(1, 40), [&] {
      for (const RunningJob& job : jobs_) {
        const auto most = counted.find(job.id);
        if (most == counted.end()) continue;
        const Watts draws = job.draws(now_s());
        RC_ASSERT(draws <= job.may_draw(most->second, now_s()) + Watts(kSlack_w));
      }
    });
  }

  void limits_change() {
    std::string domains;
    for (int d = 0; d < 3; ++d) {
      std::string limits;
      double from_s = 0;
      for (int steps = d == 0 ? dice_.roll(1, 4) : dice_.roll(0, 2); steps > 0; --steps) {
        limits += fmt::format(R"({}{{"from_s":{},"limit_w":{}}})", limits.empty() ? "" : ",", from_s, a_limit_w(d));
        from_s = std::max(from_s, now_s()) + dice_.real(5, 60);
      }
      domains += fmt::format(R"({}{{"name":"{}",{}"limits":[{}]}})", d == 0 ? "" : ",", kDomains[d],
                             d == 0 ? "" : R"("parent":"hall",)", limits);
    }
    const int dwell_s = dice_.roll(1, 10);
    const bool paces = !dice_.one_in(3);
    RC_ASSERT(
        server_.set_site(fmt::format(R"({{"domains":[{}],"dwell_s":{},"pacing":{}}})", domains, dwell_s, paces)).ok());
    // Without the site's consent, paced jobs draw at once what their slowest plans do.
    excused_ |= pacing_ && !paces;
    pacing_ = paces;
    has_site_ = true;
  }
  /// From what the slowest plans draw to more than the highest clocks do.
  double a_limit_w(int domain) {
    double least_w = 0, most_w = 0;
    for (const RunningJob& job : jobs_) {
      if (!job.is_inside(domain)) continue;
      const double all_max_w = mean_power_at(job.microbatches, kSmallClocks.front()).value();
      const double slowest_w = mean_power_at(job.microbatches, kSmallClocks.back()).value();
      least_w += !job.keeps_budgets ? all_max_w : job.paces ? 0.85 * slowest_w : slowest_w;
      most_w += all_max_w;
    }
    return std::max(1.0, dice_.real(0.95 * least_w, 1.1 * most_w));
  }

  void pass(double seconds) {
    for (const double until_s = seconds_ + seconds; seconds_ < until_s;) {
      seconds_ += kStep_s;
      server_.go_to(seconds_);
      for (RunningJob& job : jobs_) {
        for (BudgetedRank& rank : job.ranks) rank.act(server_, dice_);
      }
      server_.go_to(seconds_);
      look();
    }
  }

  power::SitePowerView view() {
    const auto view = server_.service().site.view();
    RC_ASSERT(view.ok());
    server_.settle();
    return *view;
  }

  void look() {
    excused_ |= std::erase_if(straggles_s_, [this](double at_s) { return at_s <= seconds_; }) > 0;
    if (!has_site_) return;
    const power::SitePowerView site = view();
    Watts no_longer_paced;  // a job that was cut off when pacing ended gets its first plan without waits now
    for (RunningJob& job : jobs_) {
      const auto shown = std::ranges::find(site.jobs, job.id, &power::SiteJobView::job);
      RC_ASSERT(shown != site.jobs.end());
      const Watts draws = job.draws(now_s());
      if (draws > job.may_draw(shown->counted, now_s()) + Watts(kSlack_w)) {
        RC_FAIL(fmt::format("{} at {:.2f} s draws {:.3f} W and counts as {:.3f} W ({}, {}): {}; {}", job.id, seconds_,
                            draws.value(), shown->counted.value(), shown->state, shown->reason,
                            job.ranks[0].text(now_s()), job.ranks[1].text(now_s())));
      }
      if (!pacing_ && job.was_paced) no_longer_paced += std::max(Watts(0), shown->counted - job.was_counted);
      job.was_paced = job.period_s(now_s()) > 0;
      job.was_counted = shown->counted;
    }
    for (const power::SiteDomainView& domain : site.domains) {
      RC_ASSERT(domain.price >= 0);
      Watts& before = counted_[domain.name];
      const Watts limit = domain.limit.value_or(Watts(1e9));
      if (!excused_ && domain.counted > std::max(limit, before) + no_longer_paced + Watts(kSlack_w)) {
        RC_FAIL(fmt::format("{} at {:.2f} s: {:.3f} W count, {:.3f} before, the limit is {:.3f} W", domain.name,
                            seconds_, domain.counted.value(), before.value(), limit.value()));
      }
      before = domain.counted;
    }
    excused_ = false;
  }

  [[nodiscard]] double now_s() const { return server_.now_s(); }

  Dice& dice_;
  InProcess server_{{}, database_with({kProfiles.begin(), kProfiles.end()})};
  double seconds_ = 0;
  int named_ = 0;
  std::vector<RunningJob> jobs_;
  bool has_site_ = false, pacing_ = false;
  /// A job or a process came, which counts as at the highest clock, pacing has ended, or a straggler began.
  bool excused_ = false;
  std::vector<double> straggles_s_;  ///< when stragglers take effect
  std::map<std::string, Watts> counted_;

  /// All ranks answer, and nothing changes any more: every limit that can be kept is kept.
  void calm_down() {
    if (!has_site_) return;
    for (RunningJob& job : jobs_) {
      for (BudgetedRank& rank : job.ranks) rank.cut_off(0);
    }
    pass(300);
    const power::SitePowerView site = view();
    for (std::size_t d = 0; d < site.domains.size(); ++d) {
      const power::SiteDomainView& domain = site.domains[d];
      Watts draws;
      for (const RunningJob& job : jobs_) {
        if (!job.is_inside(static_cast<int>(d))) continue;
        draws += job.draws(now_s());
      }
      if (!domain.limit || domain.missing > Watts(0)) continue;
      if (draws > *domain.limit + Watts(kSlack_w)) {
        RC_FAIL(fmt::format("{} draws {:.3f} W in the end, its limit is {:.3f} W", domain.name, draws.value(),
                            domain.limit->value()));
      }
    }
  }
};

RC_GTEST_PROP(SiteProperty, WhatIsDrawnIsCountedAndWhatIsCountedIsWithinTheLimits, ()) {
  SeededDice dice(*rc::gen::noShrink(rc::gen::arbitrary<std::uint64_t>()));
  RandomSite site(dice);
  site.run(dice.roll(1, 30));
}

}  // namespace
}  // namespace perseus::testing
