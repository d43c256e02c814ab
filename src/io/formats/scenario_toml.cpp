#include "io/formats/scenario_toml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "io/formats/file.h"
#include "io/formats/toml_reader.h"
#include "planning/model/make_schedule.h"
#include "planning/model/schedule.h"

namespace perseus::formats {
namespace {

constexpr std::size_t kMaxScenarioBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxTables = 10'000;
constexpr long kMaxPipelines = 65'536;
constexpr NumberRange kSeconds{0, 1e9};
constexpr NumberRange kPositiveSeconds{1e-6, 1e9};
constexpr NumberRange kWatts{0, 1e6};
constexpr NumberRange kSlowdowns{1, 100};
constexpr NumberRange kCounts{1, 1e6};

// The keys of each table.
constexpr auto kRootKeys =
    std::to_array<std::string_view>({"name", "seed", "duration_s", "iterations", "methods", "tau_s", "slowdown_pct",
                                     "cluster", "pipelines", "timing", "server", "straggler", "random", "sweep"});
constexpr auto kClusterKeys = std::to_array<std::string_view>({"tensor_parallel", "blocking_power_w", "idle_power_w"});
constexpr auto kPipelineKeys =
    std::to_array<std::string_view>({"name", "profile", "schedule", "chunks", "microbatches", "count"});
constexpr auto kTimingKeys = std::to_array<std::string_view>(
    {"transfer_latency_s", "blocking_transfers", "serial_transfers", "load_s", "synchronization_s", "optimizer_s",
     "synchronization_power_w", "optimizer_power_w"});
constexpr auto kServerKeys = std::to_array<std::string_view>({"notice_delay_s", "deploy_s", "switch_latency_s"});
constexpr auto kStragglerKeys = std::to_array<std::string_view>(
    {"cause", "slowdown", "gpus", "stage", "becomes", "restart_s", "pipeline", "at_s", "for_s"});
constexpr auto kRandomKeys = std::to_array<std::string_view>(
    {"cause", "slowdown", "gpus", "one_stage", "becomes", "restart_s", "mean_between_s", "mean_for_s"});
constexpr auto kSweepKeys =
    std::to_array<std::string_view>({"scaling", "gpus", "slowdowns", "slowdown_from", "slowdown_to", "slowdown_step"});

class ScenarioReader : private TomlFileReader {
 public:
  ScenarioReader(const toml::table& root, const std::string& file, const std::string& folder, bool traced)
      : TomlFileReader(root, file, kRootKeys, kMaxTables), folder_(folder), traced_(traced) {}

  Result<model::Scenario> read() {
    read_root();
    read_cluster();
    read_pipelines();
    read_timing();
    read_server();
    read_stragglers();
    read_random();
    read_sweep();
    if (end()) return *error_;
    return scenario_;
  }

 private:
  void read_root() {
    scenario_.name = root_.has("name") ? root_.string("name") : std::filesystem::path(file_).stem().string();
    scenario_.seed = static_cast<std::uint64_t>(root_.integer_or(1, "seed", {0, 9007199254740992.0}));
    if (root_.has("duration_s")) scenario_.duration = Seconds(root_.number("duration_s", kPositiveSeconds));
    if (root_.has("iterations")) scenario_.iterations = root_.integer("iterations", {1, 1e12});
    scenario_.methods = root_.has("methods") ? root_.strings("methods") : std::vector<std::string>{"all-max", "exact"};
    scenario_.unit_time = Seconds(root_.number_or(0.001, "tau_s", {1e-9, 1e6}));
    scenario_.slowdown = root_.number_or(0, "slowdown_pct", {0, 1000}) / 100;
    if (scenario_.duration && scenario_.iterations) root_.fail("iterations", "duration_s or iterations, not both");
    keep(root_.error());
  }

  void read_cluster() {
    if (root_.table("cluster") == nullptr) return fail("cluster", "a table [cluster] with blocking_power_w");
    read_table("cluster", kClusterKeys, [&](TomlFields& f) {
      scenario_.tensor_parallel = static_cast<int>(f.integer_or(1, "tensor_parallel", {1, 1024}));
      scenario_.blocking_power = Watts(f.number("blocking_power_w", kWatts));
      has_idle_power_ = f.has("idle_power_w");
      scenario_.idle_power = Watts(f.number_or(0, "idle_power_w", kWatts));
    });
  }

