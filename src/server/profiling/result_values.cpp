#include "server/profiling/result_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace perseus::profiling {
namespace {

// Of an iteration: how much the sum of its computations may exceed it, by rounding and noise.
constexpr double kTimeSumTolerance = 0.01, kEnergySumTolerance = 0.05;

// Of one result: it is summed up on an event loop.
constexpr std::size_t kMostIterations = 1000;

// How often each instruction occurs on a rank.
std::map<std::string, int, std::less<>> occurrences_on(const Layout& layout, int rank) {
  std::map<std::string, int, std::less<>> counts;
  for (const model::Action& action : layout.job.schedule.ranks[rank])
    ++counts[std::string(model::name_of(action.instruction))];
  return counts;
}

bool measured(const RankResult::Breakdown& breakdown, const std::string& instruction) {
  const auto found = breakdown.find(instruction);
  if (found == breakdown.end()) return false;
  return std::ranges::any_of(found->second, [](const std::vector<double>& values) { return !values.empty(); });
}

Error bad_shape(const RankResult& result, const std::string& what) {
  return Error{ErrorCode::invalid_input,
               fmt::format("profiling result of rank {}, window {}: {}", result.rank, result.window, what)};
}

/// Of an instruction that the rank runs `count` times.
Status check_lists(const RankResult& result, const std::string& name, int count) {
  const std::size_t iterations = result.iteration_time.size();
  for (const auto& [kind, breakdown] :
       {std::pair("time_breakdown", &result.time_s), std::pair("energy_breakdown", &result.energy_j),
        std::pair("begin_s", &result.begin_s), std::pair("end_s", &result.end_s)}) {
    if (!measured(*breakdown, name)) continue;
    const auto& lists = breakdown->find(name)->second;
    if (lists.size() != iterations) {
      return bad_shape(
          result, fmt::format("{} of {} has {} iterations; iter_time has {}", kind, name, lists.size(), iterations));
    }
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (lists[i].size() == static_cast<std::size_t>(count)) continue;
      return bad_shape(result, fmt::format("{} of {}, iteration {}: {} values; the rank runs it {} times", kind, name,
                                           i, lists[i].size(), count));
    }
  }
  return Ok{};
}

class ValueReader {
 public:
  ValueReader(const Layout& layout, const RankResult& result, const ProfilingWindow& window, bool use_throttled)
      : layout_(layout), result_(result), window_(window), use_throttled_(use_throttled) {}

  ReadValues read() && {
    for (int i = 0; i < static_cast<int>(result_.iteration_time.size()); ++i) read_iteration(i);
    return std::move(read_);
  }

 private:
  void reject(int iteration, std::string instruction, int occurrence, double value, const std::string& why) {
    read_.rejections.push_back({result_.rank, result_.replica, result_.window, iteration, std::move(instruction),
                                occurrence, value, fmt::format("{}: {}", where(result_, iteration), why)});
  }

  void read_iteration(int i) {
    ReadIteration& iteration = read_.iterations.emplace_back();
    const double time_s = result_.iteration_time[i].value();
    if (!use_throttled_ && !result_.throttled.empty() && result_.throttled[i]) {
      return reject(i, "", -1, time_s, "throttled, as its device says; nothing of it is used");
    }
    if (!(std::isfinite(time_s) && time_s > 0)) {
      return reject(i, "", -1, time_s, fmt::format("iter_time {} s; must be finite and > 0", time_s));
    }
    std::vector<SampledValue> own = read_computations(i, iteration);
    if (iteration.computing_s > time_s * (1 + kTimeSumTolerance)) {
      return reject(i, "", -1, time_s,
                    fmt::format("its computations take {:.6g} s together; at most iter_time, {:.6g} s, was expected",
                                iteration.computing_s, time_s));
    }
    iteration.usable = true;
    const double energy_j = result_.iteration_energy[i].value();
    if (!is_plausible(Joules(energy_j), Seconds(time_s))) {
      reject(i, "", -1, energy_j,
             fmt::format("iter_energy {} J; allowed: {}", energy_j, allowed_energy(Seconds(time_s))));
    } else if (iteration.computing_j > energy_j * (1 + kEnergySumTolerance)) {
      reject(i, "", -1, energy_j,
             fmt::format("its computations need {:.6g} J together; at most iter_energy, {:.6g} J, was expected",
                         iteration.computing_j, energy_j));
      for (SampledValue& value : own) value.energy = std::numeric_limits<double>::quiet_NaN();
      if (iteration.broken_down) return;  // this iteration's energies are unusable, and its times doubtful
    } else {
      iteration.energy_j = energy_j;
    }
    read_.values.insert(read_.values.end(), own.begin(), own.end());
  }

