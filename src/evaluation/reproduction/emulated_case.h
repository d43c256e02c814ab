// One emulated pipeline planned by the paper's method and by Perseus' exact planner, with savings by both accountings.
//
// Problem: the paper's savings are of *planned* iterations: durations floored to tau, energies of the fits, both for
//          the plan and for the time of its baseline. A run pays the measured ones.
//            * planned(): the paper's accounting. T is the fastest planned time, also for the baseline: its energy is
//              sum(e - P t) of the measurements + N P T', as in table 6.
//            * the others: realized. T is the least time of any plan; everything at maximum clock takes its measured
//              time. Our plan without a straggler is the default plan (planning/model/default_plan.h); the published
//              method's is its fastest.
//          The baselines of planning/baselines are planned on the same DAG and realized alike. At the fastest point (T'
//          not given) each realized plan and the baseline end at their own times.
//            * of_cluster(): all pipelines of a job, one of which is the straggler, as in figures 7 and 8. The others
//              wait for T' = slowdown * T. The straggler runs the plan without a straggler and takes `slowdown` times
//              its energy. The paper's plan at T' is the one of least *planned total* energy at its own time among
//              those that end by T', which is not always the slowest.
// Input:   a valid ComputationDag, tau, and EnvPipe's iteration if it was published.
// Output:  savings in percent of the energy with everything at maximum clock, for one pipeline that waits for T' (its
//          own time without a straggler).
// Errors:  those of plan_perseus().
// Cost:    both planners' and the baselines'.
// Source:  paper sections 6.3 and 3.1, tables 5 and 6, figures 7 and 8; docs/reproduction.md.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "evaluation/reproduction/artifact.h"
#include "io/report/summary.h"
#include "planning/model/computation_dag.h"
#include "planning/model/default_plan.h"
#include "planning/model/frontier.h"
#include "planning/planner/exact.h"
#include "planning/planner/perseus_method.h"

namespace perseus::reproduction {

/// The published time-energy frontier against that of our implementation of the same method, at equal planned times.
struct FrontierComparison {
  int published_points = 0;
  int common_points = 0;
  double mean_deviation_pct = 0;     ///< of the magnitude
  double largest_deviation_pct = 0;  ///< with its sign
};
FrontierComparison compare_frontiers(const planner::PerseusRun& run, const std::vector<PublishedPoint>& published,
                                     Seconds tau);

class EmulatedCase {
 public:
  /// `planner`: options of the exact planner.
  static Result<EmulatedCase> plan(const model::ComputationDag& dag, Seconds tau,
                                   const planner::PlannerOptions& planner,
                                   std::optional<report::IterationCost> envpipe);

  [[nodiscard]] const planner::PerseusRun& paper() const { return paper_; }
  [[nodiscard]] const model::Frontier& paper_realized() const { return paper_realized_; }
  [[nodiscard]] const model::Frontier& ours() const { return ours_; }
  [[nodiscard]] const report::IterationCost& all_max() const { return all_max_; }
  /// As published.
  [[nodiscard]] const std::optional<report::IterationCost>& envpipe() const { return envpipe_; }
  /// One for each of baseline_methods(), in that order; without points if a method is not defined for the DAG.
  [[nodiscard]] const std::vector<model::Frontier>& baselines() const { return baselines_; }
  [[nodiscard]] Seconds planned_fastest() const { return paper_.steps().back().planned_time; }
  /// The slowest published planned time: that of the first step (the starting schedule is not published).
  [[nodiscard]] Seconds planned_slowest() const;
  [[nodiscard]] Seconds fastest() const { return ours_.points.back().time; }
  /// T of T'/T for all realized plans: everything at maximum clock, or T_min if no plan is that fast.
  [[nodiscard]] Seconds without_straggler() const { return model::time_without_straggler(ours_, all_max_.time); }

  struct CaseSavings {
    double paper_planned_pct = 0;
    double paper_realized_pct = 0;
    double ours_realized_pct = 0;
    double ours_fastest_pct = 0;  ///< T_min instead of the default plan; with a straggler the same as ours_realized_pct
    double bound_pct = 0;
    std::optional<double> envpipe_pct;  ///< as published, realized
    /// As in baselines(); nothing if a method has no plan that ends by a straggler's T'.
    std::vector<std::optional<double>> baselines_pct;
  };
  /// Without a straggler: every plan at its own time.
  [[nodiscard]] CaseSavings at_fastest() const;
  /// T' = slowdown * T, slowdown >= 1.
  [[nodiscard]] CaseSavings at_slowdown(double slowdown) const;

  /// One method's savings of a whole job with a straggler.
  struct Shares {
    double intrinsic_pct = 0;       ///< all pipelines run the plan without a straggler; against maximum clock
    double total_pct = 0;           ///< pipelines that wait run the plan for T'; against maximum clock (figure 7)
    double beyond_fastest_pct = 0;  ///< the same against the plan without a straggler everywhere (figure 8)
  };
  struct OfCluster {
    Shares paper_planned, paper_realized, ours_realized, bound;
    std::optional<Shares> envpipe;                 ///< as published, realized
    std::optional<Shares> envpipe_as_drawn;        ///< with the published error: pipelines + 1 wait, not pipelines - 1
    std::vector<std::optional<Shares>> baselines;  ///< nothing if a method has no plan that ends by T'
  };
  [[nodiscard]] OfCluster of_cluster(double slowdown, int pipelines) const;

 private:
  EmulatedCase() = default;
  struct Cost {
    Seconds time;
    Joules effective_energy;
  };
  [[nodiscard]] Shares shares(const Cost& all_max, const Cost& alone, const Cost& waiting, Seconds straggler,
                              double slowdown, int waiting_pipelines) const;
  [[nodiscard]] CaseSavings savings(double allowed, double slowdown) const;
  [[nodiscard]] double planned_saving_pct(Seconds allowed, Seconds straggler) const;
  /// Cost of an iteration that takes `own` and waits for T'.
  [[nodiscard]] double saving_pct(Joules effective_energy, Seconds own, Seconds straggler) const;

  planner::PerseusRun paper_;
  model::Frontier paper_realized_;
  model::Frontier ours_;
  report::IterationCost all_max_;
  std::optional<report::IterationCost> envpipe_;
  std::vector<model::Frontier> baselines_;
  Watts total_blocking_;
};

}  // namespace perseus::reproduction
