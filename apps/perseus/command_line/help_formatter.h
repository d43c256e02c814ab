// Formats --help in the usual Unix layout: names on the left, wrapped descriptions on the right, as
// wide as the terminal (elsewhere 80 columns).
//
// Input:   CLI11's data of an option.
// Output:  its lines.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace perseus::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
};

}  // namespace perseus::cli
