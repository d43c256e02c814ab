#include "demo/demo_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/count_text.h"
#include "command_line/interrupt.h"
#include "io/formats/file.h"
#include "io/formats/profile_csv.h"
#include "io/formats/transfer_latency_text.h"
#include "io/report/format.h"
#include "remote/answer_members.h"
#include "server/jobs/api_bodies.h"

namespace perseus::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr const char* kWorkersLog = "workers.log";
constexpr int kPlannedState = 3;  // PERSEUS_PLANNED
constexpr double kEnding_s = 20;
constexpr double kControlLimit_s = 15;     // for a client to find its helper
constexpr double kPlanGap_s = 60;          // without a plan while one is measured, and
constexpr double kPlanGapIterations = 50;  // at least so long: a client's trial takes up to 32 iterations
constexpr double kSilence_s = 5, kSilenceIterations = 3;  // without a report: print who is silent

/// What a line of the client's log is about: its beginning, without figures.
std::string topic_of(const std::string& line) {
  std::string topic = line.substr(0, line.find(':'));
  std::erase_if(topic, [](char c) { return c >= '0' && c <= '9'; });
  return topic;
}

}  // namespace

Status DemoTraining::start(const DemoPrograms& programs) {
  const std::string csv = scratch_.file("profile.csv");
  if (Status written = formats::write_file(csv, formats::format_profile_csv(job_.profile)); !written) return written;
  if (o_.known_profile) {
    if (Status pushed = push_profile(); !pushed) return pushed;
  }
  auto launched = replay::TrainingReplay::launch(job_.dag, replay_options(programs, csv));
  if (!launched) return launched.error();
  replay_ = *std::move(launched);
  // next_iteration() reports problems of the workers.
  server_.while_waiting([this] {
    if (replay_) (void)replay_->listen(0);
  });
  stage_.begin(fmt::format("{}: {} of {}, {} with {} microbatches, on simulated GPUs", count_text(workers(), "worker"),
                           count_text(o_.replicas, "replica"), count_text(ranks(), "rank"), o_.schedule,
                           kMicrobatches));
  return Ok{};
}

replay::ReplayOptions DemoTraining::replay_options(const DemoPrograms& programs, const std::string& csv) {
  replay::ReplayOptions replay;
  replay.program = programs.worker;
  // A straggler may be twice as slow; a factor of ten leaves a margin for a busy machine.
  replay.report_limit_s = 60 + 10 * kStragglerSlowdown * job_.all_max_time.value();
  replay.replicas = o_.replicas;
  replay.gpus = gpus_.files();
  replay.error_file = scratch_.file(kWorkersLog);
  replay.silence_s = kSilence_s + kSilenceIterations * kStragglerSlowdown * job_.all_max_time.value();
  replay.on_silence = [this](const std::string& who) { stage_.remark("training stands still: " + who); };
  replay.on_report = [this](const replay::RankReport& report) { show_client_log(report); };
  replay.interrupted = [] { return InterruptGuard::interrupted(); };
  replay.arguments = worker_arguments(programs, csv);
  return replay;
}

std::vector<std::string> DemoTraining::worker_arguments(const DemoPrograms& programs, const std::string& csv) const {
  const std::string name = o_.profile.empty() ? "the sample" : fs::path(o_.profile).stem().string();
  const std::string job_name = o_.job_name.empty() ? "demo of " + name : o_.job_name;
  std::vector<std::string> arguments{"--profile",
                                     csv,
                                     "--schedule",
                                     o_.schedule,
                                     "--microbatches",
                                     std::to_string(kMicrobatches),
                                     "--chunks",
                                     std::to_string(job_.chunks),
                                     "--blocking-power",
                                     fmt::format("{}", job_.blocking_power.value()),
                                     "--transfer-latency",
                                     formats::transfer_latency_option(o_.transfer_latency),
                                     "--host-ahead",
                                     o_.host_ahead,
                                     "--cuda",
                                     programs.cuda,
                                     "--server",
                                     server_.url(),
                                     "--job-name",
                                     fmt::format("{} (simulated GPUs)", job_name),
                                     "--facts",
                                     fmt::format("model={}\nframework=perseus-replay\naccelerator=simulated", name)};
  if (o_.known_profile) {
    arguments.insert(arguments.end(), {"--profile-name", profile_name()});
  } else {
    arguments.emplace_back("--measure-blocking-power");
  }
  if (!programs.helper.empty()) arguments.insert(arguments.end(), {"--helper", programs.helper});
  return arguments;
}

