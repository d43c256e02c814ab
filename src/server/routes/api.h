// The server's HTTP API: routes, access checks and answers.
//
// Problem: /v1, the two existing protocols, the dashboard and the probes share a port.
// Input:   requests.
// Output:  one answer per request; a waiting call is canceled when its client disconnects.
// Errors:  {"detail": ..., "error": {"code", "message"}} with the status of base/error_table; an invalid body changes
//          nothing.
// Cost:    a lookup and the call.
// Threads: io thread.
// Source:  docs/openapi.json describes /v1; decision 0013.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "io/http/cross_site.h"
#include "io/http/http_server.h"
#include "server/access/held_calls.h"
#include "server/access/tokens.h"
#include "server/jobs/view_json.h"
#include "server/metrics/metrics.h"
#include "server/routes/large_bodies.h"
#include "server/routes/list_pages.h"
#include "server/routes/site_changes.h"
#include "server/routes/wrong_tokens.h"
#include "server/service/service.h"
#include "server/store/store.h"
#include "server/views/event_streams.h"
#include "server/views/job_changes.h"
#include "server/work/executor.h"

namespace perseus::jobs {
struct AdmissionRequest;
struct MeterReading;
struct RegisterJobBody;
struct ProfileBody;
struct SiteDocument;
struct TokenBody;
}  // namespace perseus::jobs

namespace perseus::routes {

struct ParsedExchange;
struct NoBody;
struct PolicyBody;

// Bodies of the two existing protocols. Zeus's has the job in the path of a rank's registration, the artifact's in the
// body.
struct LegacyJob {
  jobs::RegisterJob job;
};
struct LegacyRank {
  jobs::RegisterRank rank;
};
struct ArtifactRank {
  jobs::RegisterRank rank;
};
struct LegacyResult {
  jobs::ReportIterations report;
};

/// The file system of the database.
struct DiskHealth {
  std::uint64_t free_bytes = 0;
  std::string problem;  ///< empty: there is space
};

/// The process around the API.
class ApiHost : public BodyReader {
 public:
  /// For /metrics.
  [[nodiscard]] virtual std::optional<http::HttpServerCounts> connections() const { return std::nullopt; }
  /// For /readyz; nothing: the database is remote.
  [[nodiscard]] virtual std::optional<DiskHealth> disk() { return std::nullopt; }
  /// Receives a JSON object per change: the caller, the change and its outcome.
  virtual void audit(const std::string& /*change*/) {}
  /// Receives lines for the log.
  virtual void warn(const std::string& /*line*/) {}

 protected:
  ~ApiHost() = default;
};

/// What Api::set_limits() replaces.
struct ApiLimits {
  jobs::EnergyFactors factors;
  std::vector<std::string> hosts;  ///< names by which clients know the server; empty: any, with a token
  access::HeldLimits held;         ///< waits and event streams
  /// Limit on the live jobs of one token, and on their ranks together.
  std::int64_t jobs_per_token = 1000, ranks_per_token = std::int64_t{1} << 20U;
  /// Limit on the logs of one token's jobs and the blobs that they hold.
  std::int64_t stored_bytes_per_token = 2'000'000'000;
  double longest_wait_s =
      600;  ///< limit of a wait for a plan of /v1; each ends after a random part of it, at least half
  bool operator==(const ApiLimits&) const = default;
};

struct ApiOptions : ApiLimits {
  std::string version;
  std::string (*openapi)() = [] { return std::string(); };    ///< the file's text
  std::string (*dashboard)() = [] { return std::string(); };  ///< the page's text
  /// Runs a piece of work on the io thread after the present one; empty: at once.
  store::Post later;
  ApiHost* host = nullptr;  ///< null: large bodies are read at once
  std::shared_ptr<metrics::Metrics> metrics = std::make_shared<metrics::Metrics>();
  std::size_t metrics_jobs = 50;  ///< jobs with metrics of their own
};

/// Includes the headers that its status needs.
http::HttpResponse response_of(const Error& error);
/// The error for an identity that may not access the job.
Error out_of_reach(std::string_view job);

/// A change for the audit log.
struct Audited {
  ApiHost& host;
  std::string did, from;
  access::Identity who;
  void answered(int status) const;
};

/// How a request is answered: what a call that waits keeps of it.
struct Reply {
  http::Responder responder;
  std::shared_ptr<const Audited> audit;  ///< null for requests that change nothing

