#include "server/relay/relay.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <charconv>
#include <chrono>
#include <utility>

#include "base/json_writer.h"
#include "io/formats/json_reader.h"
#include "io/formats/number.h"

namespace perseus::relay {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int kExchangeThreads = 4, kDirectThreads = 2;
constexpr seconds kDirectIdle{5};
constexpr milliseconds kEndWaitsEvery{500};
/// Waits for ranks that just got a plan to request the next one, so that they share an exchange.
constexpr milliseconds kGathering{30};
constexpr std::size_t kMostWaits = 512,
                      kMostPosted = 256;  ///< of an exchange (ranks and reports each); the server accepts 1024
constexpr std::size_t kMostPostedBytes = std::size_t{4} << 20U;

milliseconds in_ms(double time_s) { return milliseconds(static_cast<std::int64_t>(time_s * 1e3)); }

bool is_number(std::string_view text) {
  constexpr std::size_t most_digits = 15;
  return !text.empty() && text.size() <= most_digits &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string target_of(const http::HttpRequest& request) {
  std::string target;
  for (const std::string& segment : request.segments) target += "/" + http::percent_encode(segment);
  char before = '?';
  for (const auto& [name, value] : request.query) {
    target += std::exchange(before, '&') + http::percent_encode(name) + "=" + http::percent_encode(value);
  }
  return target;
}

std::string header_of(const http::HttpRequest& request, std::string_view name) {
  return std::string(request.header(name).value_or(""));
}

http::HttpCall call_of(const http::HttpRequest& request) {
  http::HttpCall call{request.method, target_of(request), request.body, "application/json",
                      header_of(request, "Authorization")};
  if (const auto type = request.header("Content-Type")) call.content_type = *type;
  call.idempotency_key = header_of(request, "Idempotency-Key");
  return call;
}

/// Of text that is_number().
std::int64_t integer_of(std::string_view digits) { return formats::number_in<std::int64_t>(digits).value_or(0); }

std::string unchanged(const std::string& rank) {
  return json_object([&](JsonWriter& f) {
    f.always("rank", integer_of(rank));
    f.always("unchanged", true);
  });
}

/// True for an "unchanged" answer; the rank must process any other one.
bool is_unchanged(const http::HttpReply& reply) {
  if (reply.status != 200) return false;
  const auto document = formats::parse_json(reply.body, "answer");
  if (!document) return false;
  formats::JsonFields fields(document->root());
  const auto unchanged = fields.optional("unchanged");
  if (!unchanged) return false;
  const auto is = unchanged->boolean();
  return is && *is;
}

/// True for a report of a profiling window, which is sent at once: training runs at the highest clock until the next
/// window arrives.
bool is_of_a_window(const std::string& body) {
  const auto document = formats::parse_json(body, "body");
  if (!document) return true;  // the server reports the error
  formats::JsonFields fields(document->root());
  return fields.optional("window").has_value() || fields.optional("missed").has_value();
}

http::HttpReply part_of(const formats::JsonReader& part) {
  formats::JsonFields fields(part);
  http::HttpReply reply;
  reply.status = fields.integer("status");
  reply.content_type = "application/json";
  reply.body = fields.string("body");
  if (fields.error()) {
    const http::HttpResponse unread = http::error_response(502, "the server's answer cannot be read");
    return {unread.status, unread.content_type, *unread.body};
  }
  return reply;
}

http::HttpResponse response_of(const Result<http::HttpReply>& reply) {
  constexpr int unavailable = 503;
  http::HttpResponse response = reply ? http::json_response(reply->status, reply->body)
                                      : http::error_response(unavailable, reply.error().message);
  if (reply) response.content_type = reply->content_type;
  if (response.status == unavailable) response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace

Relay::Relay(boost::asio::io_context& io, RelayOptions options) : io_(io), options_(std::move(options)), timer_(io) {
  options_.server.timeout = in_ms(options_.exchange_s + options_.answer_s);
  for (int i = 0; i < kExchangeThreads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { exchange(stop); });
  }
  for (int i = 0; i < kDirectThreads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { pass_on_directly(stop); });
  }
  end_waits();
}

Relay::~Relay() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

// ---- Requests of ranks

void Relay::handle(http::HttpRequest request, http::Responder responder) {
  if (auto refusal = http::refused_across_sites(request, hosts_)) return responder.send(std::move(*refusal));
  const std::vector<std::string>& path = request.segments;
  const bool of_a_job = path.size() >= 2 && path[0] == "v1" && path[1] == "jobs";
  const std::string_view last = path.empty() ? std::string_view() : path.back();
  if (request.path == "/healthz") {
    return responder.send(http::json_response(200, json_object([](JsonWriter& f) { f.always("status", "ok"); })));
  }
  const bool carried = of_a_job && (request.method == "POST" || request.method == "PUT" ||
                                    (request.method == "GET" && (last == "plan" || path.size() == 3)));
  if (!carried) {
    return responder.send(http::error_response(
        404, fmt::format("a relay forwards only the ranks' requests to /v1/jobs, not {} {}: send it to the server",
                         request.method, request.path)));
  }
  constexpr std::size_t plan_path = 6;  // v1/jobs/J/ranks/R/plan
  if (request.method == "GET" && last == "plan" && path.size() == plan_path && is_number(path[4])) {
    return wait_for_plan(std::string(path[2]), std::string(path[4]), request, std::move(responder));
  }
  http::HttpCall call = call_of(request);
  const bool is_report = last == "iterations" && path.size() == 4 && !is_of_a_window(request.body);
  // Answers of an exchange always include plans: a rank that does not request its plan is passed through.
  const bool is_rank =
      last == "ranks" && path.size() == 4 && request.query.size() == 1 && request.parameter("plan") == "true";
  if (request.method == "POST" && (is_report || is_rank)) {
    const std::lock_guard lock(mutex_);
    Group& group = group_of(call.authorization);
    // A registration does not wait for an exchange that waits for plans.
    if (is_report || !group.asking) {
      auto& posted = is_rank ? group.ranks : group.reports;
      posted.push_back({std::string(path[2]), std::move(request.body), std::move(responder)});
      changed_.notify_all();
      return;
    }
  }
  pass_on(std::move(call), responder);
}

/// Checks at once whether there is a plan, and parks the wait here if not.
void Relay::wait_for_plan(std::string job, std::string rank, const http::HttpRequest& request,
                          http::Responder responder) {
  Wait wait{std::move(job), std::move(rank), "0", "", "", std::nullopt, responder, false};
  bool plain = true;
  double wait_s = -1;
  for (const auto& [name, value] : request.query) {
    if (name == "have" && is_number(value)) {
      wait.have = value;
    } else if (name == "iteration" && is_number(value)) {
      wait.iteration = value;
    } else if (name == "epoch" && is_number(value)) {
      wait.epoch = value;
    } else if (name == "wait_s" &&
               std::from_chars(value.data(), value.data() + value.size(), wait_s).ec == std::errc{} && wait_s >= 0) {
      wait.until = steady_clock::now() + in_ms(std::min(wait_s, 1e6));
    } else {
      plain = false;
    }
  }
  if (!plain || wait_s == 0) return pass_on(call_of(request), responder);
  const std::string authorization = header_of(request, "Authorization");
  if (wait.have != "0") return park(authorization, std::move(wait));
  // The first wait would otherwise queue behind an exchange in progress.
  http::HttpCall call{
      "GET", fmt::format("/v1/jobs/{}/ranks/{}/plan?have=0&wait_s=0", http::percent_encode(wait.job), wait.rank), "",
      "", authorization};
  if (!wait.iteration.empty()) call.target += "&iteration=" + wait.iteration;
  if (!wait.epoch.empty()) call.target += "&epoch=" + wait.epoch;
  ask_directly({std::move(call), responder, std::move(wait)});
}

void Relay::park(const std::string& authorization, Wait wait) {
  const std::uint64_t id = ++last_wait_;
  wait.responder.on_closed([this, authorization, id, job = wait.job, rank = wait.rank, epoch = wait.epoch](bool ended) {
    if (!take_wait(authorization, id) || !ended) return;
    http::HttpCall call{"POST", fmt::format("/v1/jobs/{}/ranks/{}/ended", http::percent_encode(job), rank), "", "",
                        authorization};
    if (!epoch.empty()) call.target += "?epoch=" + epoch;
    ask_directly({std::move(call), std::nullopt, std::nullopt});
  });
  const std::lock_guard lock(mutex_);
  group_of(authorization).waits.emplace(id, std::move(wait));
  changed_.notify_all();
}

/// Call this and the next ones with the lock held.
Relay::Group& Relay::group_of(const std::string& authorization) {
  return groups_.try_emplace(authorization, Group{{}, {}, {}, false, {}, http::HttpConnection(options_.server)})
      .first->second;
}

void Relay::forget_if_idle(Groups::iterator group) {
  const Group& of = group->second;
  if (of.waits.empty() && of.ranks.empty() && of.reports.empty() && !of.asking) groups_.erase(group);
}

std::optional<http::Responder> Relay::take_wait(const std::string& authorization, std::uint64_t wait) {
  const std::lock_guard lock(mutex_);
  const auto group = groups_.find(authorization);
  if (group == groups_.end()) return std::nullopt;
  const auto found = group->second.waits.find(wait);
  if (found == group->second.waits.end()) return std::nullopt;
  std::optional<http::Responder> responder = std::move(found->second.responder);
  group->second.waits.erase(found);
  return responder;
}

void Relay::leave_waiting(const std::string& authorization, std::uint64_t wait) {
  const std::lock_guard lock(mutex_);
  const auto group = groups_.find(authorization);
  if (group == groups_.end()) return;
  if (const auto found = group->second.waits.find(wait); found != group->second.waits.end()) {
    found->second.left_waiting = true;
  }
}

void Relay::pass_on(http::HttpCall call, const http::Responder& responder) {
  ask_directly({std::move(call), responder, std::nullopt});
}

void Relay::ask_directly(Direct direct) {
  const std::lock_guard lock(mutex_);
  directs_.push_back(std::move(direct));
  changed_.notify_all();
}

void Relay::answered(Direct direct, const Result<http::HttpReply>& reply) {
  if (direct.wait && reply && is_unchanged(*reply)) return park(direct.call.authorization, *std::move(direct.wait));
  heard(reply);
  if (direct.responder) direct.responder->send(response_of(reply));
}

/// Answers the waits whose time is over and that the server has left waiting, which it does only without a budget. An
/// "unchanged" of the relay alone would renew the lease of a budget.
void Relay::end_waits() {
  std::vector<std::pair<std::string, http::Responder>> over;
  {
    const std::lock_guard lock(mutex_);
    const Time now = steady_clock::now();
    for (auto& [authorization, group] : groups_) {
      std::erase_if(group.waits, [&](auto& entry) {
        const Wait& wait = entry.second;
        if (!wait.left_waiting || !wait.until || *wait.until > now) return false;
        over.emplace_back(wait.rank, wait.responder);
        return true;
      });
    }
  }
  for (const auto& [rank, responder] : over) responder.send(http::json_response(200, unchanged(rank)));
  timer_.expires_after(kEndWaitsEvery);
  timer_.async_wait([this](const boost::system::error_code& stopped) {
    if (!stopped) end_waits();
  });
}

/// Logs once that the server does not answer, and once that it answers again.
void Relay::heard(const Result<http::HttpReply>& reply) {
  if (std::exchange(silent_, !reply) == !reply || !options_.log) return;
  options_.log(reply ? http::without_user(options_.server.url) + " answers again" : reply.error().message);
}

// ---- One request for all

void Relay::exchange(const std::stop_token& stop) {
  while (true) {
    std::unique_lock lock(mutex_);
    auto group = groups_.end();
    changed_.wait(lock, stop, [&] { return (group = next_group()) != groups_.end(); });
    if (stop.stop_requested()) return;
    group->second.asking = true;  // so the entry stays valid
    group->second.asked_at = steady_clock::now();
    const std::string authorization = group->first;
    changed_.wait_for(lock, stop, kGathering, [] { return false; });
    Asked asked = next_asked(group->second, options_.exchange_s);
    lock.unlock();
    http::HttpCall call{"POST", "/v1/exchange", asked.body};
    call.authorization = authorization;
    const Result<http::HttpReply> reply = group->second.connection.call(call, stop);
    if (stop.stop_requested()) return;
    boost::asio::post(io_, [this, authorization, asked = std::move(asked), reply]() mutable {
      exchanged(authorization, std::move(asked), reply);
    });
  }
}

/// The group that has waited longest.
Relay::Groups::iterator Relay::next_group() {
  auto next = groups_.end();
  for (auto group = groups_.begin(); group != groups_.end(); ++group) {
    const Group& of = group->second;
    if (of.asking || (of.waits.empty() && of.ranks.empty() && of.reports.empty())) continue;
    if (next == groups_.end() || of.asked_at < next->second.asked_at) next = group;
  }
  return next;
}

namespace {

/// As in the request of a WaitForPlan.
template <class Wait>
auto members_of(const Wait& wait) {
  return [&wait](JsonWriter& f) {
    f.always("job", wait.job);
    f.always("rank", integer_of(wait.rank));
    f.always("have", integer_of(wait.have));
    if (!wait.iteration.empty()) f.always("iteration", integer_of(wait.iteration));
    if (!wait.epoch.empty()) f.always("epoch", integer_of(wait.epoch));
  };
}

}  // namespace

Relay::Asked Relay::next_asked(Group& group, double exchange_s) {
  Asked asked;
  std::size_t bytes = 0;
  const auto take = [&](std::deque<Posted>& from, std::vector<Posted>& to) {
    std::vector<std::string> parts;
    while (!from.empty() && to.size() < kMostPosted && bytes < kMostPostedBytes) {
      parts.push_back(json_object([&](JsonWriter& f) {
        f.always("job", from.front().job);
        f.always("body", from.front().body);
      }));
      bytes += parts.back().size();
      to.push_back(std::move(from.front()));
      from.pop_front();
    }
    return parts;
  };
  const auto list = [](const std::vector<std::string>& parts) {
    return JsonList{parts, [](const std::string& part) { return JsonRaw{part}; }};
  };
  asked.body = json_object([&](JsonWriter& f) {
    // Registrations are not delayed by ranks that wait.
    f.always("wait_s", group.ranks.empty() ? exchange_s : 0);
    if (!group.ranks.empty()) f.always("ranks", list(take(group.ranks, asked.ranks)));
    f.always("reports", list(take(group.reports, asked.reports)));
    std::vector<const Wait*> waits;
    for (const auto& [id, wait] : group.waits) {
      if (waits.size() == kMostWaits) break;
      asked.waits.push_back(id);
      waits.push_back(&wait);
    }
    f.always("waits", JsonList{waits, [](const Wait* wait) { return JsonObject{members_of(*wait)}; }});
  });
  return asked;
}

void Relay::exchanged(const std::string& authorization, Asked asked, const Result<http::HttpReply>& reply) {
  heard(reply);
  std::vector<std::optional<http::HttpReply>> ranks(asked.ranks.size()), reports(asked.reports.size()),
      waits(asked.waits.size());
  Result<http::HttpReply> other = reply;  // for parts without an answer
  if (reply && reply->status == 200) {
    other = Error{ErrorCode::unavailable, fmt::format("{}: invalid answer", http::without_user(options_.server.url))};
    if (const auto document = formats::parse_json(reply->body, "answer")) {
      formats::JsonFields fields(document->root());
      const auto take = [&](const formats::JsonReader& parts, std::vector<std::optional<http::HttpReply>>& replies) {
        std::size_t next = 0;
        (void)parts.for_each([&](const formats::JsonReader& part) -> Status {
          if (next < replies.size()) replies[next++] = part_of(part);
          return Ok{};
        });
      };
      if (const auto list = fields.optional("ranks")) take(*list, ranks);
      take(fields.value("reports"), reports);
      const Status read = fields.value("waits").for_each([&](const formats::JsonReader& part) -> Status {
        const auto wait = static_cast<std::size_t>(formats::JsonFields(part).integer("wait"));
        if (wait < waits.size()) waits[wait] = part_of(part);
        return Ok{};
      });
      if (read && !fields.error()) other = http::HttpReply{};
    }
  }
  const bool waits_go_on = other && other->status == 0;
  const auto answer = [&](const std::vector<Posted>& posted,
                          const std::vector<std::optional<http::HttpReply>>& replies) {
    for (std::size_t i = 0; i < posted.size(); ++i) {
      posted[i].responder.send(response_of(replies[i] ? Result<http::HttpReply>(*replies[i]) : other));
    }
  };
  answer(asked.ranks, ranks);
  answer(asked.reports, reports);
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (!waits[i] && waits_go_on) {
      leave_waiting(authorization, asked.waits[i]);
      continue;
    }
    if (const auto responder = take_wait(authorization, asked.waits[i])) {
      responder->send(response_of(waits[i] ? Result<http::HttpReply>(*waits[i]) : other));
    }
  }
  const std::lock_guard lock(mutex_);
  if (const auto group = groups_.find(authorization); group != groups_.end()) {
    group->second.asking = false;
    forget_if_idle(group);
  }
  changed_.notify_all();
}

// ---- Direct requests

void Relay::pass_on_directly(const std::stop_token& stop) {
  http::HttpConnection connection(options_.server);
  while (true) {
    std::unique_lock lock(mutex_);
    const auto there_are = [&] { return !directs_.empty(); };
    if (!changed_.wait_for(lock, stop, kDirectIdle, there_are) && !stop.stop_requested()) {
      connection.close();
      changed_.wait(lock, stop, there_are);
    }
    if (stop.stop_requested()) return;
    Direct direct = std::move(directs_.front());
    directs_.pop_front();
    lock.unlock();
    Result<http::HttpReply> reply = connection.call(direct.call, stop);
    if (stop.stop_requested()) return;
    boost::asio::post(io_, [this, direct = std::move(direct), reply = std::move(reply)]() mutable {
      answered(std::move(direct), reply);
    });
  }
}

}  // namespace perseus::relay
