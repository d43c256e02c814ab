// Figures of a measurement, and their output as Markdown tables and JSON.
//
// Input:   samples with a unit; facts (a value in words); reasons why a part was skipped.
// Output:  median, p90, p99, maximum and count per figure.
// Errors:  write() returns false if the file cannot be written.
// Threads: one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace perseus::measure {

class Figures {
 public:
  /// The following figures and facts belong to that part.
  void begin_part(std::string_view name, std::string_view title);
  void add(std::string what, std::string_view unit, std::vector<double> samples);
  void fact(std::string what, std::string value);
  void fact(std::string what, double value, std::string_view unit);
  void failed(std::string why);

  /// About the whole run.
  void head(std::string what, std::string value);
  void not_touched(std::string what);

  [[nodiscard]] std::string markdown() const;
  [[nodiscard]] std::string json() const;
  [[nodiscard]] bool any_failed() const;

 private:
  struct Figure {
    std::string what, unit;
    double p50, p90, p99, maximum;
    std::size_t count;
  };
  struct Fact {
    std::string what, value;
  };
  struct Part {
    std::string name, title, failure;
    std::vector<Figure> figures;
    std::vector<Fact> facts;
  };
  std::vector<Part> parts_;
  std::vector<Fact> head_;
  std::vector<std::string> not_touched_;
};

}  // namespace perseus::measure
