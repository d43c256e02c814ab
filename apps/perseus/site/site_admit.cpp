#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error_table.h"
#include "base/json_writer.h"
#include "command_line/command.h"
#include "command_line/interrupt.h"
#include "io/formats/json_reader.h"
#include "remote/server_action.h"
#include "remote/server_call.h"
#include "server/jobs/site_admission.h"
#include "site/site_actions.h"

namespace perseus::cli {
namespace {

constexpr double kAskAgain_s = 2, kLongestWait_s = 7 * 86400;
constexpr double kMostAcceleratorWatts = 1e5;
constexpr std::int64_t kMostAccelerators = 1 << 20;
/// Of an answer that is not an error, by the meaning of its exit code.
constexpr ErrorCode kWaits = ErrorCode::conflict, kRefused = ErrorCode::too_large;

struct AdmitArguments {
  jobs::AdmissionRequest request;
  double wait_s = 0;
};

/// What a server answers, as far as it decides about the next step.
struct AdmissionAnswer {
  std::string state, domain, missing;
  bool ready = false;
  double power_w = 0;
  std::optional<double> from_s, short_from_s, replaced_w;
};

Result<AdmissionAnswer> answer_in(const std::string& body) {
  const auto document = formats::parse_json(body, "POST /v1/site/admission");
  if (!document) return Error{ErrorCode::unavailable, document.error().message};
  formats::JsonFields fields(document->root());
  const auto number = [&](std::string_view member) {
    return fields.optional(member) ? std::optional(fields.number(member)) : std::nullopt;
  };
  AdmissionAnswer answer;
  answer.state = fields.string("state");
  answer.domain = fields.string("domain");
  answer.power_w = fields.number("power_w");
  answer.from_s = number("from_s");
  answer.short_from_s = number("short_from_s");
  answer.replaced_w = number("replaced_w");
  const auto ready = fields.optional("ready");
  const auto is_ready = ready ? ready->boolean() : Result<bool>(false);
  answer.ready = is_ready && *is_ready;
  const Status read = fields.value("missing").for_each([&](const formats::JsonReader& entry) -> Status {
    formats::JsonFields one(entry);
    answer.missing += fmt::format("{}'{}' lacks {:.6g} W", answer.missing.empty() ? "" : ", ", one.string("domain"),
                                  one.number("missing_w"));
    return one.error() ? Status(*one.error()) : Status(Ok{});
  });
  const auto error = fields.error() ? fields.error() : read ? std::nullopt : std::optional(read.error());
  if (error) return Error{ErrorCode::unavailable, error->message};
  return answer;
}

/// Without what changes from one request to the next.
std::string line_of(const AdmissionAnswer& answer, bool dry_run) {
  if (answer.state == "refused") {
    return fmt::format("refused: {:.6g} W do not fit even without any other job: {}", answer.power_w, answer.missing);
  }
  if (answer.state != "admitted") {
    const std::string when = answer.from_s
                                 ? fmt::format("the announced limits leave enough from {:.0f} on", *answer.from_s)
                                 : "it fits when other jobs have ended";
    return fmt::format("waits: {}; {}", answer.missing, when);
  }
  const std::string watts = fmt::format("{:.6g} W of '{}'", answer.power_w, answer.domain);
  std::string later =
      answer.short_from_s ? fmt::format("; from {:.0f} on, {}", *answer.short_from_s, answer.missing) : "";
  if (answer.replaced_w)
    later += fmt::format("; this replaces the {:.6g} W reserved for that name", *answer.replaced_w);
  if (dry_run) {
    const std::string_view when = answer.ready ? "at once" : "once others gave up";
    return fmt::format("would be admitted: {}, {}{}", watts, when, later);
  }
  const std::string_view ready =
      answer.ready ? "ready" : "not ready: more counts than a limit allows until other jobs give up";
  return fmt::format("admitted: {} are reserved, {}{}", watts, ready, later);
}

/// Nothing: ask again.
std::optional<int> exit_code_of(const AdmissionAnswer& answer, bool dry_run, bool over) {
  if (answer.state == "refused") return entry_of(kRefused).exit_code;
  if (answer.state == "admitted" && (answer.ready || dry_run)) return 0;
  return over ? std::optional(entry_of(kWaits).exit_code) : std::nullopt;
}

Result<int> run_admit(const http::HttpPeer& peer, AdmitArguments arguments, bool as_json) {
  jobs::AdmissionRequest& request = arguments.request;
  if (!request.like_job.empty()) {
    auto meant = job_meant(peer, request.like_job);
    if (!meant) return meant.error();
    request.like_job = *std::move(meant);
  }
  const http::HttpCall call{"POST", "/v1/site/admission", json_text(request)};
  const UnsteppedClock clock;
  const double until_s = clock.now_s() + arguments.wait_s;
  std::string last_line;
  {
    const InterruptGuard guard;
    while (!InterruptGuard::interrupted()) {
      const auto body = call_server(peer, call);
      const bool over = clock.now_s() >= until_s;
      std::string line;
      if (!body) {
        if (over || body.error().code != ErrorCode::unavailable) return body.error();
        line = body.error().message;
      } else {
        const auto answer = answer_in(*body);
        if (!answer) return answer.error();
        line = line_of(*answer, request.dry_run);
        if (const auto code = exit_code_of(*answer, request.dry_run, over)) {
          print((as_json ? *body : line) + "\n");
          return *code;
        }
      }
      if (line != last_line) note(line);
      last_line = line;
      InterruptGuard::wait(Seconds(std::clamp(until_s - clock.now_s(), 0.0, kAskAgain_s)));
    }
  }
  die_if_interrupted();
  return 0;
}

std::string admit_footer() {
  std::string footer =
      help_footer(kAllErrors,
                  "  perseus site admit --job llama-17 --domain row-a --accelerators 64 --wait 300\n"
                  "  perseus site admit --job llama-17 --host n1 --host n2 --accelerators 16 --dry-run\n");
  return footer + fmt::format("Of them: 0 admitted and ready, {} waits, {} refused\n", entry_of(kWaits).exit_code,
                              entry_of(kRefused).exit_code);
}

}  // namespace

void add_site_admit(CLI::App& group, Command& command) {
  auto* admit = group.add_subcommand("admit", "Reserve the watts of a job before it starts, and wait for them");
  const auto arguments = std::make_shared<AdmitArguments>();
  jobs::AdmissionRequest& request = arguments->request;
  add_value(*admit, "--job NAME", request.job, "Name that the job will register with")->required();
  add_value(*admit, "--team NAME", request.team,
            "Team of the token that will register it, or the id of a token without one (default: "
            "an operator registers it)");
  auto* domain = admit->add_option("--domain", request.domain, "Domain of the site (default: around the hosts)");
  domain->type_name("NAME");
  add_value(*admit, "--host NAME", request.hosts, "Host on which it will run; repeatable")->excludes(domain);
  add_value(*admit, "--accelerators N", request.accelerators, "How many accelerators it will use",
            whole_number_within(1, kMostAccelerators))
      ->required();
  auto* watts = admit->add_option("--accelerator-power", request.accelerator_power,
                                  "Power of each at maximum clock (default: accelerator_w of its domain)");
  watts->type_name("W")->check(number_within(0, kMostAcceleratorWatts, "W"));
  auto* profile =
      admit->add_option("--profile", request.profile, "Stored profile whose power at maximum clock counts instead");
  profile->type_name("NAME")->excludes(watts);
  add_value(*admit, "--like-job JOB", request.like_job,
            "Job, running or ended, whose power at maximum clock counts instead")
      ->excludes(watts)
      ->excludes(profile);
  add_value(*admit, "--least-rate R", request.least_rate,
            "Rate that it will register as its least (default: that of the site), for announced falls of limits",
            number_within(0, 1, ""));
  add_default(*admit, "--wait S", arguments->wait_s, "Ask again for this long until it is admitted and ready",
              number_within(0, kLongestWait_s, "s"));
  admit->add_flag("--dry-run", request.dry_run, "Ask whether it would be admitted; reserve nothing");
  const auto peer = add_server_options(*admit);
  add_json_flag(*admit, command);
  admit->footer(admit_footer());
  set_run(*admit, command, [peer, arguments, &command] { return run_admit(*peer, *arguments, command.json); });
}

void add_site_release(CLI::App& group, Command& command) {
  auto name = std::make_shared<std::string>();
  auto* release = add_action(group, command, "release", "End the reservation of a job that will not start",
                             [name]() -> Result<http::HttpCall> {
                               return http::HttpCall{"DELETE", "/v1/site/admission/" + http::percent_encode(*name), ""};
                             });
  add_value(*release, "--job NAME", *name, "Name in the request")->required();
}

}  // namespace perseus::cli
