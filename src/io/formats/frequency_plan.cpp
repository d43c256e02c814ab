#include "io/formats/frequency_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace perseus::formats {
namespace {

bool is_constant(const model::ComputationType& type) {
  return std::ranges::all_of(type.options, [](const model::Measurement& m) { return m.clock == Megahertz(0); });
}

}  // namespace

FrequencyPlanWriter::FrequencyPlanWriter(const model::ComputationDag& dag) : ranks_(dag.rank_order.size()) {
  std::vector<int> first_piece;
  for (const model::ComputationType& type : dag.types) {
    first_piece.push_back(is_constant(type) ? -1 : static_cast<int>(pieces_.size()));
    for (const model::Measurement& m : type.options) {
      pieces_.push_back(fmt::format("('{}', {}), ", type.instruction, m.clock.value()));
    }
  }
  for (int rank = 0; rank < dag.num_ranks(); ++rank) {
    for (const int computation : dag.rank_order[rank]) {
      const int first = first_piece[dag.computations[computation].type];
      if (first >= 0) ranks_[rank].push_back({computation, first});
    }
  }
}

std::string_view FrequencyPlanWriter::write(const model::Plan& plan, std::string_view comment) {
  text_.assign("[\n");
  for (const auto& steps : ranks_) {
    text_ += '[';
    for (const Step& step : steps) text_ += pieces_[step.first_piece + plan[step.computation]];
    if (!steps.empty()) text_.resize(text_.size() - 2);  // the last ", "
    text_ += "],\n";
  }
  text_ += "]\n";
  if (!comment.empty()) {
    text_ += "# ";
    for (const char c : comment) text_ += c == '\n' || c == '\r' ? ' ' : c;
    text_ += '\n';
  }
  return text_;
}

std::string frequency_plan_file_name(int point) { return fmt::format("freqs_pipeline_{:05}.py", point); }

}  // namespace perseus::formats