  void answer(std::string json) const { send(http::json_response(200, std::move(json))); }
  void fail(const Error& error) const;
  void send(http::HttpResponse response) const;
};

/// A matched request: the values of the path's placeholders, and the identity of the caller.
struct Call : Reply {
  http::HttpRequest request;
  access::Identity identity;
  std::vector<std::string> parts;  ///< values of {…} in the route's path, in order
};

class Api final {
 public:
  /// rank: same tokens as job, for frequent requests of every rank, which the audit log omits.
  /// all_jobs: reads what is about all jobs: not for tokens of jobs, which see only some.
  enum class Access { open, read, all_jobs, rank, job, infrastructure };
  /// none: of /v1, any parameter is an error. some: the handler says which it takes.
  enum class Query { none, some };
  /// small: at most kSmallBody bytes, read on the io thread. large: up to the server's limit.
  enum class Body { small, large };
  static constexpr std::size_t kSmallBody = std::size_t{64} << 10U;
  using Handler = void (Api::*)(Call);
  struct Route {
    std::string_view method, path;  ///< "/v1/jobs/{job}/ranks"; {job} is checked against the token
    Access access;
    Handler handler;
    Query query = Query::none;
    Body body = Body::small;
  };

  Api(service::Service& service, access::Tokens& tokens, const Clock& clock, ApiOptions options);
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;
  ~Api();
  void handle(http::HttpRequest request, http::Responder responder);
  /// The answer to a request that is rejected regardless of its body; nothing: read the body.
  std::optional<http::HttpResponse> refuse(const http::HttpRequest& head);
  /// Applies the limits per token and address, the longest wait, the hosts and the prices to later calls.
  void set_limits(const ApiLimits& limits);
  /// From now on /readyz reports that the server is not ready.
  void drain() { draining_ = true; }
  /// Requests that are answered after those of ranks: lists, dashboard data, metrics.
  static bool is_reader(const http::HttpRequest& request);
  /// Performs what has become due, and ends calls of expired tokens. Call it at next_wake().
  void tick();
  [[nodiscard]] std::optional<double> next_wake() const;

  static const std::vector<Route>& routes();

 private:
  /// Why the request is rejected, if it is; otherwise sets the caller's identity.
  std::optional<http::HttpResponse> refusal_of(const Route& route, const http::HttpRequest& request,
                                               access::Identity& who);
  std::optional<http::HttpResponse> refused(const Route& route, const http::HttpRequest& request,
                                            access::Identity& who);
  [[nodiscard]] bool is_audited(const Route& route) const;
  /// There must be a host.
  [[nodiscard]] std::shared_ptr<const Audited> audit_of(const http::HttpRequest& request, access::Identity who) const;
  /// Whether this identity may access the job; nothing: the job must be read first.
  std::optional<bool> reaches(const access::Identity& identity, const std::string& job);
  /// Jobs that the store could not read, with the error.
  using Unread = std::map<std::string, Error, std::less<>>;
  /// Reads those jobs that reaches() cannot decide.
  void read_jobs(const access::Identity& identity, const std::set<std::string>& jobs, std::function<void(Unread)> then);
  /// For the parts of a request whose jobs have been read.
  Status reached(const access::Identity& identity, const std::string& job, const Unread& unread);
  /// Reads the job if necessary, then calls the handler or rejects the request.
  void if_it_reaches(Call call, const std::string& job, std::function<void(Call)> handler);
  void wait_for_plan(const Call& call, jobs::WaitForPlan request,
                     std::function<std::string(const jobs::PlanAnswer&)> format);
  Result<jobs::RegisterJob> owned(const Call& call, jobs::RegisterJob request) const;
  /// too_large if the caller's jobs exceed their share of the database.
  [[nodiscard]] Status has_room(const access::Identity& identity) const;
  void end_expired();
  void log_wrong_tokens();
  /// Answers 429 if the caller has reached its limit of open calls of this kind.
  bool refuse_if_full(const Call& call, access::HeldCalls::Kind kind, std::size_t waits = 1) const;
  /// Keeps the call open until the client disconnects or the token becomes invalid; `end` releases the stream's
  /// resources.
  access::HeldCalls::Id keep_open(const Call& call, const std::function<void()>& end);
  std::shared_ptr<const std::string> text_of(const jobs::JobEvent& event);
  template <class T>
  work::Done<T> then(const Reply& reply, std::function<std::string(const T&)> format) const;
  work::Done<Ok> then_ok(const Reply& reply) const;

  /// The handler of a route with a JSON body: answers an invalid one, passes a valid one on to `handler`.
  template <auto handler>
  void with_body(Call call);
  /// Reads a large body on another thread.
  template <class T>
  void take_body(Call call, void (Api::*handler)(Call, T));

