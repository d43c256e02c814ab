#include "io/report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "io/report/format.h"
#include "io/report/line_chart.h"
#include "io/report/static_page.h"
#include "io/report/timeline.h"
#include "planning/model/default_plan.h"
#include "planning/model/reference_plans.h"

namespace perseus::report {
namespace {

/// Relative tolerance: the same measurements along the same path may be summed in another order.
constexpr double kRounding = 1e-12;

std::optional<Joules> effective_energy_at(const model::Frontier& frontier, Seconds deadline) {
  const Seconds within = deadline * (1 + kRounding);
  if (frontier.points.back().time > within) return std::nullopt;
  return frontier.points[point_for(frontier, within)].effective_energy;
}

/// True if `a` is as fast and needs no more energy than `b` at every T.
bool covers(const model::Frontier& a, const model::Frontier& b) {
  return std::ranges::all_of(b.points, [&](const model::FrontierPoint& point) {
    const std::optional<Joules> energy = effective_energy_at(a, point.time);
    return energy && *energy <= point.effective_energy + kRounding * point.energy;
  });
}

/// The values of T between which only the cost of waiting changes.
std::vector<Seconds> breakpoints(const model::Frontier& a, const model::Frontier& b) {
  const Seconds from = a.bound.t_min(), to = a.bound.t_star();
  std::vector<Seconds> all{from, to};
  for (const model::Frontier* frontier : {&a, &b}) {
    for (const model::FrontierPoint& point : frontier->points) {
      if (point.time > from && point.time < to) all.push_back(point.time);
    }
  }
  std::ranges::sort(all);
  return all;
}

class PairMeter {
 public:
  PairMeter(const model::ComputationDag& dag, const model::Frontier& a, const model::Frontier& b)
      : waiting_(dag.total_blocking_power()), a_(a), b_(b) {}

  PairComparison measure() {
    const std::vector<Seconds> at = breakpoints(a_, b_);
    const double width_s = (at.back() - at.front()).value();
    for (std::size_t k = 0; k + 1 < at.size(); ++k) {
      // If T_min equals T* there is one deadline, with the full weight.
      const double share = width_s > 0 ? (at[k + 1] - at[k]).value() / width_s : 1;
      if (share > 0) measure(at[k], at[k + 1], share);
    }
    pair_.mean_saving_pct = both_ > 0 ? sum_ / both_ : 0;
    const bool a_covers = covers(a_, b_), b_covers = covers(b_, a_);
    pair_.of_first.dominates = a_covers && !b_covers;
    pair_.of_second.dominates = b_covers && !a_covers;
    return pair_;
  }

 private:
  void measure(Seconds from, Seconds to, double share) {
    const std::optional<Joules> a = effective_energy_at(a_, from), b = effective_energy_at(b_, from);
    if (a && b) {
      const auto saving_pct = [&](Seconds t) { return 100 * ((*b - *a) / (*b + waiting_ * t)); };
      both_ += share;
      sum_ += share * (saving_pct(from) + 4 * saving_pct(0.5 * (from + to)) + saving_pct(to)) / 6;
      if (std::abs((*b - *a).value()) <= kRounding * (*b + waiting_ * from).value()) {
        pair_.equal_pct += 100 * share;
      } else if (*a < *b) {
        add(pair_.of_first, share, saving_pct(from), from);
      } else {
        add(pair_.of_second, share, 100 * ((*a - *b) / (*a + waiting_ * from)), from);
      }
      return;
    }
    if (!a && !b) {
      pair_.equal_pct += 100 * share;
      return;
    }
    Advantage& faster = a ? pair_.of_first : pair_.of_second;
    faster.better_pct += 100 * share;
    faster.only_pct += 100 * share;
  }

  static void add(Advantage& advantage, double share, double saving_pct, Seconds at) {
    advantage.better_pct += 100 * share;
    if (saving_pct <= advantage.largest_pct) return;
    advantage.largest_pct = saving_pct;
    advantage.largest_at = at;
  }

