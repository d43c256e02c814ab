// One request for all ranks of a host: registrations, reports of iterations, and waits for plans.
//
// Problem: a connection and a request per rank take most of a cluster server's time and memory; a relay on each host
//          (docs/serve.md, "One connection a host") sends for all of its ranks.
// Input:   registrations, reports and waits, each possibly of another job; how long to wait.
// Output:  one answer with the answer of each part: all registrations and reports, and the waits that have a plan or
//          an error. It is sent as soon as one wait has its answer, together with others of that moment; after
//          `wait_s` it is sent without. Waits under a budget are answered "unchanged" at its end, which renews
//          their leases. Other waits continue with the relay's next request.
// Errors:  of a part: in the answer, with its status. Of the whole: unauthorized, once the token is revoked.
// Cost:    that of its parts; one deadline per exchange.
// Threads: io thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "io/http/http_server.h"
#include "server/access/held_calls.h"
#include "server/jobs/api_bodies.h"
#include "server/jobs/requests.h"
#include "server/service/service.h"

namespace perseus::routes {

/// When an answer is sent, and how long after its request has arrived.
struct AnswerTimes {
  double sent_at_s = 0, held_s = 0;
};
std::string plan_json(const jobs::PlanAnswer& answer, const AnswerTimes& times);
std::string registered_json(const jobs::RegisterRankAnswer& rank, const AnswerTimes& times);
std::string reported_json(const jobs::ReportedIterations& reported);

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  struct Parts {
    std::vector<Result<jobs::RegisterRank>> ranks;  ///< or the reason for rejection; likewise for the others
    std::vector<Result<jobs::ReportIterations>> reports;
    std::vector<Result<jobs::WaitForPlan>> waits;
    double wait_s = 0;
  };
  /// Of a request that arrives now. `later` runs a piece of work on the io thread after the present one.
  Exchange(service::Service& service, const Clock& clock, store::Post later, access::HeldCalls& held,
           http::Responder responder);

  void start(Parts parts, const access::HeldCalls::Caller& caller);
  /// Cancels the waits; no answer is sent any more.
  void cancel();

 private:
  /// Calls the service for all parts of a kind; each answer goes to its place in `answers`.
  template <class Request, class Of, class Answer, class Format>
  void ask(std::vector<Result<Request>> parts, Of& of, void (Of::*call)(Request, work::Done<Answer>), Format format,
           std::vector<std::string>& answers);
  void wait_answered(std::size_t index, const Result<jobs::PlanAnswer>& answer);
  void add_answer(std::size_t index, const Result<jobs::PlanAnswer>& answer);
  void finish_soon();
  void finish();
  [[nodiscard]] AnswerTimes times() const;

  service::Service& service_;
  const Clock& clock_;
  double arrived_s_;
  store::Post later_;
  access::HeldCalls& held_;
  http::Responder responder_;
  access::HeldCalls::Id held_id_ = 0;
  std::vector<std::string> ranks_, reports_;  ///< answers, JSON objects; empty: none yet
  std::vector<jobs::WaitId> waits_;           ///< 0: answered
  std::vector<int> rank_of_wait_;
  std::vector<std::string> answered_waits_;  ///< JSON objects
  std::size_t to_come_ = 0;                  ///< pending registrations and reports
  bool waits_over_ = false;                  ///< one wait has its answer, or there are no waits
  bool finishing_ = false, over_ = false;
};

/// The body of an exchange, with its parts read.
struct ParsedExchange {
  jobs::ExchangeBody body;
  Exchange::Parts parts;  ///< without waits
};

}  // namespace perseus::routes
