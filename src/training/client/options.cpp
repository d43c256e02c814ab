#include "training/client/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <string_view>

#include "base/job_text.h"
#include "base/split.h"

namespace perseus::client {
namespace {

std::string text(const char* value) { return value == nullptr ? std::string() : std::string(value); }

void log_to_stderr(LogLevel level, const std::string& message) {
  constexpr const char* names[] = {"", "warning: ", "error: "};
  std::fprintf(stderr, "perseus: %s%s\n", names[static_cast<int>(level)], message.c_str());
}

/// Logs to standard error, from the level on that PERSEUS_LOG names.
Complaints::Log stderr_log(std::vector<std::string>& remarks) {
  const char* const variable = std::getenv("PERSEUS_LOG");
  const std::string_view wanted = variable == nullptr ? "" : variable;
  if (wanted == "off") return [](LogLevel, const std::string&) {};
  if (wanted == "warning") {
    return [](LogLevel level, const std::string& message) {
      if (level != LogLevel::info) log_to_stderr(level, message);
    };
  }
  if (!wanted.empty() && wanted != "info") {
    remarks.push_back(fmt::format("PERSEUS_LOG is '{}', ignored; allowed: off, warning, info", wanted));
  }
  return log_to_stderr;
}

std::map<std::string, std::string> read_pairs(const char* name, std::string_view pairs, char separator,
                                              std::vector<std::string>& remarks) {
  std::map<std::string, std::string> read;
  for (const std::string_view pair : split(pairs, separator)) {
    if (pair.empty()) continue;
    if (const std::size_t equals = pair.find('='); equals != std::string_view::npos && equals > 0) {
      read[std::string(pair.substr(0, equals))] = pair.substr(equals + 1);
    } else {
      remarks.push_back(fmt::format("{}: '{}' is left out; expected key=value", name, pair));
    }
  }
  return read;
}

std::map<std::string, std::string> checked_pairs(const char* name, std::string_view pairs, char separator,
                                                 Status (*check)(const std::string&, std::string_view),
                                                 std::size_t most, std::vector<std::string>& remarks) {
  auto read = read_pairs(name, pairs, separator, remarks);
  std::erase_if(read, [&](const auto& pair) {
    const Status fits = check(pair.first, pair.second);
    if (!fits) remarks.push_back(fits.error().message + "; this one is left out");
    return !fits;
  });
  if (read.size() > most) {
    remarks.push_back(fmt::format("{}: {} of them; allowed: {}; those after '{}' are left out", name, read.size(), most,
                                  std::next(read.begin(), static_cast<std::ptrdiff_t>(most) - 1)->first));
    while (read.size() > most) read.erase(std::prev(read.end()));
  }
  return read;
}

/// Nothing for a text that the server would not take, and the job with it.
std::string checked(std::string text, const Status& fits, std::vector<std::string>& remarks) {
  if (fits) return text;
  remarks.push_back(fits.error().message + "; ignored");
  return "";
}

class Checked {
 public:
  explicit Checked(std::vector<std::string>& remarks) : remarks_(remarks) {}
  int integer(const char* name, int value, int least, int most) {
    if (value >= least && value <= most) return value;
    const int taken = std::clamp(value, least, most);
    remarks_.push_back(fmt::format("{} is {}; {} is used; allowed: {} to {}", name, value, taken, least, most));
    return taken;
  }
  double number(const char* name, double value, double most, double otherwise) {
    if (std::isfinite(value) && value >= 0 && value <= most) return value;
    remarks_.push_back(fmt::format("{} is {}; {} is used; allowed: 0 to {}", name, value, otherwise, most));
    return otherwise;
  }