std::string DemoTraining::profile_name() const {
  return o_.job_name.empty() ? std::string("demo") : "demo-" + o_.job_name;
}

Status DemoTraining::push_profile() {
  jobs::NamedProfile profile;
  profile.profile_csv = formats::format_profile_csv(job_.profile);
  profile.shape.schedule = o_.schedule;
  profile.shape.microbatches = kMicrobatches;
  profile.shape.chunks = job_.chunks;
  profile.shape.blocking_power = job_.blocking_power;
  profile.shape.transfer_latency = o_.transfer_latency;
  const auto answer = server_.ask("PUT", "/v1/profiles/" + profile_name(), json_text(profile));
  if (!answer) return answer.error();
  return Ok{};
}

Status DemoTraining::join_server() {
  stage_.begin("the clients start, the job registers");
  joined_s_ = stage_.seconds();
  if (Status sent = replay_->command("client"); !sent) return sent;
  while (!replay_->job_notified()) {
    if (const auto iteration = next(); !iteration) return iteration.error();
  }
  if (replay_->job().empty()) {
    return Error{ErrorCode::unavailable, "the clients could not register the job" + end_of_log()};
  }
  joined_s_ = stage_.seconds();
  return Ok{};
}

Result<replay::JobIteration> DemoTraining::end() {
  if (Status sent = replay_->command("stop"); !sent) return sent.error();
  auto last = replay_->next_iteration();
  if (!last) return last;
  if (Status ended = replay_->finish(kEnding_s); !ended) return ended.error();
  return last;
}

void DemoTraining::tidy() {
  continue_stopped();
  replay_.reset();
  continue_stopped();  // processes that were stopped by a signal
}

void DemoTraining::kill() {
  for (const pid_t pid : replay_->pids()) ::kill(pid, SIGKILL);
  replay_.reset();
}

void DemoTraining::continue_stopped() const {
  gpus_.continue_stopped_helpers();
  server_.continue_if_stopped();
}

std::string DemoTraining::end_of_log() const { return scratch_.end_of_log(kWorkersLog); }

Result<std::vector<replay::JobIteration>> DemoTraining::measure(int unmeasured, int measured) {
  std::vector<replay::JobIteration> iterations;
  for (int i = 0; i < unmeasured + measured; ++i) {
    auto iteration = next();
    if (!iteration) return iteration.error();
    if (i >= unmeasured) iterations.push_back(*std::move(iteration));
  }
  return iterations;
}

Result<PlanIterations> DemoTraining::measure_plan(int unmeasured, int measured) {
  PlanIterations result;
  int followed = 0;
  double plan_s = stage_.seconds();
  while (followed < unmeasured + measured) {
    auto iteration = next();
    if (!iteration) return iteration.error();
    const std::int64_t version = plan_version(*iteration);
    if (version == 0) {
      if (!result.iterations.empty()) ++result.left_out;
      if (stage_.seconds() - plan_s > std::max(kPlanGap_s, kPlanGapIterations * job_.all_max_time.value()))
        return no_plan_in_force();
      continue;
    }
    plan_s = stage_.seconds();
    if (version != version_) {
      if (followed > 0) {
        stage_.remark(fmt::format("plan {} has replaced plan {}: the measurement starts again", version, version_));
      }
      version_ = version;
      result = {};
      followed = 0;
    }
    if (++followed > unmeasured) result.iterations.push_back(*std::move(iteration));
  }
  if (result.left_out > 0) {
    stage_.remark(fmt::format("left out: {} iterations that did not run the plan", result.left_out));
  }
  return result;
}

std::int64_t DemoTraining::plan_version(const replay::JobIteration& iteration) const {
  const std::int64_t version = iteration.workers.front().client.plan_version;
  const auto runs = [&](const replay::RankReport& report) {
    const replay::ClientFigures& c = report.client;
    return c.state == kPlannedState && c.controls_clock != 0 && c.plan_version == version;
  };
  const bool before = previous_.iteration + 1 == iteration.iteration && std::ranges::all_of(previous_.workers, runs);
  if (!before || !std::ranges::all_of(iteration.workers, runs)) return 0;
  // If another helper has replaced a helper, steps in between did not follow the plan.
  const auto helpers = [](const replay::RankReport& report) { return report.client.helper_restarts; };
  return std::ranges::equal(previous_.workers, iteration.workers, {}, helpers, helpers) ? version : 0;
}