  // /v1
  void list_jobs(Call call);
  void job_changes(Call call);
  void register_job(Call call, jobs::RegisterJobBody body);
  void show_job(Call call);
  void list_ranks(Call call);
  void list_hosts(Call call);
  void history(Call call);
  void cluster_history(Call call);
  void register_rank(Call call);
  void register_rank_of(Call call, jobs::RegisterRank body);
  void next_plan(Call call);
  void drop_plan(Call call, jobs::DropPlan body);
  void see_shape(Call call, jobs::SeeShape body);
  void rank_ended(Call call, NoBody body);
  void report_iterations(Call call, jobs::ReportIterations body);
  void exchange(Call call, ParsedExchange asked);
  void carry_out(const Call& call, ParsedExchange asked, const Unread& unread);
  void finish_job(Call call, NoBody body);
  void delete_job(Call call);
  void upload_profile(Call call, jobs::ProfileBody body);
  void frontier(Call call);
  void timeline(Call call);
  void job_events(Call call);
  void all_events(Call call);
  void recent_events(Call call);
  void list_alerts(Call call);
  using RowsOfJob = std::vector<std::string> (*)(const jobs::JobView&);
  /// Answers with the rows of a page of live jobs, as JSON objects.
  void list_of_jobs(const Call& call, std::string_view list, RowsOfJob rows_of);
  void list_stragglers(Call call);
  void list_policies(Call call);
  void set_straggler(Call call, jobs::SetStraggler body);
  void set_job_straggler(Call call, jobs::SetStraggler body);
  void withdraw_straggler(Call call);
  void set_policy(Call call, PolicyBody body);
  void clear_policy(Call call);
  void set_tier(Call call, jobs::TierBody body);
  void show_site(Call call);
  void put_site(Call call, jobs::SiteDocument body);
  void clear_site(Call call);
  void site_power(Call call);
  void site_meter(Call call, std::vector<jobs::MeterReading> body);
  void admit_job(Call call, jobs::AdmissionRequest body);
  void release_admission(Call call);
  void site_proof(Call call);
  void site_forecast(Call call);
  void list_profiles(Call call);
  void show_profile(Call call);
  void put_profile(Call call, jobs::NamedProfile body);
  void remove_profile(Call call);
  void list_learned(Call call);
  void forget_learned(Call call);
  void list_tokens(Call call);
  void make_token(Call call, jobs::TokenBody body);
  void revoke_token(Call call);
  void openapi(Call call);
  // The existing protocols
  void legacy_info(Call call);
  void legacy_register_job(Call call, LegacyJob body);
  void legacy_register_rank(Call call, LegacyRank body);
  void artifact_register_rank(Call call, ArtifactRank body);
  void legacy_schedule(Call call);
  void legacy_result(Call call, LegacyResult body);
  // Operations
  void dashboard(Call call);
  void healthz(Call call);
  void readyz(Call call);
  void metrics(Call call);

  service::Service& service_;
  access::Tokens& tokens_;
  const Clock& clock_;
  ApiOptions options_;
  http::KnownHosts hosts_;
  /// Immutable text, with the entity tags of it plain and compressed. Plain, it is made for each request: browsers do
  /// not ask for that.
  struct Page {
    explicit Page(std::string (*text)());
    std::string (*plain)();
    std::shared_ptr<const std::string> compressed;
    std::string plain_tag, compressed_tag;
  };
  static http::HttpResponse response_with(const Page& page, const http::HttpRequest& request, std::string content_type);
  Page dashboard_;
  Page openapi_;
  access::HeldCalls held_;
  ListPages pages_;
  SiteChanges site_changes_;
  views::JobChanges changes_;
  views::EventStreams events_;
  jobs::SubscriptionId all_events_ = 0;  ///< while one of these streams is open
  /// The last event as all streams send it.
  struct {
    std::string job;
    std::int64_t sequence = 0;
    std::shared_ptr<const std::string> text;
  } last_sent_;
  WrongTokens wrong_tokens_;
  double next_expiry_s_ = 0;  ///< next check for expired tokens
  LargeBodies large_bodies_;
  std::mt19937_64 draw_{std::random_device()()};  ///< of the ends of waits
  bool draining_ = false;
};

template <class T>
work::Done<T> Api::then(const Reply& reply, std::function<std::string(const T&)> format) const {
  return [kept = std::make_shared<const Reply>(reply), format = std::move(format)](const Result<T>& done) {
    if (!done) return kept->fail(done.error());
    kept->answer(format(*done));
  };
}

}  // namespace perseus::routes
