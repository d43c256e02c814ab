#include "server/exchange.h"

#include <fmt/format.h>

#include <utility>

namespace perseus::server {

Exchange::Exchange(Service& service, std::function<void(std::function<void()>)> later, Formats formats,
                   std::function<void(std::string)> answer)
    : service_(service), later_(std::move(later)), formats_(std::move(formats)), answer_(std::move(answer)) {}

void Exchange::start(Parts parts) {
  reports_.resize(parts.reports.size());
  reports_to_come_ = parts.reports.size();
  for (std::size_t i = 0; i < parts.reports.size(); ++i) {
    if (!parts.reports[i]) {
      report_answered(i, parts.reports[i].error());
      continue;
    }
    service_.report_iterations(
        *std::move(parts.reports[i]),
        [self = shared_from_this(), i](const Result<ReportedIterations>& done) { self->report_answered(i, done); });
  }
  waits_over_ = parts.waits.empty();
  waits_.resize(parts.waits.size());
  bool ends = false;  // one deadline ends them all
  for (std::size_t i = 0; i < parts.waits.size(); ++i) {
    if (!parts.waits[i]) {
      wait_answered(i, parts.waits[i].error());
      continue;
    }
    if (!std::exchange(ends, true)) parts.waits[i]->max_wait_s = parts.wait_s;
    const WaitId wait = service_.wait_for_plan(
        *std::move(parts.waits[i]),
        [self = shared_from_this(), i](const Result<PlanAnswer>& answer) { self->wait_answered(i, answer); });
    if (!over_ && wait != 0) waits_[i] = wait;
  }
  finish_soon();
}

void Exchange::report_answered(std::size_t index, const Result<ReportedIterations>& done) {
  reports_[index] =
      done ? fmt::format("\"status\":200,\"body\":{}", json_quoted(formats_.reported(*done))) : refused(done.error());
  --reports_to_come_;
  finish_soon();
}

void Exchange::wait_answered(std::size_t index, const Result<PlanAnswer>& answer) {
  if (over_) return;
  waits_[index] = 0;
  waits_over_ = true;
  const bool unchanged = answer.ok() && !answer->schedule;
  if (!unchanged) {
    fmt::format_to(std::back_inserter(answered_waits_), "{}{{\"wait\":{},{}}}", answered_waits_.empty() ? "" : ",",
                   index,
                   answer ? fmt::format("\"status\":200,\"body\":{}", json_quoted(formats_.plan(*answer)))
                          : refused(answer.error()));
  }
  finish_soon();
}

std::string Exchange::refused(const Error& error) const {
  const HttpResponse alone = formats_.error(error);
  return fmt::format("\"status\":{},\"body\":{}", alone.status, json_quoted(*alone.body));
}

/// A new plan answers many waits one after another: they leave together.
void Exchange::finish_soon() {
  if (over_ || finishing_ || !waits_over_ || reports_to_come_ > 0) return;
  finishing_ = true;
  later_([self = shared_from_this()] { self->finish(); });
}

void Exchange::finish() {
  if (over_) return;
  cancel();
  std::string text = "{\"reports\":[";
  for (const std::string& report : reports_) text += (text.back() == '[' ? "{" : ",{") + report + "}";
  answer_(text + "],\"waits\":[" + answered_waits_ + "]}");
}

void Exchange::cancel() {
  over_ = true;
  for (const WaitId wait : waits_) {
    if (wait != 0) service_.cancel_wait(wait);
  }
  waits_.clear();
}

}  // namespace perseus::server
