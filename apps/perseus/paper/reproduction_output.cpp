#include "paper/reproduction_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string_view>

#include "command_line/output_directory.h"
#include "io/report/line_chart.h"
#include "io/report/stacked_bars.h"
#include "planning/baselines/methods.h"

namespace perseus::cli {
namespace {

constexpr double kFigure7Slowdown = 1.2;
constexpr int kFigure7Gpus = 1024;
constexpr int kFigure8First_pct = 101;
constexpr int kFigure8Last_pct = 150;
constexpr std::size_t kMaxPointsPerFrontier = 1000;

OutputDirectory::IsOurs files_of_a_reproduction() {
  return one_of({"index.html", "table5.csv", "table6.csv", "cases.csv", "figure7.csv", "figure7.svg", "figure8.csv",
                 "non_straggler.csv", "frontiers.csv", "figure8_*.svg", "frontiers_*.svg"});
}

std::string optional_pct(const std::optional<double>& pct) { return pct ? fmt::format("{:.4f}", *pct) : ""; }

/// "paper_planned" as text for display.
std::string spoken(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

/// Column name of a baseline where the published EnvPipe stands beside ours: "zeus-global" -> "zeus_global".
std::string column_of(const baselines::BaselineMethod& method) {
  std::string name(method.name);
  std::ranges::replace(name, '-', '_');
  return name == "envpipe" ? "envpipe_recomputed" : name;
}
/// The reference of all savings.
bool is_reference(const baselines::BaselineMethod& method) { return method.name == "all-max"; }

struct TimeEnergy {
  Seconds time;
  Joules energy;
};

std::vector<TimeEnergy> points_of(const model::Frontier& frontier) {
  std::vector<TimeEnergy> points;
  for (const model::FrontierPoint& p : frontier.points) points.push_back({p.time, p.energy});
  std::ranges::reverse(points);
  return points;
}

std::vector<TimeEnergy> planned_points(const reproduction::EmulatedCase& plans) {
  std::vector<TimeEnergy> planned;
  for (const planner::PerseusStep& s : plans.paper().steps()) planned.push_back({s.planned_time, s.planned_energy});
  std::ranges::reverse(planned);
  if (planned.size() > 1) planned.pop_back();  // the starting schedule is not part of the published frontier
  return planned;
}

std::vector<TimeEnergy> bound_points(const reproduction::EmulatedCase& plans) {
  const Watts blocking = (plans.all_max().energy - plans.all_max().effective_energy) / plans.all_max().time;
  std::vector<TimeEnergy> bound;
  for (const model::BoundVertex& v : plans.ours().bound.vertices) {
    bound.push_back({v.time, v.effective_energy + blocking * v.time});
  }
  return bound;
}

std::vector<TimeEnergy> envpipe_points(const reproduction::EmulatedCase& plans) {
  if (!plans.envpipe()) return {};
  return {{plans.envpipe()->time, plans.envpipe()->energy}};
}

/// Names and looks of the paper's plans (planned and realized), ours, the bound, the published EnvPipe, and our
/// computation of the baselines.
struct Method {
  std::string name;
  report::SeriesLook look;
  std::function<std::optional<double>(const reproduction::EmulatedCase::CaseSavings&)> saving_pct;
  std::function<std::optional<reproduction::EmulatedCase::Shares>(const reproduction::EmulatedCase::OfCluster&)>
      of_cluster;
  std::function<std::vector<TimeEnergy>(const reproduction::EmulatedCase&)> points;  ///< fastest first; none: no plan
};

const std::vector<Method>& methods() {
  using Plans = reproduction::EmulatedCase;
  using CaseSavings = Plans::CaseSavings;
  using Cluster = Plans::OfCluster;
  static const std::vector<Method> all = [] {
    std::vector<Method> made{
        {"paper_planned", report::variant_of(report::look_of("perseus")),
         [](const CaseSavings& s) { return s.paper_planned_pct; }, [](const Cluster& c) { return c.paper_planned; },
         planned_points},
        {"paper_realized", report::look_of("perseus"), [](const CaseSavings& s) { return s.paper_realized_pct; },
         [](const Cluster& c) { return c.paper_realized; },
         [](const Plans& plans) { return points_of(plans.paper_realized()); }},
        {"ours_realized", report::look_of("exact"), [](const CaseSavings& s) { return s.ours_realized_pct; },
         [](const Cluster& c) { return c.ours_realized; }, [](const Plans& plans) { return points_of(plans.ours()); }},
        {"bound", report::look_of("bound"), [](const CaseSavings& s) { return s.bound_pct; },
         [](const Cluster& c) { return c.bound; }, bound_points},
        {"envpipe", report::variant_of(report::look_of("envpipe")), [](const CaseSavings& s) { return s.envpipe_pct; },
         [](const Cluster& c) { return c.envpipe; }, envpipe_points},
    };
    for (std::size_t k = 0; k < baselines::baseline_methods().size(); ++k) {
      const baselines::BaselineMethod& method = baselines::baseline_methods()[k];
      if (is_reference(method)) continue;
      made.push_back({column_of(method), report::look_of(method.name),
                      [k](const CaseSavings& s) { return s.baselines_pct[k]; },
                      [k](const Cluster& c) { return c.baselines[k]; },
                      [k](const Plans& plans) { return points_of(plans.baselines()[k]); }});
    }
    return made;
  }();
  return all;
}

/// Consecutive cases of one model and GPU.
std::vector<std::vector<const ReproducedCase*>> by_model_and_gpu(const std::vector<ReproducedCase>& cases) {
  std::vector<std::vector<const ReproducedCase*>> groups;
  for (const ReproducedCase& c : cases) {
    if (groups.empty() || groups.back()[0]->model != c.model || groups.back()[0]->gpu != c.gpu) groups.emplace_back();
    groups.back().push_back(&c);
  }
  return groups;
}

int pipelines(const ReproducedCase& c) { return kGlobalBatchSize / c.microbatches; }
int gpus(const ReproducedCase& c) { return pipelines(c) * c.stages * kTensorParallel; }

/// At most kMaxPointsPerFrontier of them, evenly spread, the ends always.
std::vector<TimeEnergy> thinned(const std::vector<TimeEnergy>& all) {
  if (all.size() <= kMaxPointsPerFrontier) return all;
  std::vector<TimeEnergy> some;
  for (std::size_t i = 0; i < kMaxPointsPerFrontier; ++i) {
    some.push_back(all[i * (all.size() - 1) / (kMaxPointsPerFrontier - 1)]);
  }
  return some;
}

std::string panel_title(const ReproducedCase& c) {
  return fmt::format("{} microbatches, {} GPUs", c.microbatches, gpus(c));
}

std::string frontier_picture(const std::vector<const ReproducedCase*>& group) {
  std::vector<report::ChartPanel> panels;
  for (const ReproducedCase* c : group) {
    report::ChartPanel panel{panel_title(*c), {}, c->plans.all_max().time.value(), "all at maximum clock"};
    for (const Method& method : methods()) {
      report::ChartSeries series{spoken(method.name), method.look};
      for (const TimeEnergy& p : thinned(method.points(c->plans))) {
        series.points.push_back({p.time.value(), p.energy.value()});
      }
      if (!series.points.empty()) panel.series.push_back(std::move(series));
    }
    panels.push_back(std::move(panel));
  }
  return report::line_chart({fmt::format("Time-energy frontiers: {} on {}", group[0]->model, group[0]->gpu),
                             "iteration time [s]", "energy of an iteration [J]"},
                            panels);
}

std::string figure8_picture(const std::vector<const ReproducedCase*>& group) {
  std::vector<report::ChartPanel> panels;
  for (const ReproducedCase* c : group) {
    report::ChartPanel panel{panel_title(*c), {}, {}, {}};
    std::vector<reproduction::EmulatedCase::OfCluster> savings;
    for (int pct = kFigure8First_pct; pct <= kFigure8Last_pct; ++pct) {
      savings.push_back(c->plans.of_cluster(pct / 100.0, pipelines(*c)));
    }
    for (const Method& method : methods()) {
      report::ChartSeries series{spoken(method.name), method.look};
      for (int pct = kFigure8First_pct; pct <= kFigure8Last_pct; ++pct) {
        if (const auto shares = method.of_cluster(savings[pct - kFigure8First_pct])) {
          series.points.push_back({pct / 100.0, shares->beyond_fastest_pct});
        }
      }
      if (!series.points.empty()) panel.series.push_back(std::move(series));
    }
    const double t_star = c->plans.ours().points.front().time / c->plans.without_straggler();
    panel.series.push_back({"T*/T of ours",
                            report::look_of("exact"),
                            report::SeriesKind::marks,
                            {{t_star, c->plans.of_cluster(t_star, pipelines(*c)).ours_realized.beyond_fastest_pct}}});
    panels.push_back(std::move(panel));
  }
  return report::line_chart(
      {fmt::format("Savings of the whole job beyond the fastest plan's while a straggler sets the pace: {} "
                   "on {}",
                   group[0]->model, group[0]->gpu),
       "T'/T", "saving [%]"},
      panels);
}

/// At 1,024 GPUs as in the paper; of a model without that scale, the most microbatches.
std::string figure7_picture(const std::vector<ReproducedCase>& cases) {
  std::vector<report::BarGroup> groups;
  for (const auto& group : by_model_and_gpu(cases)) {
    const auto as_published = std::ranges::find_if(group, [](const auto* c) { return gpus(*c) == kFigure7Gpus; });
    const ReproducedCase& c = as_published != group.end() ? **as_published : *group.back();
    const reproduction::EmulatedCase::OfCluster savings = c.plans.of_cluster(kFigure7Slowdown, pipelines(c));
    report::BarGroup bars{fmt::format("{} on {}, {}", c.model, c.gpu, panel_title(c)), {}};
    for (const Method& method : methods()) {
      const auto shares = method.of_cluster(savings);
      if (shares) {
        const double extrinsic_pct = shares->total_pct - shares->intrinsic_pct;
        bars.bars.push_back(
            {spoken(method.name),
             fmt::format("{:.1f} + {:.1f} = {:.1f} %", shares->intrinsic_pct, extrinsic_pct, shares->total_pct),
             {shares->intrinsic_pct, extrinsic_pct}});
      }
    }
    groups.push_back(std::move(bars));
  }
  return report::stacked_bars(
      fmt::format("Where the saving comes from while a straggler is {:g} times slower", kFigure7Slowdown),
      {"intrinsic bloat", "extrinsic bloat"}, groups);
}

std::string table5_csv(const std::vector<ReproducedCase>& cases) {
  std::set<std::array<int, 4>> scales;
  for (const ReproducedCase& c : cases) scales.insert({gpus(c), pipelines(c), c.microbatches, c.stages});
  std::string text = "gpus,pipelines,microbatches_per_pipeline,global_batch_size,tensor_parallel,stages\n";
  for (const auto& [all_gpus, all_pipelines, microbatches, stages] : scales) {
    text += fmt::format("{},{},{},{},{},{}\n", all_gpus, all_pipelines, microbatches, kGlobalBatchSize, kTensorParallel,
                        stages);
  }
  return text;
}

Table table_of_cases(const std::vector<ReproducedCase>& cases) {
  using Case = const ReproducedCase&;
  using reproduction::FrontierComparison, report::IterationCost;
  const auto part = [](const auto& whole, auto of) {
    return whole ? std::optional(std::invoke(of, *whole)) : std::nullopt;
  };
  return table_of<ReproducedCase>(
      cases, {{"model", &ReproducedCase::model},
              {"gpu", &ReproducedCase::gpu},
              {"microbatches", &ReproducedCase::microbatches},
              {"gpus", gpus},
              {"blocking_power_w", &ReproducedCase::blocking_power},
              {"tau_s", &ReproducedCase::tau},
              {"all_max_time_s", [](Case c) { return c.plans.all_max().time; }},
              {"all_max_energy_j", [](Case c) { return c.plans.all_max().energy; }},
              {"paper_planned_fastest_s", [](Case c) { return c.plans.planned_fastest(); }},
              {"paper_planned_slowest_s", [](Case c) { return c.plans.planned_slowest(); }},
              {"paper_realized_fastest_s", [](Case c) { return c.plans.paper_realized().points.back().time; }},
              {"paper_realized_slowest_s", [](Case c) { return c.plans.paper_realized().points.front().time; }},
              {"ours_fastest_s", [](Case c) { return c.plans.fastest(); }},
              {"ours_slowest_s", [](Case c) { return c.plans.ours().points.front().time; }},
              {"bound_t_star_s", [](Case c) { return c.plans.ours().bound.t_star(); }},
              {"envpipe_time_s", [=](Case c) { return part(c.plans.envpipe(), &IterationCost::time); }},
              {"envpipe_pct:.4f", [](Case c) { return c.plans.at_fastest().envpipe_pct; }},
              {"published_points", [=](Case c) { return part(c.published, &FrontierComparison::published_points); }},
              {"common_points", [=](Case c) { return part(c.published, &FrontierComparison::common_points); }},
              {"published_mean_deviation_pct:.3g",
               [=](Case c) { return part(c.published, &FrontierComparison::mean_deviation_pct); }},
              {"published_largest_deviation_pct:.3g",
               [=](Case c) { return part(c.published, &FrontierComparison::largest_deviation_pct); }}});
}

std::string figure7_csv(const std::vector<ReproducedCase>& cases) {
  std::string text = "model,gpu,microbatches,gpus,slowdown,method,intrinsic_pct,extrinsic_pct,total_pct\n";
  for (const ReproducedCase& c : cases) {
    const reproduction::EmulatedCase::OfCluster savings = c.plans.of_cluster(kFigure7Slowdown, pipelines(c));
    const auto add = [&](std::string_view method, const std::optional<reproduction::EmulatedCase::Shares>& shares) {
      if (!shares) return;
      text += fmt::format("{},{},{},{},{:.2f},{},{:.4f},{:.4f},{:.4f}\n", c.model, c.gpu, c.microbatches, gpus(c),
                          kFigure7Slowdown, method, shares->intrinsic_pct, shares->total_pct - shares->intrinsic_pct,
                          shares->total_pct);
    };
    for (const Method& method : methods()) add(method.name, method.of_cluster(savings));
    add("envpipe_as_drawn", savings.envpipe_as_drawn);
  }
  return text;
}

/// A row per case and T'/T, a column per method: of the savings at that T'/T those of the method, if it has a plan.
template <class At, class Of>
std::string by_slowdown(const std::vector<ReproducedCase>& cases, const At& savings_at, const Of& saving_pct) {
  std::string text = "model,gpu,microbatches,pipelines,gpus,slowdown";
  for (const Method& method : methods()) text += fmt::format(",{}_pct", method.name);
  text += "\n";
  for (const ReproducedCase& c : cases) {
    for (int pct = kFigure8First_pct; pct <= kFigure8Last_pct; ++pct) {
      text += fmt::format("{},{},{},{},{},{:.2f}", c.model, c.gpu, c.microbatches, pipelines(c), gpus(c), pct / 100.0);
      const auto savings = savings_at(c, pct / 100.0);
      for (const Method& method : methods()) text += "," + optional_pct(saving_pct(method, savings));
      text += "\n";
    }
  }
  return text;
}

std::string frontiers_csv(const std::vector<ReproducedCase>& cases) {
  std::string text = "model,gpu,microbatches,method,time_s,energy_j\n";
  for (const ReproducedCase& c : cases) {
    text += fmt::format("{},{},{},all_maximum_clock,{:.9g},{:.9g}\n", c.model, c.gpu, c.microbatches,
                        c.plans.all_max().time.value(), c.plans.all_max().energy.value());
    for (const Method& method : methods()) {
      for (const TimeEnergy& p : thinned(method.points(c.plans))) {
        text += fmt::format("{},{},{},{},{:.9g},{:.9g}\n", c.model, c.gpu, c.microbatches, method.name, p.time.value(),
                            p.energy.value());
      }
    }
  }
  return text;
}

}  // namespace

Table table6_of(const std::vector<ReproducedCase>& cases, const std::string& title, std::string_view on) {
  using Case = const ReproducedCase&;
  using CaseSavings = reproduction::EmulatedCase::CaseSavings;
  const auto& methods = baselines::baseline_methods();
  const auto envpipe = std::ranges::find(methods, "envpipe", &baselines::BaselineMethod::name) - methods.begin();
  const auto saving = [](auto of) { return [=](Case c) { return std::invoke(of, c.plans.at_fastest()); }; };
  return table_of<ReproducedCase>(
      cases, {{"-name", [=](Case c) { return fmt::format("{}{}{}", c.model, on, c.gpu); }, title},
              {"model", &ReproducedCase::model},
              {"gpu", &ReproducedCase::gpu},
              {"microbatches", &ReproducedCase::microbatches, "microbatches"},
              {"paper_planned_pct", saving(&CaseSavings::paper_planned_pct), "paper planned", "{:.2f}"},
              {"paper_realized_pct", saving(&CaseSavings::paper_realized_pct), "paper realized", "{:.2f}"},
              {"ours_realized_pct", saving(&CaseSavings::ours_realized_pct), "ours", "{:.2f}"},
              {"ours_t_min_pct", saving(&CaseSavings::ours_fastest_pct), "ours at T_min", "{:.2f}"},
              {"bound_pct", saving(&CaseSavings::bound_pct), "bound", "{:.2f}"},
              {"envpipe_pct", saving(&CaseSavings::envpipe_pct), "EnvPipe", "{:.2f}"},
              {"-recomputed", saving([=](const CaseSavings& s) { return s.baselines_pct[envpipe]; }),
               "EnvPipe recomputed", "{:.2f}"}});
}

Status check_reproduction(const std::filesystem::path& directory) {
  return check_output(directory, files_of_a_reproduction());
}

Status write_reproduction(const std::filesystem::path& directory, const std::vector<ReproducedCase>& cases,
                          const std::vector<report::ReportFact>& facts) {
  ReproductionPictures pictures{figure7_picture(cases), {}, {}};
  std::vector<ResultFile> files{
      {"table5.csv", table5_csv(cases)},
      {"table6.csv", table6_of(cases).csv("model,gpu,microbatches,paper_planned_pct:.4f,paper_realized_pct:.4f,"
                                          "ours_realized_pct:.4f,bound_pct:.4f,ours_t_min_pct:.4f")},
      {"cases.csv", table_of_cases(cases).csv({}, 9)},
      {"figure7.csv", figure7_csv(cases)},
      {"figure7.svg", pictures.figure7},
      {"figure8.csv",
       by_slowdown(
           cases, [](const ReproducedCase& c, double slowdown) { return c.plans.of_cluster(slowdown, pipelines(c)); },
           [](const Method& method, const auto& savings) {
             const auto shares = method.of_cluster(savings);
             return shares ? std::optional(shares->beyond_fastest_pct) : std::nullopt;
           })},
      // Of one pipeline that waits for the straggler, against all computations at maximum clock.
      {"non_straggler.csv",
       by_slowdown(
           cases, [](const ReproducedCase& c, double slowdown) { return c.plans.at_slowdown(slowdown); },
           [](const Method& method, const auto& savings) { return method.saving_pct(savings); })},
      {"frontiers.csv", frontiers_csv(cases)}};
  for (const auto& group : by_model_and_gpu(cases)) {
    const std::string name = fmt::format("{}+{}.svg", group[0]->model, group[0]->gpu);
    files.emplace_back("figure8_" + name, pictures.figure8.emplace_back(figure8_picture(group)));
    files.emplace_back("frontiers_" + name, pictures.frontiers.emplace_back(frontier_picture(group)));
  }
  files.emplace_back("index.html", [&](const report::Sink& sink) {
    report::write_static_page(reproduction_page(cases, pictures, facts), sink);
  });
  return write_output(directory, files_of_a_reproduction(), files);
}

}  // namespace perseus::cli
