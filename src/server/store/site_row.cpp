#include "server/store/site_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <type_traits>

#include "server/store/checksum.h"

namespace perseus::store {
namespace {

/// Calls `visit` with the name of each sum and the sum.
template <class Figures, class Visit>
void for_each_sum(Figures& of, Visit visit) {
  visit("readings", of.readings);
  visit("limited", of.limited);
  visit("over", of.over);
  visit("metered", of.metered);
  visit("metered_limit_w", of.metered_limit_w);
  visit("limit_w", of.limit_w);
  visit("baseline_w", of.baseline_w);
  visit("metered_baseline_w", of.metered_baseline_w);
  visit("planned_w", of.planned_w);
  visit("counted_w", of.counted_w);
  visit("reported_w", of.reported_w);
  visit("planned_of_reporting_w", of.planned_of_reporting_w);
  visit("metered_w", of.metered_w);
  visit("missing_w", of.missing_w);
}

constexpr std::string_view kTier = "tier";  // =LEAST_RATE:ACCELERATORS:LOST

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc{} && end == text.data() + text.size();
}

bool read_tier(std::string_view text, std::map<double, SiteTierSums>& tiers) {
  const std::size_t first = text.find(':');
  const std::size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos) return false;
  double least_rate = 0;
  SiteTierSums sums;
  const bool read = read_number(text.substr(0, first), least_rate) &&
                    read_number(text.substr(first + 1, second - first - 1), sums.accelerators) &&
                    read_number(text.substr(second + 1), sums.lost);
  if (read) tiers[least_rate] = sums;
  return read;
}

bool read_figure(std::string_view name, std::string_view value, SiteFigures& figures) {
  if (name == kTier) return read_tier(value, figures.tiers);
  bool fine = true;
  for_each_sum(figures, [&](std::string_view known, auto& sum) {
    if (name == known) fine = read_number(value, sum);
  });
  return fine;
}

}  // namespace

void SiteFigures::add(const SiteFigures& other) {
  std::vector<double> numbers;
  for_each_sum(other, [&](std::string_view, auto sum) { numbers.push_back(static_cast<double>(sum)); });
  auto next = numbers.begin();
  for_each_sum(*this, [&](std::string_view, auto& sum) { sum += static_cast<std::decay_t<decltype(sum)>>(*next++); });
  for (const auto& [least_rate, sums] : other.tiers) {
    SiteTierSums& tier = tiers[least_rate];
    tier.accelerators += sums.accelerators;
    tier.lost += sums.lost;
  }
}

std::string format_site_figures(const SiteFigures& figures) {
  std::string text;
  for_each_sum(figures, [&](std::string_view name, auto sum) {
    if (sum != 0) fmt::format_to(std::back_inserter(text), "{}{}={}", text.empty() ? "" : " ", name, sum);
  });
  for (const auto& [least_rate, sums] : figures.tiers) {
    fmt::format_to(std::back_inserter(text), "{}{}={}:{}:{}", text.empty() ? "" : " ", kTier, least_rate,
                   sums.accelerators, sums.lost);
  }
  return text;
}

std::optional<SiteFigures> parse_site_figures(std::string_view text) {
  SiteFigures figures;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    if (!read_figure(part.substr(0, equals), part.substr(equals + 1), figures)) return std::nullopt;
  }
  return figures;
}

std::int64_t checksum_of(const SiteRow& row, std::string_view figures) {
  Checksum checksum;
  checksum.add(std::string_view(row.domain)).add(row.step_s).add(row.start_s).add(std::string_view(row.source));
  return checksum.add(figures).value();
}

}  // namespace perseus::store