  void read_pipelines() {
    long all = 0;
    read_tables("pipelines", kPipelineKeys, [&](TomlFields& f) {
      model::ScenarioKind kind;
      kind.where = f.where();
      kind.name = f.string("name");
      if (std::ranges::find(scenario_.kinds, kind.name, &model::ScenarioKind::name) != scenario_.kinds.end()) {
        f.fail("name", "a name that no other [[pipelines]] has");
      }
      kind.profile = (std::filesystem::path(folder_) / f.string("profile")).string();
      if (f.has("schedule")) kind.schedule = f.string("schedule");
      if (!model::schedule_named(kind.schedule)) {
        f.fail("schedule", fmt::format("{}", fmt::join(model::schedule_names(), ", ")));
      }
      kind.chunks = static_cast<int>(f.integer_or(model::usual_chunks(kind.schedule), "chunks", {1, 1024}));
      const auto integer = [&](std::string_view key, formats::NumberRange allowed) {
        return static_cast<int>(traced_ ? f.integer_or(1, key, allowed) : f.integer(key, allowed));
      };
      kind.microbatches = integer("microbatches", {1, 1048576});
      kind.pipelines = integer("count", {0, static_cast<double>(kMaxPipelines)});
      all += kind.pipelines;
      scenario_.kinds.push_back(std::move(kind));
    });
    if (!error_ && scenario_.kinds.empty()) root_.fail("pipelines", "at least one table [[pipelines]]");
    if (!error_ && (all == 0 || all > kMaxPipelines)) {
      root_.fail("pipelines", fmt::format("counts that add up to 1..{}, not {}", kMaxPipelines, all));
    }
    keep(root_.error());
  }

  void read_timing() {
    read_table("timing", kTimingKeys, [&](TomlFields& f) {
      model::ClusterTiming& t = scenario_.timing;
      if (f.is_list("transfer_latency_s")) {
        std::vector<model::BoundaryLatency> boundaries;
        for (const auto& [forward_s, backward_s] : f.pairs("transfer_latency_s", kSeconds))
          boundaries.push_back({Seconds(forward_s), Seconds(backward_s)});
        t.transfer_latency = model::TransferLatency(std::move(boundaries));
      } else {
        t.transfer_latency = Seconds(f.number_or(0, "transfer_latency_s", kSeconds));
      }
      t.blocking_transfers = f.boolean_or(false, "blocking_transfers");
      t.serial_transfers = f.boolean_or(false, "serial_transfers");
      t.load = Seconds(f.number_or(0, "load_s", kSeconds));
      t.synchronization = Seconds(f.number_or(0, "synchronization_s", kSeconds));
      t.optimizer = Seconds(f.number_or(0, "optimizer_s", kSeconds));
      const auto power = [&](std::string_view key) -> std::optional<Watts> {
        const double w = f.number_or(0, key, kWatts);
        return f.has(key) ? std::optional(Watts(w)) : std::nullopt;
      };
      t.synchronization_power = power("synchronization_power_w");
      t.optimizer_power = power("optimizer_power_w");
    });
  }

  void read_server() {
    read_table("server", kServerKeys, [&](TomlFields& f) {
      model::PlanDelivery& d = scenario_.delivery;
      d.notice_delay = Seconds(f.number_or(0, "notice_delay_s", {-1e9, 1e9}));
      d.deploy = Seconds(f.number_or(0, "deploy_s", kSeconds));
      d.switch_latency = Seconds(f.number_or(0, "switch_latency_s", {0, 1e3}));
    });
  }

  /// The fields that [[straggler]] and [[random]] share, without slowdown and stage.
  model::Hardship read_hardship(TomlFields& f) {
    model::Hardship hardship;
    hardship.where = f.where();
    const auto cause = model::straggler_cause_named(f.string("cause"));
    if (!cause) f.fail("cause", "thermal, power, storage, failure");
    hardship.cause = cause.value_or(model::StragglerCause::thermal);
    if (!is_throttling(hardship)) {
      f.exclude("gpus", cause_of(hardship));
    } else if (f.has("gpus")) {
      hardship.gpus = static_cast<int>(f.integer("gpus", kCounts));
    }
    if (hardship.cause == model::StragglerCause::failure) {
      const std::string name = f.string("becomes");
      const auto kind = std::ranges::find(scenario_.kinds, name, &model::ScenarioKind::name);
      if (kind == scenario_.kinds.end()) {
        std::vector<std::string_view> names;
        for (const model::ScenarioKind& known : scenario_.kinds) names.push_back(known.name);
        f.fail("becomes", fmt::format("the name of a [[pipelines]]: {}", fmt::join(names, ", ")));
      }
      hardship.becomes = static_cast<int>(kind - scenario_.kinds.begin());
      hardship.restart = Seconds(f.number("restart_s", kSeconds));
      if (!has_idle_power_ && !f.error()) {
        keep(Error{ErrorCode::invalid_input,
                   fmt::format("{}: pipelines fail, but [cluster] idle_power_w is missing; allowed: a number from 0 to "
                               "1000000, what a GPU without work draws",
                               hardship.where)});
      }
    } else {
      for (const std::string_view key : {"becomes", "restart_s"}) f.exclude(key, cause_of(hardship));
    }
    return hardship;
  }
  static bool is_throttling(const model::Hardship& h) {
    return h.cause == model::StragglerCause::thermal || h.cause == model::StragglerCause::power;
  }

  static std::string cause_of(const model::Hardship& h) { return fmt::format("cause is {}", name_of(h.cause)); }

