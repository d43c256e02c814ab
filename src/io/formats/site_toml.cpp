#include "io/formats/site_toml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "io/formats/file.h"
#include "io/formats/toml_reader.h"
#include "planning/model/make_schedule.h"
#include "planning/model/schedule.h"

namespace perseus::formats {
namespace {

constexpr std::size_t kMaxSiteBytes = std::size_t{4} << 20U;
constexpr std::size_t kMaxSiteTables = 20'000;
constexpr long kMaxJobs = 100'000;
constexpr NumberRange kSiteTime{0, 1e9};
constexpr NumberRange kDeadlines{1e-3, 1e9};
constexpr NumberRange kMeteredWatts{0, 1e12};
constexpr NumberRange kEfficiencies{0.01, 1};
constexpr NumberRange kPipelineCounts{1, 1e6};

constexpr auto kSiteKeys =
    std::to_array<std::string_view>({"name", "end_s", "pue", "supply_efficiency", "node_overhead_w", "gpus_per_node",
                                     "ramp_step_s", "domain", "limit", "job", "event", "emulation"});
constexpr auto kDomainKeys = std::to_array<std::string_view>(
    {"name", "parent", "limit_w", "constant_w", "window_s", "ramp_down_w_per_s", "ramp_up_w_per_s"});
constexpr auto kLimitKeys = std::to_array<std::string_view>({"domain", "from_s", "limit_w"});
constexpr auto kEventKeys = std::to_array<std::string_view>({"domain", "at_s", "until_s", "limit_w", "within_s"});
constexpr auto kEmulationKeys =
    std::to_array<std::string_view>({"seed", "delay_median_s", "delay_most_s", "delay_spread", "bias", "draw_more"});
constexpr auto kJobKeys = std::to_array<std::string_view>(
    {"name", "domain", "profile", "plans", "schedule", "microbatches", "chunks", "blocking_power_w", "pipelines",
     "tensor_parallel", "count", "priority", "weight", "least_rate", "deadline_s", "iterations"});

class SiteReader : private TomlFileReader {
 public:
  SiteReader(const toml::table& root, const std::string& file, const std::string& folder)
      : TomlFileReader(root, file, kSiteKeys, kMaxSiteTables), folder_(folder) {}

  Result<model::SiteDescription> read() {
    read_root();
    read_tables("domain", kDomainKeys, [this](TomlFields& f) { read_domain(f); });
    if (site_.domains.empty()) fail("domain", "at least one table [[domain]], the first for the whole site");
    read_tables("limit", kLimitKeys, [this](TomlFields& f) { read_limit(f); });
    read_tables("job", kJobKeys, [this](TomlFields& f) { read_job(f); });
    if (site_.jobs.empty()) fail("job", "at least one table [[job]]");
    read_tables("event", kEventKeys, [this](TomlFields& f) { read_event(f); });
    read_table("emulation", kEmulationKeys, [this](TomlFields& f) { read_emulation(f); });
    if (end()) return *error_;
    return site_;
  }

 private:
  void read_root() {
    site_.name = root_.has("name") ? root_.string("name") : std::filesystem::path(file_).stem().string();
    site_.end = Seconds(root_.number_or(0, "end_s", kDeadlines));
    site_.pue = root_.number_or(1, "pue", {1, 10});
    site_.supply_efficiency = root_.number_or(1, "supply_efficiency", kEfficiencies);
    site_.node_overhead = Watts(root_.number_or(0, "node_overhead_w", kMeteredWatts));
    site_.gpus_per_node = static_cast<int>(root_.integer_or(8, "gpus_per_node", {1, 1024}));
    site_.ramp_step = Seconds(root_.number_or(60, "ramp_step_s", {0.1, 1e6}));
    keep(root_.error());
  }

  std::string before_end() const {
    return site_.end == Seconds(0) ? "less than end_s, which is missing"
                                   : fmt::format("less than end_s, {:g}", site_.end.value());
  }

  /// The domain of that name, or -1 after an error.
  int domain_named(TomlFields& f, std::string_view key) {
    const std::string name = f.string(key);
    const auto found = std::ranges::find(site_.domains, name, &model::DescribedDomain::name);
    if (found != site_.domains.end()) return static_cast<int>(found - site_.domains.begin());
    std::vector<std::string_view> names;
    for (const model::DescribedDomain& domain : site_.domains) {
      if (names.size() == 20) {
        names.emplace_back("...");
        break;
      }
      names.push_back(domain.name);
    }
    f.fail(key, fmt::format("the name of a [[domain]] above: {}", fmt::join(names, ", ")));
    return -1;
  }

  void read_domain(TomlFields& f) {
    model::DescribedDomain domain;
    domain.name = f.string("name");
    if (site_.has(domain.name)) { f.fail("name", "a name that no other [[domain]] has"); }
    if (site_.domains.empty()) {
      f.exclude("parent", "the domain is the first, the site");
    } else if (f.has("parent")) {
      domain.parent = domain_named(f, "parent");
    } else {
      domain.parent = 0;
    }
    domain.limits.push_back(
        {Seconds(0), f.has("limit_w") ? Watts(f.number("limit_w", kMeteredWatts)) : model::kNoLimit});
    domain.constant = Watts(f.number_or(0, "constant_w", kMeteredWatts));
    if (f.has("window_s")) domain.window = Seconds(f.number("window_s", {0, 86400}));
    if (f.has("ramp_down_w_per_s")) domain.ramp.down_w_per_s = f.number("ramp_down_w_per_s", {1e-3, 1e12});
    if (f.has("ramp_up_w_per_s")) domain.ramp.up_w_per_s = f.number("ramp_up_w_per_s", {1e-3, 1e12});
    site_.domains.push_back(std::move(domain));
  }

