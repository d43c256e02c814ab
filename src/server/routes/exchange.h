// What the ranks of a host say and wait for, in one request: who they are, reports of iterations, and waits for
// plans.
//
// Problem: a connection and a request for every rank is what a cluster's server spends most of its time and memory
//          on; a relay on each host (docs/serve.md, "One connection a host") speaks for all of its ranks.
// Input:   ranks that register, reports and waits, of which each may be of another job; how long to wait.
// Output:  one answer with what each part would have been answered alone: all ranks and reports, and the waits that
//          have a plan or an error. It leaves as soon as one wait has; the others of that moment come with it. After
//          `wait_s` it leaves without. Waits that are not in it go on with the relay's next request.
// Errors:  of a part: in the answer, with its status. All of it: unauthorized, once the token is revoked.
// Cost:    that of its parts; one deadline an exchange.
// Threads: io thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/http/http_message.h"
#include "server/service/service.h"

namespace perseus::routes {

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  struct Parts {
    std::vector<Result<jobs::RegisterRank>> ranks;  ///< or why it is refused; the same of the others
    std::vector<Result<jobs::ReportIterations>> reports;
    std::vector<Result<jobs::WaitForPlan>> waits;
    double wait_s = 0;
  };
  /// The texts that each part would be answered with alone.
  struct Formats {
    std::function<std::string(const jobs::PlanAnswer&)> plan;
    std::function<std::string(const jobs::RegisteredRank&)> registered;
    std::function<std::string(const jobs::ReportedIterations&)> reported;
    std::function<http::HttpResponse(const Error&)> error;
  };
  /// `later` runs a piece of work on the io thread after the present one.
  Exchange(service::Service& service, std::function<void(std::function<void()>)> later, Formats formats,
           std::function<void(std::string)> answer);

  void start(Parts parts);
  /// Takes back what waits; nothing is answered any more.
  void cancel();

 private:
  template <class Answer>
  using Format = std::function<std::string(const Answer&)>;
  /// Asks for all parts of a kind; the answer of each goes to its place in `answers`.
  template <class Request, class Answer>
  void ask(std::vector<Result<Request>> parts, void (service::Service::*call)(Request, service::Done<Answer>),
           const Format<Answer>& format, std::vector<std::string>& answers);
  void wait_answered(std::size_t index, const Result<jobs::PlanAnswer>& answer);
  void finish_soon();
  void finish();
  /// Status and body, as members of an object.
  [[nodiscard]] std::string refused(const Error& error) const;

  service::Service& service_;
  std::function<void(std::function<void()>)> later_;
  Formats formats_;
  std::function<void(std::string)> answer_;
  std::vector<std::string> ranks_, reports_;  ///< answers; empty: none yet
  std::vector<jobs::WaitId> waits_;
  std::string answered_waits_;
  std::size_t to_come_ = 0;  ///< of ranks and reports
  bool waits_over_ = false;  ///< one has its answer, or there is none
  bool finishing_ = false, over_ = false;
};

}  // namespace perseus::routes
