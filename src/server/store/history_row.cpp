#include "server/store/history_row.h"

#include <algorithm>

#include "server/store/checksum.h"

namespace perseus::store {

void HistoryFigures::add(const HistoryFigures& other) {
  if (other.iterations > 0) {
    least_s = iterations > 0 ? std::min(least_s, other.least_s) : other.least_s;
    most_s = std::max(most_s, other.most_s);
  }
  if (other.first_version > 0) {
    first_version = first_version > 0 ? std::min(first_version, other.first_version) : other.first_version;
    last_version = std::max(last_version, other.last_version);
  }
  iterations += other.iterations;
  time_s += other.time_s;
  energy_iterations += other.energy_iterations;
  energy_j += other.energy_j;
  planned_iterations += other.planned_iterations;
  planned_s += other.planned_s;
  planned_j += other.planned_j;
  straggler_iterations += other.straggler_iterations;
}

std::int64_t checksum_of(const HistoryRow& row) {
  const HistoryFigures& of = row.figures;
  Checksum checksum;
  checksum.add(std::string_view(row.job)).add(row.step_s).add(row.start_s).add(std::string_view(row.source));
  checksum.add(of.iterations).add(of.time_s).add(of.least_s).add(of.most_s).add(of.energy_iterations).add(of.energy_j);
  checksum.add(of.planned_iterations).add(of.planned_s).add(of.planned_j).add(of.straggler_iterations);
  return checksum.add(of.first_version).add(of.last_version).value();
}

}  // namespace perseus::store
