#include "evaluation/what_if/stages_by_order.h"

#include <algorithm>
#include <string>
#include <vector>

#include "planning/model/make_schedule.h"

namespace perseus::what_if {
namespace {

constexpr int kMostChunks = 16;  ///< stages a rank that the order alone may show

}  // namespace

std::optional<model::Schedule> find_stages(std::map<int, SpansOfRanks>& steps, int pipelines, int ranks,
                                           int microbatches) {
  std::vector<SpansOfRanks*> whole;
  for (auto& [number, step] : steps) {
    const bool is_whole = std::ssize(step) == pipelines * ranks && std::ranges::all_of(step, [&](const auto& rank) {
                            return std::ssize(rank.second.computing) == 2 * microbatches;
                          });
    if (is_whole) whole.push_back(&step);
  }
  if (whole.empty()) return std::nullopt;
  const auto fits = [&](const model::Schedule& schedule) {
    return std::ranges::all_of(whole, [&](const SpansOfRanks* step) {
      return std::ranges::all_of(*step, [&](const auto& rank) {
        return std::ranges::equal(
            rank.second.computing, schedule.ranks[rank.first.second], {},
            [](const trace::Span& s) { return instruction_of(s.kind); }, &model::Action::instruction);
      });
    });
  };
  std::vector<model::Schedule> fitting;
  for (int chunks = 1; chunks <= std::min(microbatches, kMostChunks); ++chunks) {
    if (microbatches % chunks != 0) continue;
    for (const std::string& name : model::schedule_names()) {
      auto schedule = model::make_schedule(name, {ranks, microbatches / chunks, chunks});
      if (!schedule || schedule->num_stages != ranks * chunks || !fits(*schedule)) continue;
      if (chunks == 1) return std::nullopt;
      fitting.push_back(*std::move(schedule));
    }
  }
  if (fitting.size() != 1) return std::nullopt;
  for (SpansOfRanks* step : whole) {
    for (auto& [place, spans] : *step) {
      for (std::size_t k = 0; k < spans.computing.size(); ++k) {
        const model::Action& action = fitting.front().ranks[place.second][k];
        spans.computing[k].stage = static_cast<std::int16_t>(action.stage);
        spans.computing[k].microbatch = static_cast<std::int16_t>(action.microbatch);
      }
    }
  }
  return std::move(fitting.front());
}

}  // namespace perseus::what_if
