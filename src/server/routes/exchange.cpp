#include "server/routes/exchange.h"

#include <utility>

#include "base/json_writer.h"
#include "server/jobs/api_answers.h"
#include "server/routes/api.h"

namespace perseus::routes {
namespace {

std::string answered_with(int status, std::string_view body) {
  return json_object([&](JsonWriter& f) {
    f.always("status", status);
    f.always("body", body);
  });
}

std::string refused(const Error& error) {
  const http::HttpResponse alone = response_of(error);
  return answered_with(alone.status, *alone.body);
}

}  // namespace

Exchange::Exchange(service::Service& service, const Clock& clock, store::Post later, access::HeldCalls& held,
                   http::Responder responder)
    : service_(service),
      clock_(clock),
      arrived_s_(clock.now_s()),
      later_(std::move(later)),
      held_(held),
      responder_(std::move(responder)) {}

AnswerTimes Exchange::times() const {
  const double now_s = clock_.now_s();
  return {now_s, now_s - arrived_s_};
}

void Exchange::start(Parts parts, const access::HeldCalls::Caller& caller) {
  held_id_ = held_.add(caller, [self = shared_from_this()] {
    self->cancel();
    self->responder_.send(response_of({ErrorCode::unauthorized, "this token was revoked or has expired"}));
  });
  responder_.on_closed([weak = std::weak_ptr(shared_from_this())](bool) {
    if (const auto left = weak.lock()) left->cancel();
  });
  to_come_ = parts.ranks.size() + parts.reports.size();
  ask(
      std::move(parts.ranks), service_.registrations, &service::Registrations::register_rank,
      [this](const jobs::RegisterRankAnswer& answer) { return registered_json(answer, times()); }, ranks_);
  ask(std::move(parts.reports), service_.reports, &reports::IterationReports::report, reported_json, reports_);
  waits_over_ = parts.waits.empty();
  waits_.resize(parts.waits.size());
  rank_of_wait_.resize(parts.waits.size());
  bool ends = false;  // one deadline ends all waits
  for (std::size_t i = 0; i < parts.waits.size(); ++i) {
    if (!parts.waits[i]) {
      wait_answered(i, parts.waits[i].error());
      continue;
    }
    if (!std::exchange(ends, true)) parts.waits[i]->max_wait_s = parts.wait_s;
    rank_of_wait_[i] = parts.waits[i]->rank;
    const jobs::WaitId wait = service_.waiting.wait(
        *std::move(parts.waits[i]),
        [self = shared_from_this(), i](const Result<jobs::PlanAnswer>& answer) { self->wait_answered(i, answer); });
    if (!over_ && wait != 0) waits_[i] = wait;
  }
  finish_soon();
}

template <class Request, class Of, class Answer, class Format>
void Exchange::ask(std::vector<Result<Request>> parts, Of& of, void (Of::*call)(Request, work::Done<Answer>),
                   Format format, std::vector<std::string>& answers) {
  answers.resize(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto answered = [self = shared_from_this(), format, &answer = answers[i]](const Result<Answer>& done) {
      answer = done ? answered_with(200, format(*done)) : refused(done.error());
      --self->to_come_;
      self->finish_soon();
    };
    if (parts[i]) {
      (of.*call)(*std::move(parts[i]), answered);
    } else {
      answered(parts[i].error());
    }
  }
}

void Exchange::wait_answered(std::size_t index, const Result<jobs::PlanAnswer>& answer) {
  if (over_) return;
  waits_[index] = 0;
  waits_over_ = true;
  const bool nothing_new = answer.ok() && !answer->schedule && !answer->renews;
  if (!nothing_new) add_answer(index, answer);
  finish_soon();
}

void Exchange::add_answer(std::size_t index, const Result<jobs::PlanAnswer>& answer) {
  answered_waits_.push_back(json_object([&](JsonWriter& f) {
    f.always("wait", index);
    f.members_of(answer ? answered_with(200, plan_json(*answer, times())) : refused(answer.error()));
  }));
}

/// A new plan answers many waits one after another: their answers are sent together.
void Exchange::finish_soon() {
  if (over_ || finishing_ || !waits_over_ || to_come_ > 0) return;
  finishing_ = true;
  later_([self = shared_from_this()] { self->finish(); });
}

void Exchange::finish() {
  if (over_) return;
  for (std::size_t i = 0; i < waits_.size(); ++i) {
    if (waits_[i] == 0 || !service_.waiting.cancel(waits_[i])) continue;
    add_answer(i, jobs::PlanAnswer{nullptr, rank_of_wait_[i], 0, true});
  }
  over_ = true;
  waits_.clear();
  held_.remove(held_id_);
  const auto list = [](const std::vector<std::string>& answers) {
    return JsonList{answers, [](const std::string& answer) { return JsonRaw{answer}; }};
  };
  std::string answer = json_object([&](JsonWriter& f) {
    f.always("ranks", list(ranks_));
    f.always("reports", list(reports_));
    f.always("waits", list(answered_waits_));
  });
  responder_.send(http::json_response(200, std::move(answer)));
}

void Exchange::cancel() {
  over_ = true;
  held_.remove(held_id_);
  for (const jobs::WaitId wait : waits_) {
    if (wait != 0) service_.waiting.cancel(wait);
  }
  waits_.clear();
}

std::string plan_json(const jobs::PlanAnswer& answer, const AnswerTimes& times) {
  return json_object([&](JsonWriter& f) {
    f.always("rank", answer.rank);
    if (answer.renews || (answer.schedule && answer.schedule->budget)) {
      f.always("sent_at_s", times.sent_at_s);
      f.always("held_s", times.held_s);
    }
    if (!answer.schedule) return f.always("unchanged", true);
    f.always("pipeline", answer.pipeline);
    auto& text = answer.schedule->rendered["v1"];
    if (!text) text = std::make_shared<const std::string>(json_text(*answer.schedule));
    f.members_of(*text);
  });
}

std::string registered_json(const jobs::RegisterRankAnswer& rank, const AnswerTimes& times) {
  return json_object([&](JsonWriter& f) {
    f.always("registered", rank.registered);
    f.always("expected", rank.expected);
    f.always("epoch", rank.epoch);
    if (rank.plan) f.always("plan", JsonRaw{plan_json(*rank.plan, times)});
  });
}

std::string reported_json(const jobs::ReportedIterations& reported) { return json_text(reported); }

}  // namespace perseus::routes
