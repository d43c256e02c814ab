#include "planning/site/fill.h"

#include <algorithm>
#include <queue>

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
    std::priority_queue<Raise> raises;
    const auto push = [&](int job) {
      if (const Raise raise = best_of(job); raise.gain_per_w > 0) raises.push(raise);
    };
    for (int j = 0; j < std::ssize(site_.jobs); ++j) push(j);
    while (!raises.empty()) {
      const Raise raise = raises.top();
      raises.pop();
      if (best_of(raise.job).point == raise.point) {  // others may have taken the watts for it
        const std::vector<model::PowerPoint>& points = site_.jobs[raise.job].curve.points;
        take(raise.job, points[raise.point].power - points[chosen_[raise.job]].power);
        chosen_[raise.job] = raise.point;
      }
      push(raise.job);
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
  [[nodiscard]] Raise best_of(int job) const {
    const model::SiteJob& j = site_.jobs[job];
    const auto now = j.curve.points.begin() + chosen_[job];
    const auto beyond = std::upper_bound(now, j.curve.points.end(), now->power + left_of(job),
                                         [](Watts power, const model::PowerPoint& p) { return power < p.power; });
    if (beyond == now || beyond - 1 == now) return {};
    const auto to = beyond - 1;
    const double gain = model::value_of(objective_, j, to->rate) - model::value_of(objective_, j, now->rate);
    return {gain / (to->power - now->power).value(), job, static_cast<int>(to - j.curve.points.begin())};
  }

  const model::Site& site_;
  model::SiteObjective objective_;
  std::vector<Watts> left_;
  std::vector<int>& chosen_;
};

}  // namespace

void fill(const model::Site& site, model::SiteObjective objective, std::span<const Watts> limits,
          std::vector<int>& chosen) {
  Filler(site, objective, limits, chosen).run();
}

}  // namespace perseus::site