  void read_stragglers() {
    read_tables("straggler", kStragglerKeys, [&](TomlFields& f) {
      model::Straggler straggler;
      straggler.hardship = read_hardship(f);
      model::Hardship& hardship = straggler.hardship;
      if (hardship.cause == model::StragglerCause::failure) {
        f.exclude("slowdown", cause_of(hardship));
      } else {
        hardship.slowdown = f.number("slowdown", kSlowdowns);
      }
      if (!is_throttling(hardship)) {
        f.exclude("stage", cause_of(hardship));
      } else if (f.has("stage")) {
        hardship.stage = static_cast<int>(f.integer("stage", {0, 65535}));
      }
      straggler.pipeline = static_cast<int>(f.integer("pipeline", {0, scenario_.num_pipelines() - 1.0}));
      straggler.at = Seconds(f.number("at_s", kSeconds));
      straggler.duration = Seconds(f.number("for_s", kPositiveSeconds));
      scenario_.stragglers.push_back(std::move(straggler));
    });
  }

  void read_random() {
    read_tables("random", kRandomKeys, [&](TomlFields& f) {
      model::RandomStragglers random;
      random.hardship = read_hardship(f);
      random.mean_between = Seconds(f.number("mean_between_s", kPositiveSeconds));
      random.mean_duration = Seconds(f.number("mean_for_s", kPositiveSeconds));
      if (random.hardship.cause == model::StragglerCause::failure) {
        f.exclude("slowdown", cause_of(random.hardship));
      } else {
        const std::vector<double> range = f.numbers("slowdown", kSlowdowns);
        if (range.size() != 2 || range[0] > range[1]) {
          f.fail("slowdown", "two numbers from 1 to 100, [least, most]");
        } else {
          random.least_slowdown = range[0];
          random.most_slowdown = range[1];
        }
      }
      if (is_throttling(random.hardship)) {
        random.one_stage = f.boolean_or(false, "one_stage");
      } else {
        f.exclude("one_stage", cause_of(random.hardship));
      }
      if (!scenario_.duration) {
        keep(Error{ErrorCode::invalid_input,
                   fmt::format("{}: stragglers are drawn until duration_s, which is missing; allowed: {:g} to {:g}",
                               f.where(), kPositiveSeconds.least, kPositiveSeconds.most)});
      }
      scenario_.random.push_back(std::move(random));
    });
  }

  void read_sweep() {
    if (!root_.has("sweep") && !scenario_.duration && !scenario_.iterations) {
      fail("duration_s", "duration_s or iterations, unless there is a [sweep]");
    }
    read_table("sweep", kSweepKeys, [&](TomlFields& f) {
      model::ScalingSweep sweep;
      for (const std::string& name : f.strings("scaling")) {
        if (name != "strong" && name != "weak") f.fail("scaling", "a list of \"strong\" and \"weak\"");
        sweep.scaling.push_back(name == "weak" ? model::Scaling::weak : model::Scaling::strong);
      }
      for (const double gpus : f.numbers("gpus", {1, 1e8})) {
        if (gpus != std::floor(gpus)) f.fail("gpus", "a list of integers");
        sweep.gpus.push_back(static_cast<int>(gpus));
      }
      if (f.has("slowdowns")) {
        sweep.slowdowns = f.numbers("slowdowns", kSlowdowns);
        for (const std::string_view key : {"slowdown_from", "slowdown_to", "slowdown_step"}) {
          f.exclude(key, "slowdowns is given");
        }
      } else {
        const double from = f.number("slowdown_from", kSlowdowns), to = f.number("slowdown_to", kSlowdowns);
        const double step = f.number("slowdown_step", {1e-4, 100});
        const double steps = std::floor((to - from) / step + 1e-6);
        if (steps < 0) f.fail("slowdown_to", fmt::format("at least slowdown_from, {:g}", from));
        for (double k = 0; k <= steps; ++k) sweep.slowdowns.push_back(from + k * step);
      }
      if (!error_ && scenario_.kinds[0].pipelines == 0)
        f.fail("gpus", "nothing, where the first pipelines' count is 0");
      scenario_.sweep = std::move(sweep);
    });
  }

  const std::string& folder_;
  model::Scenario scenario_;
  bool traced_;
  bool has_idle_power_ = false;
};

}  // namespace

Result<model::Scenario> parse_scenario(std::string_view text, const std::string& name, const std::string& folder,
                                       bool traced) {
  const Result<toml::table> root = parse_toml(text, name);
  if (!root) return root.error();
  return ScenarioReader(*root, name, folder, traced).read();
}

Result<model::Scenario> read_scenario(const std::string& path, bool traced) {
  const Result<std::string> text = read_file(path, kMaxScenarioBytes);
  if (!text) return text.error();
  return parse_scenario(*text, path, std::filesystem::path(path).parent_path().string(), traced);
}

}  // namespace perseus::formats