  void read_limit(TomlFields& f) {
    const int domain = domain_named(f, "domain");
    const model::LimitStep step{Seconds(f.number("from_s", kSiteTime)),
                                f.has("limit_w") ? Watts(f.number("limit_w", kMeteredWatts)) : model::kNoLimit};
    if (domain < 0) return;
    std::vector<model::LimitStep>& limits = site_.domains[domain].limits;
    if (step.from <= limits.back().from) {
      f.fail("from_s", fmt::format("more than {:g}, the beginning of the limit before", limits.back().from.value()));
    }
    if (site_.end <= step.from) f.fail("from_s", before_end());
    limits.push_back(step);
  }

  void read_event(TomlFields& f) {
    model::DescribedEvent event;
    event.domain = domain_named(f, "domain");
    event.at = Seconds(f.number("at_s", kSiteTime));
    event.until = Seconds(f.number("until_s", kSiteTime));
    event.limit = Watts(f.number("limit_w", kMeteredWatts));
    event.within = Seconds(f.number_or(event.within.value(), "within_s", {0.1, 86400}));
    if (site_.end <= event.at) f.fail("at_s", before_end());
    if (event.until <= event.at + event.within) {
      f.fail("until_s", fmt::format("more than at_s and within_s, {:g}", (event.at + event.within).value()));
    }
    site_.events.push_back(event);
  }

  void read_emulation(TomlFields& f) {
    model::DescribedEmulation& e = site_.emulation;
    e.seed = static_cast<std::uint64_t>(f.integer_or(1, "seed", {0, 9007199254740992}));
    e.delay_median = Seconds(f.number_or(e.delay_median.value(), "delay_median_s", {0, 3600}));
    e.delay_most = Seconds(f.number_or(std::max(e.delay_most, e.delay_median).value(), "delay_most_s", {0, 3600}));
    e.delay_spread = f.number_or(e.delay_spread, "delay_spread", {0, 5});
    e.bias = f.number_or(0, "bias", {0, 0.5});
    e.draw_more = f.number_or(0, "draw_more", {-0.5, 0.5});
  }

  void read_job(TomlFields& f) {
    model::DescribedJob job;
    job.where = f.where();
    job.name = f.string("name");
    if (std::ranges::find(site_.jobs, job.name, &model::DescribedJob::name) != site_.jobs.end()) {
      f.fail("name", "a name that no other [[job]] has");
    }
    job.domain = f.has("domain") ? domain_named(f, "domain") : 0;
    read_plans(f, job);
    job.pipelines = static_cast<int>(f.integer_or(1, "pipelines", kPipelineCounts));
    job.tensor_parallel = static_cast<int>(f.integer_or(1, "tensor_parallel", {1, 1024}));
    job.count = static_cast<int>(f.integer_or(1, "count", {1, kMaxJobs}));
    num_jobs_ += job.count;
    if (num_jobs_ > kMaxJobs) f.fail("count", fmt::format("at most {} jobs in all", kMaxJobs));
    job.priority = f.number_or(1, "priority", {1e-3, 1e3});
    if (f.has("weight")) job.weight = f.number("weight", {1e-6, 1e9});
    job.least_rate = f.number("least_rate", {0, 1});
    if (f.has("deadline_s")) {
      job.deadline = Seconds(f.number("deadline_s", kDeadlines));
      job.iterations = static_cast<double>(f.integer("iterations", {1, 1e12}));
      if (site_.end == Seconds(0)) f.fail("deadline_s", "nothing, where end_s is missing");
    } else {
      f.exclude("iterations", "deadline_s is missing");
    }
    site_.jobs.push_back(std::move(job));
  }

  void read_plans(TomlFields& f, model::DescribedJob& job) {
    const std::filesystem::path folder(folder_);
    if (f.has("plans")) {
      job.plans = (folder / f.string("plans")).string();
      for (const std::string_view key : {"profile", "schedule", "microbatches", "chunks", "blocking_power_w"}) {
        f.exclude(key, "plans is given");
      }
      return;
    }
    job.profile = (folder / f.string("profile")).string();
    if (f.has("schedule")) job.schedule = f.string("schedule");
    const auto schedule = model::schedule_named(job.schedule);
    if (!schedule) {
      f.fail("schedule", fmt::format("{}", fmt::join(model::schedule_names(), ", ")));
    } else {
      job.schedule = *schedule;
    }
    job.microbatches = static_cast<int>(f.integer("microbatches", {1, 1048576}));
    job.chunks = static_cast<int>(f.integer_or(model::usual_chunks(job.schedule), "chunks", {1, 1024}));
    if (f.has("blocking_power_w")) job.blocking_power = Watts(f.number("blocking_power_w", {0, 1e6}));
  }

  const std::string& folder_;
  model::SiteDescription site_;
  long num_jobs_ = 0;
};

}  // namespace

Result<model::SiteDescription> parse_site(std::string_view text, const std::string& name, const std::string& folder) {
  const Result<toml::table> root = parse_toml(text, name);
  if (!root) return root.error();
  return SiteReader(*root, name, folder).read();
}

Result<model::SiteDescription> read_site(const std::string& path) {
  const Result<std::string> text = read_file(path, kMaxSiteBytes);
  if (!text) return text.error();
  return parse_site(*text, path, std::filesystem::path(path).parent_path().string());
}

}  // namespace perseus::formats
