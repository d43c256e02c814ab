#include "server/profiles/profile_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/median.h"
#include "server/jobs/pipeline_input.h"

namespace perseus::profiles {
namespace {

/// Time and power of a stage rank's computations in one iteration at the highest clock.
struct OfRank {
  std::map<std::string, double> time_s;  ///< by instruction
  double energy_j = 0;
  int accelerators = 0;
};

struct Predicted {
  std::vector<OfRank> ranks;
  double blocking_w = 0;  ///< of one accelerator
};

Result<Predicted> predict(const TrialQuestion& question) {
  const auto input = jobs::parse_input(question.input, "profile");
  if (!input) return input.error();
  const auto dag = jobs::dag_of(*input);
  if (!dag) return dag.error();
  Predicted predicted{std::vector<OfRank>(dag->rank_order.size()), dag->blocking_power.value()};
  for (int rank = 0; rank < dag->num_ranks(); ++rank) {
    OfRank& own = predicted.ranks[rank];
    own.accelerators = dag->accelerators[rank];
    for (const int computation : dag->rank_order[rank]) {
      const model::ComputationType& type = dag->type_of(computation);
      if (type.options.front().clock == Megahertz(0)) continue;
      const bool staged = type.stage >= 0 && type.stage < static_cast<int>(question.highest_mhz.size());
      const Megahertz ran(staged ? question.highest_mhz[type.stage] : 0);
      const auto option = std::ranges::find(type.options, ran, &model::Measurement::clock);
      if (option == type.options.end()) {
        return Error{ErrorCode::not_found, fmt::format("it has no {} of stage {} at {} MHz, the highest clock",
                                                       type.instruction, type.stage, ran.value())};
      }
      own.time_s[type.instruction] += option->time.value();
      own.energy_j += option->energy.value();
    }
  }
  return predicted;
}

/// The median over the iterations of the sum over occurrences.
double median_sum(const std::vector<std::vector<double>>& iterations) {
  std::vector<double> sums;
  for (const auto& occurrences : iterations) {
    double sum = 0;
    for (const double value : occurrences) sum += value;
    sums.push_back(sum);
  }
  return sums.empty() ? 0 : median(std::move(sums));
}

template <class Unit>
double median_of(const std::vector<Unit>& values) {
  std::vector<double> numbers;
  for (const Unit value : values) numbers.push_back(value.value());
  return numbers.empty() ? 0 : median(std::move(numbers));
}

/// The largest deviation so far, as a share of what is allowed.
class Worst {
 public:
  void compare(double measured, double predicted, double tolerance, const std::string& what, const char* unit) {
    const double deviation = predicted > 0 ? measured / predicted - 1 : HUGE_VAL;
    const double share = std::abs(deviation) / tolerance;
    if (!(share > share_)) return;
    share_ = share;
    text_ = fmt::format("{} takes {:.4g} {}, the profile says {:.4g} {}: {:+.1f} %, allowed: {:.0f} %", what, measured,
                        unit, predicted, unit, 100 * deviation, 100 * tolerance);
  }
  [[nodiscard]] bool agrees() const { return share_ <= 1; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  double share_ = -1;
  std::string text_;
};

/// False if the rank reported too few values.
bool compare_rank(const TrialQuestion& question, int rank, const OfRank& own, double blocking_w, Worst& worst) {
  std::map<std::string, double> time_s;
  double computing_j = 0, iteration_j = 0, waiting_s = 0;
  int replicas = 0;
  bool has_computing = true, has_iteration = true;
  for (const profiling::RankResult& result : question.results) {
    if (result.rank != rank || result.iteration_time.size() < std::size_t{kLeastIterations}) continue;
    ++replicas;
    double busy_s = 0;
    for (const auto& [instruction, predicted_s] : own.time_s) {
      const auto measured = result.time_s.find(instruction);
      if (measured == result.time_s.end()) return false;
      const double sum_s = median_sum(measured->second);
      time_s[instruction] = std::max(time_s[instruction], sum_s);
      busy_s += sum_s;
      const auto energies = result.energy_j.find(instruction);
      const double sum_j = energies == result.energy_j.end() ? 0 : median_sum(energies->second);
      has_computing &= sum_j > 0;
      computing_j += sum_j;
    }
    has_iteration &= !result.iteration_energy.empty();
    iteration_j += median_of(result.iteration_energy);
    waiting_s += std::max(0.0, median_of(result.iteration_time) - busy_s);
  }
  if (replicas == 0) return false;
  for (const auto& [instruction, predicted_s] : own.time_s) {
    worst.compare(time_s[instruction], predicted_s, kTimeTolerance,
                  fmt::format("{} of stage rank {}", instruction, rank), "s");
  }
  const double energy_j = own.energy_j * replicas / std::max(1, own.accelerators);
  if (has_computing) {
    worst.compare(computing_j, energy_j, kEnergyTolerance, fmt::format("stage rank {}", rank), "J");
  } else if (has_iteration) {
    worst.compare(iteration_j, energy_j + blocking_w * waiting_s, kIterationEnergyTolerance,
                  fmt::format("an iteration of stage rank {}", rank), "J");
  }
  return true;
}

}  // namespace

std::optional<jobs::TrialEnded> judge_trial(const TrialQuestion& question) {
  if (question.results.empty()) return std::nullopt;
  const auto predicted = predict(question);
  if (!predicted) return jobs::TrialEnded{false, predicted.error().message};
  Worst worst;
  for (int rank = 0; rank < static_cast<int>(predicted->ranks.size()); ++rank) {
    if (!compare_rank(question, rank, predicted->ranks[rank], predicted->blocking_w, worst)) return std::nullopt;
  }
  return jobs::TrialEnded{worst.agrees(), fmt::format("at the highest clock, {}", worst.text())};
}

}  // namespace perseus::profiles
