#include "planning/site/fill.h"

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

namespace perseus::site {
namespace {

/// A job's best point within the watts that its domains have left.
struct Raise {
  double gain_per_w = 0;
  int job = 0, point = 0;
  bool operator<(const Raise& other) const {
    return gain_per_w != other.gain_per_w ? gain_per_w < other.gain_per_w : job > other.job;
  }
};

class Filler {
 public:
  Filler(const model::Site& site, model::SiteObjective objective, std::span<const Watts> limits,
         std::vector<int>& chosen)
      : site_(site), objective_(objective), chosen_(chosen) {
    for (const Watts limit : limits) left_.push_back(kRoundingError * limit);
    for (int j = 0; j < std::ssize(site.jobs); ++j) take(j, site.jobs[j].curve.points[chosen[j]].power);
  }

  void run() {
    std::vector<Raise> possible;
    for (int j = 0; j < std::ssize(site_.jobs); ++j) {
      if (const Raise raise = best_of(j); raise.gain_per_w > 0) possible.push_back(raise);
    }
    std::priority_queue<Raise> raises({}, std::move(possible));
    while (!raises.empty() && least_step_ <= left_[0]) {
      const Raise raise = raises.top();
      raises.pop();
      Raise next = best_of(raise.job);
      if (next.point == raise.point) {  // others may have taken the watts for it
        const std::vector<model::PowerPoint>& points = site_.jobs[raise.job].curve.points;
        take(raise.job, points[raise.point].power - points[chosen_[raise.job]].power);
        chosen_[raise.job] = raise.point;
        next = best_of(raise.job);
      }
      if (next.gain_per_w > 0) raises.push(next);
    }
  }

 private:
  void take(int job, Watts power) {
    for (int d = site_.jobs[job].domain; d >= 0; d = site_.domains[d].parent) left_[d] -= power;
  }
  [[nodiscard]] Watts left_of(int job) const {
    Watts left = model::kNoLimit;
    for (int d = site_.jobs[job].domain; d >= 0; d = site_.domains[d].parent) left = std::min(left, left_[d]);
    return left;
  }
  Raise best_of(int job) {
    const model::SiteJob& j = site_.jobs[job];
    const auto now = j.curve.points.begin() + chosen_[job];
    const std::ptrdiff_t beyond = j.curve.points.end() - now;
    if (beyond == 1) return {};
    least_step_ = std::min(least_step_, now[1].power - now->power);
    if (now[1].power > now->power + left_[0]) return {};  // so it is for most jobs
    const Watts most = now->power + left_of(job);
    std::ptrdiff_t fits = 0;
    for (std::ptrdiff_t reach = 1; reach > 0;) {
      const bool is_within = fits + reach < beyond && now[fits + reach].power <= most;
      if (is_within) fits += reach;
      reach = is_within ? 2 * reach : reach / 2;
    }
    if (fits == 0) return {};
    const auto to = now + fits;
    return {model::gain_per_w(objective_, j.weight, *now, *to), job, static_cast<int>(to - j.curve.points.begin())};
  }

  const model::Site& site_;
  model::SiteObjective objective_;
  std::vector<Watts> left_;
  Watts least_step_ = model::kNoLimit;  ///< no job takes less
  std::vector<int>& chosen_;
};

}  // namespace

void fill(const model::Site& site, model::SiteObjective objective, std::span<const Watts> limits,
          std::vector<int>& chosen) {
  Filler(site, objective, limits, chosen).run();
}

}  // namespace perseus::site