  std::vector<SampledValue> read_computations(int i, ReadIteration& iteration) {
    std::map<std::string, int, std::less<>> seen;
    std::vector<SampledValue> own;
    for (std::size_t a = 0; a < layout_.type_of[result_.rank].size(); ++a) {
      const int t = layout_.type_of[result_.rank][a];
      const ProfiledType& type = layout_.types[t];
      const std::string name(model::name_of(type.instruction));
      const int occurrence = seen[name]++;
      if (!measured(result_.time_s, name)) continue;
      const Megahertz clock = window_.clocks[result_.rank][a];
      const double seconds = result_.time_s.at(name)[i][occurrence];
      const bool with_energy = measured(result_.energy_j, name);
      const double joules = with_energy ? result_.energy_j.at(name)[i][occurrence] : 0;
      if (!with_energy && type.has_clock()) iteration.broken_down = false;
      if (std::isfinite(seconds)) iteration.computing_s += seconds;
      if (std::isfinite(joules)) iteration.computing_j += joules;
      if (seconds == 0) iteration.complete = false;
      if (!plausible(i, name, occurrence, clock, seconds, with_energy ? &joules : nullptr)) continue;
      own.push_back({t, type.index_of(clock), i, occurrence, model::name_of(type.instruction), std::log(seconds),
                     with_energy ? std::log(joules) : std::numeric_limits<double>::quiet_NaN(), true});
    }
    return own;
  }

  /// False: the value is left out.
  bool plausible(int i, const std::string& name, int occurrence, Megahertz clock, double seconds,
                 const double* joules) {
    if (seconds == 0) {
      reject(i, name, occurrence, seconds,
             fmt::format("{} {}: its time at {} MHz is not known, as its clock came too late", name, occurrence,
                         clock.value()));
      return false;
    }
    if (!(std::isfinite(seconds) && seconds > 0)) {
      reject(i, name, occurrence, seconds,
             fmt::format("{} {}: {} s; must be finite and > 0", name, occurrence, seconds));
      return false;
    }
    if (joules != nullptr && !is_plausible(Joules(*joules), Seconds(seconds))) {
      reject(i, name, occurrence, *joules,
             fmt::format("{} {}: {} J; allowed: {}", name, occurrence, *joules, allowed_energy(Seconds(seconds))));
      return false;
    }
    return true;
  }

  const Layout& layout_;
  const RankResult& result_;
  const ProfilingWindow& window_;
  bool use_throttled_;
  ReadValues read_;
};

}  // namespace

std::string where(const RankResult& result, int iteration) {
  const std::string replica = result.replica > 0 ? fmt::format(" (replica {})", result.replica) : "";
  return fmt::format("rank {}{}, window {}, iteration {}", result.rank, replica, result.window, iteration);
}

Status check_shape(const Layout& layout, const RankResult& result) {
  const auto bad = [&](const std::string& what) { return bad_shape(result, what); };
  // A client chooses the number of iterations: the published one does not receive the requested number.
  const std::size_t iterations = result.iteration_time.size();
  if (iterations < 1 || iterations > kMostIterations) {
    return bad(fmt::format("iter_time has {} iterations; must be 1 to {}", iterations, kMostIterations));
  }
  const auto expect = [&](const char* list, std::size_t size) -> Status {
    if (size == iterations) return Ok{};
    return bad(fmt::format("{} has {} iterations; iter_time has {}", list, size, iterations));
  };
  if (Status status = expect("iter_energy", result.iteration_energy.size()); !status) return status;
  if (!result.throttled.empty()) {
    if (Status status = expect("throttled", result.throttled.size()); !status) return status;
  }
  const auto counts = occurrences_on(layout, result.rank);
  for (const auto& [name, count] : counts) {
    const auto instruction = model::instruction_named(name);
    if (!measured(result.time_s, name)) {
      if (model::is_constant_time(*instruction)) continue;
      return bad(fmt::format("time_breakdown lacks {}", name));
    }
    if (Status status = check_lists(result, name, count); !status) return status;
  }
  for (const auto* breakdown : {&result.time_s, &result.energy_j, &result.begin_s, &result.end_s}) {
    for (const auto& [name, lists] : *breakdown) {
      const bool any = std::ranges::any_of(lists, [](const auto& values) { return !values.empty(); });
      if (any && !counts.contains(name)) return bad(fmt::format("the rank has no instruction '{}'", name));
    }
  }
  return Ok{};
}

ReadValues read_values(const Layout& layout, const RankResult& result, const ProfilingWindow& window,
                       bool use_throttled) {
  return ValueReader(layout, result, window, use_throttled).read();
}

namespace {

constexpr Watts kMostPower(10'000);

}  // namespace

bool is_plausible(Joules energy, Seconds time) {
  return std::isfinite(energy.value()) && energy > Joules(0) && energy <= kMostPower * time;
}

std::string allowed_energy(Seconds time) {
  return fmt::format("more than 0, at most {} J ({:g} kW)", (kMostPower * time).value(), kMostPower.value() / 1000);
}

}  // namespace perseus::profiling
