#include "io/formats/frequency_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "io/formats/file.h"
#include "io/formats/number.h"

namespace perseus::formats {
namespace {

constexpr std::size_t kMaxName = 64;

bool is_constant(const model::ComputationType& type) {
  return std::ranges::all_of(type.options, [](const model::Measurement& m) { return m.clock == Megahertz(0); });
}

/// Reads exactly the literals of the format, from left to right.
class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : rest_(text), name_(name) {
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
  }

  Result<FrequencyPlan> parse() {
    FrequencyPlan plan;
    expect('[', "[ that opens the list of ranks");
    while (!failed() && !closes(']')) {
      plan.push_back(rank());
      separate(']');
    }
    if (!failed() && peek() != '\0') fail("the end of the file (comments are allowed)");
    if (!failed() && !rest_.empty()) fail("the end of the file");  // a NUL byte
    if (!failed() && plan.empty()) fail("at least one rank's list");
    if (error_) return *error_;
    return plan;
  }

 private:
  std::vector<ClockedInstruction> rank() {
    std::vector<ClockedInstruction> steps;
    expect('[', "[ that opens a rank's list, or ]");
    while (!failed() && !closes(']')) {
      steps.push_back(step());
      separate(']');
    }
    return steps;
  }

  ClockedInstruction step() {
    ClockedInstruction step;
    expect('(', "( that opens an (instruction, MHz) pair, or ]");
    step.instruction = quoted_name();
    expect(',', "a comma between instruction and MHz");
    step.clock = Megahertz(clock());
    if (peek() == ',') advance();
    expect(')', ") after the MHz");
    return step;
  }

  std::string quoted_name() {
    const char quote = peek();
    if (failed()) return {};
    if (quote != '\'' && quote != '"') return fail("an instruction's name in quotes"), std::string();
    const std::size_t end = rest_.substr(1, kMaxName + 1).find(quote);
    const std::string_view name = end == std::string_view::npos ? std::string_view() : rest_.substr(1, end);
    const bool good = std::ranges::all_of(name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
    if (name.empty() || !good) return fail("an instruction's name of 1..64 letters, digits, _ or -"), std::string();
    rest_.remove_prefix(end + 2);
    return std::string(name);
  }

  int clock() {
    peek();
    if (failed()) return 0;
    const std::size_t end = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    const auto value = number_in<int>(rest_.substr(0, end));
    if (!value || *value > kMaxFrequency_mhz) return fail("an integer from 0 to 1000000 (MHz)"), 0;
    rest_.remove_prefix(end);
    return *value;
  }

  /// After an element: a comma, or the end of the list (which closes() reads).
  void separate(char close) {
    if (failed()) return;
    if (peek() == ',') {
      advance();
    } else if (peek() != close) {
      fail("a comma or ]");
    }
  }

  bool closes(char close) {
    if (peek() != close) return false;
    advance();
    return true;
  }

  void expect(char c, const char* what) {
    if (failed()) return;
    if (peek() != c) return fail(what);
    advance();
  }

  /// The next character that is not white space or a comment; 0 at the end.
  char peek() {
    while (!rest_.empty()) {
      const char c = rest_.front();
      if (c == '#') {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        line_ += c == '\n' ? 1 : 0;
        rest_.remove_prefix(1);
      } else {
        return c;
      }
    }
    return '\0';
  }
  void advance() { rest_.remove_prefix(1); }

  [[nodiscard]] bool failed() const { return error_.has_value(); }
  void fail(const char* expected) {
    if (error_) return;
    const std::string_view found = rest_.substr(0, std::min<std::size_t>(rest_.find('\n'), 24));
    error_ =
        Error{ErrorCode::invalid_input,
              fmt::format("{}:{}: found {}; expected {}", name_, line_,
                          rest_.empty() ? std::string("the end of the file") : fmt::format("'{}'", found), expected)};
  }

  std::string_view rest_;
  const std::string& name_;
  int line_ = 1;
  std::optional<Error> error_;
};

/// "1230 MHz; nearest: 1245 and 1215 MHz"
std::string nearest_clocks(const std::vector<model::Measurement>& options, Megahertz wanted) {
  std::optional<int> above;
  std::optional<int> below;
  for (const model::Measurement& m : options) {
    const int clock = m.clock.value();
    if (clock > wanted.value() && (!above || clock < *above)) above = clock;
    if (clock < wanted.value() && (!below || clock > *below)) below = clock;
  }
  if (above && below) return fmt::format("{} and {} MHz", *above, *below);
  return fmt::format("{} MHz", above ? *above : below.value_or(0));
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

FrequencyPlan frequency_plan_of(const model::ComputationDag& dag, const model::Plan& plan) {
  FrequencyPlan frequencies(dag.rank_order.size());
  for (int rank = 0; rank < dag.num_ranks(); ++rank) {
    for (const int computation : dag.rank_order[rank]) {
      const model::ComputationType& type = dag.type_of(computation);
      if (!is_constant(type)) frequencies[rank].push_back({type.instruction, type.options[plan[computation]].clock});
    }
  }
  return frequencies;
}

Result<FrequencyPlan> parse_frequency_plan(std::string_view text, const std::string& name) {
  return Parser(text, name).parse();
}

Result<FrequencyPlan> read_frequency_plan(const std::string& path) {
  auto text = read_file(path);
  if (!text) return text.error();
  return parse_frequency_plan(*text, path);
}

Result<model::Plan> to_plan(const FrequencyPlan& frequencies, const model::ComputationDag& dag) {
  const auto mismatch = [](std::string message) {
    return Error{ErrorCode::invalid_input, "frequency plan: " + std::move(message)};
  };
  if (frequencies.size() != dag.rank_order.size()) {
    return mismatch(fmt::format("{} lists, but the pipeline has {} ranks", frequencies.size(), dag.num_ranks()));
  }
  model::Plan plan(dag.computations.size());
  for (int rank = 0; rank < dag.num_ranks(); ++rank) {
    const auto& steps = frequencies[rank];
    std::size_t position = 0;
    for (const int computation : dag.rank_order[rank]) {
      const model::ComputationType& type = dag.type_of(computation);
      if (is_constant(type)) continue;
      if (position < steps.size()) {
        const ClockedInstruction& step = steps[position];
        const auto at = [&](const std::string& what) {
          return mismatch(fmt::format("rank {}, position {}: {}", rank, position, what));
        };
        if (step.instruction != type.instruction) {
          return at(fmt::format("'{}', but the schedule runs '{}' there", step.instruction, type.instruction));
        }
        const auto option = std::ranges::find(type.options, step.clock, &model::Measurement::clock);
        if (option == type.options.end()) {
          return at(fmt::format("{} at {} MHz, which was not measured; nearest: {}", step.instruction,
                                step.clock.value(), nearest_clocks(type.options, step.clock)));
        }
        plan[computation] = static_cast<std::uint16_t>(option - type.options.begin());
      }
      ++position;
    }
    if (position != steps.size()) {
      return mismatch(
          fmt::format("rank {}: {} instructions, but the schedule runs {} there", rank, steps.size(), position));
    }
  }
  return plan;
}

}  // namespace perseus::formats
