#include "training/client/learned_facts.h"

#include <cmath>
#include <utility>

namespace perseus::client {
namespace {

constexpr double kNewsShare = 0.1;
constexpr double kLastingLoss_s = 10;  ///< an ended helper usually has a successor

bool is_news(double found, double sent) { return found > 0 && std::abs(found - sent) > kNewsShare * sent; }

}  // namespace

void LearnedFacts::ran(const Step& step) {
  if (!sent_.instructions.empty() || !step.train || !step.clean) return;
  for (std::size_t i = 0; i < step.count; ++i) {
    sent_.instructions.emplace_back(name_of(step.computations[i].instruction));
  }
}

std::optional<RankFacts> LearnedFacts::news(const Now& now, double now_s) {
  bool news = !std::exchange(sent_instructions_, !sent_.instructions.empty()) && !sent_.instructions.empty();
  if (learns_values(now)) news = true;
  if (control_changed(now, now_s)) news = true;
  return news ? std::optional(sent_) : std::nullopt;
}

bool LearnedFacts::learns_values(const Now& now) {
  bool news = false;
  if (is_news(now.switch_latency_s, sent_.switch_latency_s)) {
    sent_.switch_latency_s = now.switch_latency_s;
    news = true;
  }
  const bool known = now.blocking.stddev_w < kNewsShare / 2 * now.blocking.power_w;
  if (known && is_news(now.blocking.power_w, sent_.blocking_power_w)) {
    sent_.blocking_power_w = now.blocking.power_w;
    news = true;
  }
  // For a rank that could set no clock when it registered.
  if (now.sets_clocks && sent_.clocks_mhz.empty() && !now.clocks_mhz.empty()) {
    sent_.clocks_mhz = now.clocks_mhz;
    news = true;
  }
  return news;
}

bool LearnedFacts::control_changed(const Now& now, double now_s) {
  if (!now.has_control) return false;
  if (now.sets_clocks) {
    control_lost_s_ = 0;
    if (sent_.control.empty() || sent_.control == "clocks") return false;
    sent_.control = "clocks";
    sent_.control_reason.clear();
    return true;
  }
  if (control_lost_s_ == 0) control_lost_s_ = now_s;
  if (sent_.control == "none" || now_s - control_lost_s_ < kLastingLoss_s) return false;
  sent_.control = "none";
  sent_.control_reason = now.why_no_clocks();
  return true;
}

}  // namespace perseus::client
