#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <span>

#include "base/count_text.h"
#include "command_line/interrupt.h"
#include "io/formats/number.h"
#include "plan/slowdown.h"
#include "remote/server_call.h"
#include "serve/secret_file.h"
#include "server/openadr/event_follower.h"
#include "server/openadr/event_reporter.h"
#include "server/openadr/ven_registration.h"
#include "server/openadr/vtn_client.h"
#include "site/domain_limits.h"
#include "site/domain_powers.h"
#include "site/job_signals.h"
#include "site/site_actions.h"

namespace perseus::cli {
namespace {

constexpr double kMostWatts = 1e12;
constexpr double kShortestPoll_s = 1, kLongestPoll_s = 3600;
constexpr std::chrono::milliseconds kAnswer{20'000};

struct FollowArguments {
  openadr::VtnOptions vtn;
  openadr::FollowSettings settings;
  std::string secret_file, domain;
  std::vector<std::string> levels;
  double poll_s = 45;
  std::string client_name, report_scope = "read_ven_objects write_reports";
  std::string ven, ven_scope = "read_ven_objects write_vens";
  std::optional<double> price_above, ghg_above;
  std::string slowdown, selector;
  bool once = false, dry_run = false, no_reports = false;
};

/// "2=600000"
Status add_level(openadr::FollowSettings& settings, const std::string& text) {
  const std::size_t equals = text.find('=');
  const auto level = formats::number_in<int>(std::string_view(text).substr(0, equals));
  const auto watts = equals == std::string::npos
                         ? std::nullopt
                         : formats::number_in<double>(std::string_view(text).substr(equals + 1));
  if (!level || *level < 1 || *level >= openadr::kLevels || !watts || !(*watts >= 0 && *watts <= kMostWatts)) {
    return Error{ErrorCode::usage, fmt::format("--level: '{}'; allowed: LEVEL=WATTS, a level from 1 to 3 and 0 to 1e12 "
                                               "watts, for example 2=600000",
                                               text)};
  }
  std::optional<Watts>& limit = settings.levels[static_cast<std::size_t>(*level)];
  if (limit) return Error{ErrorCode::usage, fmt::format("--level: '{}'; allowed: each level once", text)};
  limit = Watts(*watts);
  return Ok{};
}

Result<SignalPolicy> signal_of(const FollowArguments& arguments) {
  SignalPolicy policy;
  if (!arguments.price_above && !arguments.ghg_above) return policy;
  const auto slowdown = slowdown_of(arguments.slowdown);
  if (!slowdown) return Error{slowdown.error().code, "--slowdown: " + slowdown.error().message};
  policy.payload = arguments.price_above ? "PRICE" : "GHG";
  policy.threshold = arguments.price_above ? *arguments.price_above : *arguments.ghg_above;
  policy.slowdown = 1 + *slowdown;
  policy.selector = arguments.selector;
  return policy;
}

Result<openadr::FollowSettings> settings_of(const FollowArguments& arguments) {
  openadr::FollowSettings settings = arguments.settings;
  if (arguments.price_above) settings.signal = "PRICE";
  if (arguments.ghg_above) settings.signal = "GHG";
  for (const std::string& level : arguments.levels) {
    if (Status added = add_level(settings, level); !added) return added.error();
  }
  return settings;
}

/// A client's secret over plain HTTP only to this machine.
Status check_url(const std::string& option, const std::string& text) {
  const auto url = http::parse_url(text);
  if (!url) return Error{ErrorCode::usage, option + ": " + url.error().message};
  if (http::without_user(text) != text) {
    return Error{ErrorCode::usage, option + ": the URL contains a user; allowed: --client-id and --client-secret-file"};
  }
  if (url->tls || http::is_loopback_host(url->address.host)) return Ok{};
  return Error{ErrorCode::usage, fmt::format("{}: {}: tokens would be readable on the network; allowed: https, or http "
                                             "to localhost",
                                             option, text)};
}

Result<openadr::VtnOptions> vtn_of(const FollowArguments& arguments) {
  openadr::VtnOptions vtn = arguments.vtn;
  if (Status right = check_url("--openadr", vtn.peer.url); !right) return right.error();
  if (!vtn.token_url.empty()) {
    if (Status right = check_url("--token-url", vtn.token_url); !right) return right.error();
  }
  auto secret = read_secret(arguments.secret_file);
  if (!secret) return secret.error();
  vtn.client_secret = *std::move(secret);
  vtn.peer.timeout = kAnswer;
  return vtn;
}

Error of_server(const Error& error) { return {error.code, "server: " + error.message}; }

/// Answers the reports that events ask for, with a token of its own: a utility that refuses its scope still has its
/// limits followed.
class DomainReports final : private openadr::ReporterHost {
 public:
  DomainReports(openadr::VtnOptions vtn, const http::HttpPeer& server, const FollowArguments& arguments,
                const Clock& wall, const Clock& unstepped)
      : server_(server),
        domain_(arguments.domain),
        wall_(wall),
        client_(std::move(vtn), unstepped),
        reporter_(options_of(arguments), {&client_, this, &unstepped}) {}
  void report(std::span<const openadr::SeenEvent> events, double now_s) { reporter_.report(events, now_s); }

 private:
  static openadr::ReporterOptions options_of(const FollowArguments& arguments) {
    const std::string& ven = arguments.ven.empty() ? arguments.vtn.client_id : arguments.ven;
    const std::string& name = arguments.client_name.empty() ? ven : arguments.client_name;
    return {{name, arguments.domain}, arguments.vtn.client_id, arguments.vtn.targets};
  }

  Result<std::vector<openadr::DrawnStep>> powers(double from_s, double to_s) override {
    auto powers = powers_of_domain(server_, domain_, from_s, to_s, wall_.now_s());
    return powers ? std::move(powers) : of_server(powers.error());
  }
  void log(const std::string& line) override { note(line); }

  http::HttpPeer server_;
  std::string domain_;
  const Clock& wall_;
  openadr::VtnClient client_;
  openadr::EventReporter reporter_;
};

/// Registers this client before each poll until it is done; the registration, too, keeps no limit from being followed.
class Registration {
 public:
  Registration(openadr::VtnOptions vtn, const FollowArguments& arguments, const Clock& unstepped)
      : client_(std::move(vtn), unstepped), registration_(client_, arguments.ven, arguments.domain) {}

  void attempt() {
    if (registration_.is_done()) return;
    const Status done = registration_.register_once();
    const std::string state = done ? "" : "registration: " + done.error().message;
    if (done) note("registered, or found");
    if (!done && state != state_) note(state + "; tried again at each poll");
    state_ = state;
  }

 private:
  openadr::VtnClient client_;
  openadr::VenRegistration registration_;
  std::string state_;
};

/// Sends a utility's prices or emissions to the jobs of a server; what goes wrong is a line, once until it changes.
class FollowedSignals {
 public:
  FollowedSignals(SignalPolicy policy, http::HttpPeer server, std::string seed)
      : policy_(std::move(policy)), server_(std::move(server)), seed_(std::move(seed)) {}

  void send(std::span<const openadr::SeenEvent> events,
            const std::map<std::string, openadr::PayloadUnits>& program_units, double now_s) {
    if (policy_.payload.empty()) return;
    const auto signal = openadr::signal_steps(events, program_units, policy_.payload, seed_, now_s);
    for (const openadr::NotFollowed& one : signal.not_followed) log_once(one.text);
    const auto changed =
        set_job_signals(server_, policy_, signal.steps, [this](const std::string& line) { log_once(line); });
    const std::string state = changed ? "" : of_server(changed.error()).message;
    if (state != state_ && !changed) note(state + "; jobs keep the " + policy_.payload + " that was sent last");
    state_ = state;
    if (changed && *changed > 0) {
      note(fmt::format("sent {} to {}: {}", policy_.payload, count_text(*changed, "job"),
                       count_text(signal.steps.size(), "step")));
    }
  }

 private:
  void log_once(const std::string& line) {
    constexpr std::size_t most = 10'000;
    if (logged_.size() >= most) logged_.clear();
    if (logged_.insert(line).second) note(line);
  }

  SignalPolicy policy_;
  http::HttpPeer server_;
  std::string seed_, state_;
  std::set<std::string> logged_;
};

/// The domain's limits at the server, or with --dry-run on paper.
class DomainLimits final : public openadr::FollowerHost {
 public:
  DomainLimits(http::HttpPeer server, const FollowArguments& arguments, FollowedSignals& signals,
               DomainReports& reports)
      : server_(std::move(server)), arguments_(arguments), signals_(signals), reports_(reports) {}

  Status send(const openadr::SentLimits& limits) override {
    if (arguments_.dry_run) {
      print(limits_json(limits.steps) + "\n");
      printed_ = limits;
      return Ok{};
    }
    const Status sent = replace_limits(server_, arguments_.domain, limits);
    return sent ? sent : of_server(sent.error());
  }
  /// A dry run without a server begins without limits.
  Result<openadr::SentLimits> received() override {
    if (printed_) return *printed_;
    const auto there = limits_of_domain(server_, arguments_.domain);
    if (!there && arguments_.dry_run) return openadr::SentLimits{};
    return there ? there : of_server(there.error());
  }

  void polled(std::span<const openadr::SeenEvent> events,
              const std::map<std::string, openadr::PayloadUnits>& program_units, double now_s) override {
    if (arguments_.dry_run) return;
    signals_.send(events, program_units, now_s);
    if (!arguments_.no_reports) reports_.report(events, now_s);
  }
  void log(const std::string& line) override { note(last_line_ = line); }
  double random() override { return std::uniform_real_distribution<double>(0, 1)(engine_); }
  [[nodiscard]] const std::string& last_line() const { return last_line_; }

 private:
  http::HttpPeer server_;
  const FollowArguments& arguments_;
  FollowedSignals& signals_;
  DomainReports& reports_;
  std::optional<openadr::SentLimits> printed_;
  std::string last_line_;
  std::mt19937_64 engine_{std::random_device{}()};
};

Result<int> run_site_follow(http::HttpPeer server, const FollowArguments& arguments) {
  const auto settings = settings_of(arguments);
  if (!settings) return settings.error();
  auto signal = signal_of(arguments);
  if (!signal) return signal.error();
  auto vtn = vtn_of(arguments);
  if (!vtn) return vtn.error();
  std::signal(SIGPIPE, SIG_IGN);
  server.timeout = kAnswer;
  const SystemClock wall;
  const UnsteppedClock unstepped;
  openadr::VtnOptions of_reports = *vtn;
  of_reports.scope = arguments.report_scope;
  openadr::VtnClient source(*std::move(vtn), unstepped);
  openadr::VtnOptions of_registration = of_reports;
  of_registration.scope = arguments.ven_scope;
  Registration registration(std::move(of_registration), arguments, unstepped);
  DomainReports reports(std::move(of_reports), server, arguments, wall, unstepped);
  FollowedSignals signals(*std::move(signal), server, arguments.vtn.client_id);
  DomainLimits limits(server, arguments, signals, reports);
  const openadr::FollowerParts parts{&source, &limits, &wall, &unstepped};
  openadr::FollowerOptions options{*settings, arguments.vtn.client_id, arguments.poll_s};
  if (arguments.dry_run) options.sent_word = "would send";
  options.first_retry_s = std::min(options.first_retry_s, arguments.poll_s);
  openadr::EventFollower follower(options, parts);
  {
    const InterruptGuard guard;
    while (!InterruptGuard::interrupted()) {
      if (!arguments.ven.empty() && !arguments.dry_run && follower.polls_now()) registration.attempt();
      const double wait_s = follower.step();
      if (arguments.once) break;
      InterruptGuard::wait(Seconds(wait_s));
    }
  }
  if (arguments.once && !follower.is_current()) return Error{ErrorCode::unavailable, limits.last_line()};
  if (arguments.once && !follower.unread().empty()) return Error{ErrorCode::invalid_input, follower.unread()};
  if (!arguments.once) note("stopped: the server keeps the limits that were sent last");
  return 0;
}

void add_event_options(CLI::App& follow, FollowArguments& arguments) {
  add_value(follow, "--openadr URL", arguments.vtn.peer.url, "URL of the utility's OpenADR 3 server (VTN)")->required();
  add_value(follow, "--client-id ID", arguments.vtn.client_id, "Client ID that the utility has issued")->required();
  add_value(follow, "--client-secret-file FILE", arguments.secret_file, "File with the client's secret on one line")
      ->required();
  add_default(follow, "--scope SCOPE", arguments.vtn.scope, "OAuth2 scope of the token");
  add_value(follow, "--token-url URL", arguments.vtn.token_url, "Token endpoint (default: the one that the VTN names)");
  add_value(follow, "--openadr-ca FILE", arguments.vtn.peer.ca_file,
            "Certificates to trust for the VTN instead of the system's (PEM)");
  add_value(follow, "--program NAME", arguments.vtn.program,
            "Follow only events of this program (default: of all programs)");
  add_value(follow, "--target T", arguments.vtn.targets, "Read events with this target too; repeatable");
  add_default(follow, "--poll S", arguments.poll_s,
              "Mean time between polls; each is up to a third shorter or longer, in seconds",
              number_within(kShortestPoll_s, kLongestPoll_s, "s"));
}

void add_signal_options(CLI::App& follow, FollowArguments& arguments) {
  constexpr double most = 1e9;
  auto* price = follow.add_option("--price-above", arguments.price_above,
                                  "Price of a kWh, of PRICE events, above which jobs may be slower; with --slowdown");
  auto* ghg =
      follow.add_option("--ghg-above", arguments.ghg_above,
                        "Emissions in g per kWh, of GHG events, above which jobs may be slower; with --slowdown");
  price->type_name("V")->check(number_within(-most, most, ""));
  ghg->type_name("G")->check(number_within(-most, most, ""))->excludes(price);
  auto* slowdown = add_slowdown_option(follow, arguments.slowdown);
  price->needs(slowdown);
  ghg->needs(slowdown);
  add_value(follow, "--selector LABELS", arguments.selector,
            "Give prices or emissions only to jobs with these labels, such as team=vision (default: all jobs)");
}

void add_report_options(CLI::App& follow, FollowArguments& arguments) {
  add_value(follow, "--ven NAME", arguments.ven,
            "Register this client under this name (VEN), and the domain as its resource, if they are not there");
  add_default(follow, "--ven-scope SCOPE", arguments.ven_scope, "OAuth2 scope of the token for the registration");
  follow.add_flag("--no-reports", arguments.no_reports,
                  "Do not send the reports of usage and demand that events ask for");
  add_value(follow, "--client-name NAME", arguments.client_name,
            "Name of this client in reports, at most 128 bytes (default: that of --ven, or the client ID)");
  add_default(follow, "--report-scope SCOPE", arguments.report_scope, "OAuth2 scope of the token for reports");
}

void add_watt_options(CLI::App& follow, FollowArguments& arguments) {
  const CLI::Validator watts = number_within(0, kMostWatts, "W");
  add_value(follow, "--domain DOMAIN", arguments.domain, "Domain of the site that the limits apply to")->required();
  add_value(follow, "--level LEVEL=W", arguments.levels,
            "Limit in watts at level 1, 2 or 3 of SIMPLE events; repeatable");
  add_value(follow, "--emergency W", arguments.settings.emergency, "Limit in watts during ALERT_GRID_EMERGENCY", watts);
  add_value(follow, "--baseline W", arguments.settings.baseline,
            "Power that DISPATCH_SETPOINT_RELATIVE refers to, in watts", watts);
  add_value(follow, "--default-limit W", arguments.settings.default_limit,
            "Limit in watts without a capacity limit or subscription (default: no limit)", watts);
  follow.add_flag("--once", arguments.once, "Poll and send once, then exit");
  follow.add_flag("--dry-run", arguments.dry_run, "Print the limits as JSON instead of sending them");
}

}  // namespace

void add_site_follow(CLI::App& group, Command& command) {
  auto* follow =
      group.add_subcommand("follow", "Follow a utility's OpenADR 3 events: send them to the server as limits");
  const auto arguments = std::make_shared<FollowArguments>();
  arguments->vtn.scope = "read_targets";
  add_event_options(*follow, *arguments);
  add_watt_options(*follow, *arguments);
  add_signal_options(*follow, *arguments);
  add_report_options(*follow, *arguments);
  const auto server = add_server_options(*follow);
  add_json_flag(*follow, command);
  set_run(*follow, command, [server, arguments] { return run_site_follow(*server, *arguments); });
  follow->footer(
      help_footer(kAllErrors,
                  "  perseus site follow --openadr https://vtn.example/openadr3/3.1.0 --client-id site-7 \\\n"
                  "    --client-secret-file /etc/perseus/openadr.secret --domain hall --level 1=900000\n"));
}

}  // namespace perseus::cli