 private:
  std::vector<std::string>& remarks_;
};

/// An option or, where it is not given, its variable of the environment; nothing: neither, or a wrong value.
std::optional<double> number_or_variable(const char* name, std::optional<double> given, const char* variable,
                                         double least, double most, std::vector<std::string>& remarks) {
  std::string said = fmt::format("{} is {}", name, given.value_or(0));
  if (!given) {
    const char* const value = std::getenv(variable);
    if (value == nullptr || *value == '\0') return std::nullopt;
    said = fmt::format("{} is '{}'", variable, value);
    char* end = nullptr;
    given = std::strtod(value, &end);
    if (*end != '\0') given = std::nan("");
  }
  if (*given >= least && *given <= most) return given;
  const std::string from = std::isinf(least) ? "a number up to" : fmt::format("{} to", least);
  remarks.push_back(fmt::format("{}, ignored; allowed: {} {}", said, from, most));
  return std::nullopt;
}

void read_tier(const perseus_options& all, ClientOptions& o, std::vector<std::string>& remarks) {
  const char* const variable = std::getenv("PERSEUS_DOMAIN");
  o.domain = text(all.domain != nullptr ? all.domain : variable);
  o.domain = checked(o.domain, check_text("domain", o.domain, kMaxJobText), remarks);
  const auto given = [](bool is_given, double value) { return is_given ? std::optional(value) : std::nullopt; };
  o.least_rate = number_or_variable("least_rate", given(!(all.least_rate < 0), all.least_rate), "PERSEUS_LEAST_RATE", 0,
                                    1, remarks);
  o.priority =
      number_or_variable("priority", given(all.priority != 0, all.priority), "PERSEUS_PRIORITY", 0.001, 1000, remarks);
}

/// A variable of the environment that is 0 or 1; `otherwise`: not set, or neither.
bool is_on(const char* name, bool otherwise, std::vector<std::string>& remarks) {
  const char* const variable = std::getenv(name);
  const std::string_view wanted = variable == nullptr ? "" : variable;
  if (wanted == "0" || wanted == "1") return wanted == "1";
  if (!wanted.empty()) remarks.push_back(fmt::format("{} is '{}', ignored; allowed: 0, 1", name, wanted));
  return otherwise;
}

}  // namespace

ClientOptions read_options(const perseus_options* given, std::vector<std::string>& remarks) {
  perseus_options all = default_options();
  if (given != nullptr && given->size >= sizeof(size_t)) {
    std::memcpy(&all, given, std::min(given->size, sizeof(all)));
  }
  ClientOptions o;
  o.server = text(all.server);
  o.token = text(all.token);
  o.ca_file = text(all.ca_file);
  o.job = text(all.job);
  o.job_name = checked(text(all.job_name), check_job_name("job_name", text(all.job_name)), remarks);
  o.facts = checked_pairs("facts", text(all.facts), '\n', check_fact, kMaxFacts, remarks);
  o.labels = checked_pairs("labels", text(all.labels), ',', check_label, kMaxLabels, remarks);
  o.profile = text(all.profile);
  o.schedule = text(all.schedule);
  o.action_table = text(all.action_table);
  Checked check(remarks);
  constexpr int most = 1000000;
  o.microbatches = check.integer("microbatches", all.microbatches, 0, most);
  o.chunks = check.integer("chunks", all.chunks, 1, 1000);
  o.dp_degree = check.integer("dp_degree", all.dp_degree, 1, most);
  o.pp_degree = check.integer("pp_degree", all.pp_degree, 1, most);
  o.tp_degree = check.integer("tp_degree", all.tp_degree, 1, most);
  o.rank = check.integer("rank", all.rank, 0, most);
  o.dp_rank = check.integer("dp_rank", all.dp_rank, 0, o.dp_degree - 1);
  o.pp_rank = check.integer("pp_rank", all.pp_rank, 0, o.pp_degree - 1);
  o.tp_rank = check.integer("tp_rank", all.tp_rank, 0, o.tp_degree - 1);
  o.device = text(all.device);
  o.accelerator = text(all.accelerator);
  o.helper = text(all.helper);
  o.blocking_power_w = check.number("blocking_power_w", all.blocking_power_w, 1e5, 0);
  o.transfer_latency_s = check.number("transfer_latency_s", all.transfer_latency_s, 1e3, 0);
  o.start_limit_s = check.number("start_limit_s", all.start_limit_s, 1e6, 5);
  o.report_interval_s = check.number("report_interval_s", all.report_interval_s, 1e6, 2);
  const auto tolerance = all.plan_tolerance != 0 ? std::optional(all.plan_tolerance) : std::nullopt;
  o.plan_tolerance = number_or_variable("plan_tolerance", tolerance, "PERSEUS_PLAN_TOLERANCE",
                                        -std::numeric_limits<double>::infinity(), 10, remarks)
                         .value_or(o.plan_tolerance);
  o.most_slowdown = number_or_variable("most_slowdown", std::nullopt, "PERSEUS_MOST_SLOWDOWN", 1, 1000, remarks)
                        .value_or(PlanGuard::kMostSlowdown);
  read_tier(all, o, remarks);
  o.switch_latency_s = all.switch_latency_s < 0 ? -1 : check.number("switch_latency_s", all.switch_latency_s, 10, 0);
  o.advice_only = (all.flags & PERSEUS_ADVICE_ONLY) != 0;
  o.no_energy = (all.flags & PERSEUS_NO_ENERGY) != 0;
  o.synchronous = (all.flags & PERSEUS_SYNCHRONOUS) != 0;
  o.paces = (all.flags & PERSEUS_PACES) != 0;
  if (const char* const way = std::getenv("PERSEUS_DEVICE_TIME"); way != nullptr && *way != '\0') {
    o.progress_way = progress_way_named(way);
    if (!o.progress_way && std::string_view(way) != "auto") {
      remarks.push_back(
          fmt::format("PERSEUS_DEVICE_TIME is '{}', ignored; allowed: auto, write-value, host-function, polling", way));
    }
  }
  o.reports_straggler = is_on("PERSEUS_STRAGGLER_REPORTS", true, remarks);
  if (all.log != nullptr) {
    o.log = [log = all.log, context = all.log_context](LogLevel level, const std::string& message) {
      log(context, static_cast<int>(level), message.c_str());
    };
  } else {
    o.log = stderr_log(remarks);
  }
  return o;
}

perseus_options default_options() {
  perseus_options options;
  std::memset(&options, 0, sizeof(options));
  options.size = sizeof(options);
  options.chunks = 1;
  options.dp_degree = options.pp_degree = options.tp_degree = 1;
  options.start_limit_s = 5;
  options.report_interval_s = 2;
  options.least_rate = -1;
  return options;
}

}  // namespace perseus::client
