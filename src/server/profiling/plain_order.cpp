#include "server/profiling/plain_order.h"

namespace perseus::profiling {
namespace {

struct Progress {
  int next = 0;  // index of the next clock to measure; past the end: none
  int best = 0;  // of least energy so far
  bool done = false;
};

Progress progress_of(const ProfiledType& type, const std::vector<Cell>& cells) {
  Progress progress;
  const int clocks = static_cast<int>(type.clocks.size());
  while (progress.next < clocks && cells[progress.next].log_time.count > 0) ++progress.next;
  for (int c = 1; c < progress.next; ++c) {
    if (cells[c].log_energy.mean < cells[progress.best].log_energy.mean) progress.best = c;
  }
  const bool energies = progress.next > 0 && cells[0].log_energy.count > 0;
  progress.done = progress.next == clocks || (energies && progress.next - 1 - progress.best >= kPlainRisingClocks);
  return progress;
}

}  // namespace

std::optional<std::vector<int>> plain_clocks(const Layout& layout, const Samples& samples) {
  std::vector<Progress> progress;
  int next = -1;  // uniform: the highest clock index that some type still needs
  for (int t = 0; t < layout.num_types(); ++t) {
    progress.push_back(progress_of(layout.types[t], samples.cells(t)));
    if (!layout.types[t].has_clock()) progress.back() = {0, 0, true};
    if (!progress.back().done && (next < 0 || progress.back().next < next)) next = progress.back().next;
  }
  if (next < 0) return std::nullopt;
  std::vector<int> clocks;
  for (const Progress& type : progress) clocks.push_back(type.done ? type.best : type.next);
  return clocks;
}

}  // namespace perseus::profiling