  Watts waiting_;
  const model::Frontier& a_;
  const model::Frontier& b_;
  PairComparison pair_;
  double both_ = 0, sum_ = 0;
};

std::string description(const std::vector<ComparedMethod>& methods) {
  std::string text;
  for (const ComparedMethod& method : methods) {
    const model::FrontierPoint& fastest = method.frontier.points.back();
    const model::FrontierPoint& slowest = method.frontier.points.front();
    text += fmt::format("{}{}: {} at {}", text.empty() ? "" : " ", method.name, text_of(fastest.energy),
                        text_of(fastest.time));
    if (method.frontier.points.size() > 1) {
      text += fmt::format(" to {} at {}", text_of(slowest.energy), text_of(slowest.time));
    }
    text += ".";
  }
  return text;
}

}  // namespace

std::vector<PairComparison> compare_pairs(const model::ComputationDag& dag,
                                          const std::vector<ComparedMethod>& methods) {
  std::vector<PairComparison> pairs;
  for (int a = 0; a < static_cast<int>(methods.size()); ++a) {
    for (int b = a + 1; b < static_cast<int>(methods.size()); ++b) {
      PairComparison pair = PairMeter(dag, methods[a].frontier, methods[b].frontier).measure();
      pair.first = a, pair.second = b;
      pairs.push_back(pair);
    }
  }
  return pairs;
}

void write_comparison_html(const ComparisonInput& input, const std::vector<PairComparison>& pairs, const Sink& sink) {
  std::string drawing;
  write_comparison_svg(input, [&](std::string_view piece) { drawing += piece; });
  std::vector<ReportFact> in_words;
  for (const ComparedMethod& method : input.methods) {
    in_words.push_back({method.name, method.description + (method.note.empty() ? "" : "; " + method.note)});
  }
  write_static_page(
      {"Perseus comparison",
       input.title,
       input.inputs,
       {{"", {drawing}, {}, {}, ""},
        {"Methods",
         {},
         std::move(in_words),
         method_rows(input),
         fmt::format(
             "Saving: against everything at maximum clock, each at its own iteration time. In time: the slowest "
             "plan that is at most {:g} % slower than everything at maximum clock. Gap: of the fastest point, "
             "to the lower bound.",
             100 * input.slowdown)},
        {"Pairwise comparison",
         {},
         {},
         pair_rows(input, pairs),
         "Shares are of the deadlines T from the fastest possible iteration to the slowest one that still saves "
         "energy. "
         "At equal T each method runs its slowest plan that is no slower, and waits for the rest. Mean saving: of the "
         "first against the second, over the T that both reach. A method "
         "dominates where at every T it is at least as good, and at some better."}}},
      sink);
}

void write_comparison_svg(const ComparisonInput& input, const Sink& sink) {
  ChartPanel panel;
  for (const ComparedMethod& method : input.methods) {
    const int position = static_cast<int>(panel.series.size());
    ChartSeries series{method.name, look_of(method.name, position), SeriesKind::marked_line};
    for (const model::FrontierPoint& point : method.frontier.points) {
      series.points.push_back({point.time.value(), point.energy.value()});
    }
    panel.series.push_back(std::move(series));
  }
  sink(line_chart({"Time-energy frontiers: " + input.title, "iteration time [s]", "energy per iteration [J]",
                   description(input.methods)},
                  {panel}));
}

TextRows method_rows(const ComparisonInput& input) {
  const Timeline reference = timeline_of(input.dag, model::all_maximum_clock(input.dag));
  const Seconds lateness = input.methods.front().frontier.maximum_clock_noise.lateness;
  const Seconds t_max = reference.makespan + lateness;
  const Joules all_max = reference.energy + input.dag.total_blocking_power() * lateness;
  TextRows rows{
      {"method", "points", "in time", "saving", "fastest", "energy", "saving", "gap", "slowest", "energy", "saving"},
      {}};
  for (const ComparedMethod& method : input.methods) {
    const model::FrontierPoint& fastest = method.frontier.points.back();
    const model::FrontierPoint& slowest = method.frontier.points.front();
    const auto saving = [&](const model::FrontierPoint& p) { return percent(100 * ((all_max - p.energy) / all_max)); };
    const model::FrontierPoint& in_time =
        method.frontier.points[model::default_point(method.frontier, t_max, {input.slowdown, false})];
    const bool is_late = in_time.time > model::kSameTime * (1 + input.slowdown) * t_max;
    rows.rows.push_back({method.name, fmt::format("{}", method.frontier.points.size()),
                         is_late ? "-" : text_of(in_time.time), is_late ? "-" : saving(in_time), text_of(fastest.time),
                         text_of(fastest.energy), saving(fastest), percent(std::max(0.0, fastest.gap_pct())),
                         text_of(slowest.time), text_of(slowest.energy), saving(slowest)});
  }
  return rows;
}

TextRows pair_rows(const ComparisonInput& input, const std::vector<PairComparison>& pairs) {
  TextRows rows{{"first", "second", "first better", "only it", "second better", "only it", "mean saving",
                 "first saves up to", "second saves up to", "verdict"},
                {}};
  for (const PairComparison& pair : pairs) {
    const auto most = [](const Advantage& a) {
      return a.largest_pct > 0 ? fmt::format("{} at {}", percent(a.largest_pct), text_of(a.largest_at)) : "-";
    };
    const std::string verdict = pair.of_first.dominates    ? "first dominates"
                                : pair.of_second.dominates ? "second dominates"
                                : pair.equal_pct >= 100    ? "equal"
                                                           : "neither dominates";
    rows.rows.push_back({input.methods[pair.first].name, input.methods[pair.second].name,
                         percent(pair.of_first.better_pct), percent(pair.of_first.only_pct),
                         percent(pair.of_second.better_pct), percent(pair.of_second.only_pct),
                         percent(pair.mean_saving_pct), most(pair.of_first), most(pair.of_second), verdict});
  }
  return rows;
}

}  // namespace perseus::report
