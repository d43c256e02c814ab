// Formats quantities for people, the same in every report.
//
// Input:   a quantity.
// Output:  ASCII text with unit, thousands separated by commas.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "planning/model/computation_dag.h"

namespace perseus::report {

std::string text_of(Seconds time);     ///< "2.8365 s", "13.2 ms"
std::string text_of(Joules energy);    ///< "66,123 J", "12.42 J"
std::string text_of(Watts power);      ///< "412 W"
std::string text_of(Megahertz clock);  ///< "1410 MHz", "fixed clock" for 0
std::string percent(double value);     ///< "13.4 %"

/// "F3": the instruction's letter and the microbatch.
std::string short_name(const model::ComputationDag& dag, int computation);
/// "forward 3, stage 0"
std::string long_name(const model::ComputationDag& dag, int computation);

/// Round values (1, 2 or 5 times a power of ten apart) within [low, high], about `count` of them.
std::vector<double> ticks_within(double low, double high, int count);
/// A tick's label with as many decimals as its distance to the next one needs.
std::string tick_label(double value, const std::vector<double>& ticks);

/// Any bytes, such as names from files, for text and quoted attributes of HTML and XML: valid UTF-8 without control
/// characters (bytes that are not UTF-8 become U+FFFD), escaped.
std::string escape_markup(std::string_view text);

}  // namespace perseus::report