Error DemoTraining::no_plan_in_force() {
  std::string why;
  if (const auto job = server_.ask("GET", job_path())) {
    why = text_at(*job, {"reason"});
    for (const json::value& text : list_in(*job, "plans_dropped")) {
      if (text.is_string()) why = text.get_string().c_str();
    }
  }
  return {ErrorCode::unavailable,
          fmt::format("no plan is in force on all ranks: {}{}",
                      why.empty() ? "the clients hold their highest clock" : why, scratch_.end_of_log(kWorkersLog))};
}

Result<replay::JobIteration> DemoTraining::next() {
  auto iteration = replay_->next_iteration();
  if (!iteration) {
    if (InterruptGuard::interrupted()) return iteration.error();
    return Error{iteration.error().code, iteration.error().message + scratch_.end_of_log(kWorkersLog)};
  }
  if (Status whole = check_processes(*iteration); !whole) return whole.error();
  previous_ = std::exchange(latest_, *iteration);
  double energy_j = 0;
  for (const replay::RankReport& report : iteration->workers) energy_j += report.energy_j;
  const replay::RankReport& first = iteration->workers.front();
  stage_.so_far(fmt::format("iteration {}: {}, {}", iteration->iteration,
                            report::text_of(Seconds(first.end_s - first.start_s)), report::text_of(Joules(energy_j))));
  return iteration;
}

Result<std::optional<replay::JobIteration>> DemoTraining::poll(int limit_ms) {
  auto iteration = replay_->poll(limit_ms);
  if (!iteration) return Error{iteration.error().code, iteration.error().message + end_of_log()};
  if (*iteration) previous_ = std::exchange(latest_, **iteration);
  return iteration;
}

Status DemoTraining::skip_ended() {
  while (true) {
    const auto ended = poll(0);
    if (!ended) return ended.error();
    if (!*ended) return Ok{};
  }
}

void DemoTraining::show_client_log(const replay::RankReport& report) {
  std::istringstream lines(report.client_log);
  for (std::string line; std::getline(lines, line);) {
    stage_.remark_once(topic_of(line), fmt::format("{}: {}", worker_name(report.worker), line));
  }
}
std::string DemoTraining::worker_name(int worker) const {
  return fmt::format("{}worker {} (replica {}, rank {})", o_.job_name.empty() ? "" : o_.job_name + ": ", worker,
                     worker / ranks(), worker % ranks());
}

Status DemoTraining::check_processes(const replay::JobIteration& iteration) {
  if (auto ended = server_.ended()) return *std::move(ended);
  for (const replay::RankReport& report : iteration.workers) {
    const replay::ClientFigures& c = report.client;
    if (c.running == 0 || c.controls_clock != 0) continue;
    const bool did = c.clocks_requested > 0;
    if (!did && stage_.seconds() - joined_s_ < kControlLimit_s) continue;
    return Error{ErrorCode::unavailable,
                 fmt::format("{} cannot set its clock: its helper {}{}", worker_name(report.worker),
                             did ? "has ended" : "did not start", scratch_.end_of_log(kWorkersLog))};
  }
  server_.remark_if_stopped();
  return check_helpers();
}

Status DemoTraining::check_helpers() {
  // A helper that the client's watchdog replaces is gone by the next iteration.
  std::set<pid_t> stopped;
  std::string still_stopped;
  for (const HelperProcess& helper : gpus_.stopped_helpers()) {
    stopped.insert(helper.pid);
    if (!helpers_stopped_.contains(helper.pid)) continue;
    still_stopped += fmt::format(
        "{}{}{} (process {}) is stopped by a signal", still_stopped.empty() ? "" : "; ", worker_name(helper.worker),
        helper.is_supervisor ? ": the supervisor of its helper" : " cannot set its clock: its helper", helper.pid);
  }
  if (!still_stopped.empty()) return Error{ErrorCode::unavailable, still_stopped};
  helpers_stopped_ = std::move(stopped);
  return Ok{};
}

bool DemoTraining::follows_plan(const replay::JobIteration& iteration, std::int64_t except, int without_replica) {
  std::int64_t version = 0;
  for (const replay::RankReport& report : iteration.workers) {
    if (report.worker / ranks() == without_replica) continue;
    const replay::ClientFigures& c = report.client;
    if (c.state != kPlannedState || c.controls_clock == 0 || c.plan_version == except) return false;
    if (version != 0 && c.plan_version != version) return false;
    if (c.iteration <= c.plan_from_iteration) return false;
    version = c.plan_version;
  }
  version_ = version;
  return true;
}

}  // namespace perseus::cli
