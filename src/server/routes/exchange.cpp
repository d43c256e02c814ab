#include "server/routes/exchange.h"

#include <fmt/format.h>

#include <utility>

namespace perseus::routes {
namespace {

/// As members of an object, like Exchange::refused().
std::string answered_with(std::string_view body) {
  return fmt::format("\"status\":200,\"body\":{}", http::json_quoted(body));
}

}  // namespace

Exchange::Exchange(service::Service& service, std::function<void(std::function<void()>)> later, Formats formats,
                   std::function<void(std::string)> answer)
    : service_(service), later_(std::move(later)), formats_(std::move(formats)), answer_(std::move(answer)) {}

void Exchange::start(Parts parts) {
  to_come_ = parts.ranks.size() + parts.reports.size();
  ask(std::move(parts.ranks), &service::Service::register_rank, formats_.registered, ranks_);
  ask(std::move(parts.reports), &service::Service::report_iterations, formats_.reported, reports_);
  waits_over_ = parts.waits.empty();
  waits_.resize(parts.waits.size());
  bool ends = false;  // one deadline ends all waits
  for (std::size_t i = 0; i < parts.waits.size(); ++i) {
    if (!parts.waits[i]) {
      wait_answered(i, parts.waits[i].error());
      continue;
    }
    if (!std::exchange(ends, true)) parts.waits[i]->max_wait_s = parts.wait_s;
    const jobs::WaitId wait = service_.wait_for_plan(
        *std::move(parts.waits[i]),
        [self = shared_from_this(), i](const Result<jobs::PlanAnswer>& answer) { self->wait_answered(i, answer); });
    if (!over_ && wait != 0) waits_[i] = wait;
  }
  finish_soon();
}

template <class Request, class Answer>
void Exchange::ask(std::vector<Result<Request>> parts, void (service::Service::*call)(Request, service::Done<Answer>),
                   const Format<Answer>& format, std::vector<std::string>& answers) {
  answers.resize(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto answered = [self = shared_from_this(), &format, &answer = answers[i]](const Result<Answer>& done) {
      answer = done ? answered_with(format(*done)) : self->refused(done.error());
      --self->to_come_;
      self->finish_soon();
    };
    if (parts[i]) {
      (service_.*call)(*std::move(parts[i]), answered);
    } else {
      answered(parts[i].error());
    }
  }
}

void Exchange::wait_answered(std::size_t index, const Result<jobs::PlanAnswer>& answer) {
  if (over_) return;
  waits_[index] = 0;
  waits_over_ = true;
  const bool unchanged = answer.ok() && !answer->schedule;
  if (!unchanged) {
    fmt::format_to(std::back_inserter(answered_waits_), "{}{{\"wait\":{},{}}}", answered_waits_.empty() ? "" : ",",
                   index, answer ? answered_with(formats_.plan(*answer)) : refused(answer.error()));
  }
  finish_soon();
}

std::string Exchange::refused(const Error& error) const {
  const http::HttpResponse alone = formats_.error(error);
  return fmt::format("\"status\":{},\"body\":{}", alone.status, http::json_quoted(*alone.body));
}

/// A new plan answers many waits one after another: their answers are sent together.
void Exchange::finish_soon() {
  if (over_ || finishing_ || !waits_over_ || to_come_ > 0) return;
  finishing_ = true;
  later_([self = shared_from_this()] { self->finish(); });
}

void Exchange::finish() {
  if (over_) return;
  cancel();
  const auto list = [](const std::vector<std::string>& answers) {
    std::string text = "[";
    for (const std::string& answer : answers) text += (text.back() == '[' ? "{" : ",{") + answer + "}";
    return text + "]";
  };
  answer_(fmt::format("{{\"ranks\":{},\"reports\":{},\"waits\":[{}]}}", list(ranks_), list(reports_), answered_waits_));
}

void Exchange::cancel() {
  over_ = true;
  for (const jobs::WaitId wait : waits_) {
    if (wait != 0) service_.cancel_wait(wait);
  }
  waits_.clear();
}

}  // namespace perseus::routes
