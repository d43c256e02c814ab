#include "demo/power_story.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <utility>

#include "command_line/command.h"
#include "command_line/interrupt.h"
#include "demo/demo_programs.h"
#include "demo/demo_server.h"
#include "demo/demo_stage.h"
#include "demo/power_story_jobs.h"
#include "io/formats/boost_json_text.h"
#include "remote/answer_members.h"
#include "simulation/simulated_gpu/site_meter.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

constexpr double kWindows = 4;                    // that the story stays under its limits, besides those of ramps
constexpr double kFall = 0.3;                     // of the limit
constexpr double kNotice_s = 3, kAccepted_s = 1;  // until a ramp begins; until the server may die
constexpr double kRampWindows = 2;
constexpr double kInterval_s = 0.1;  // of the meter
constexpr double kLease_s = 10, kDwell_s = 1;
constexpr double kLeastWindow_s = 5, kWindowIterations = 10;   // the longest at maximum clock
constexpr double kDeadBeyondLease_s = 4, kDeadIterations = 8;  // without a server: the longer of the two
constexpr double kBetweenServerReadings_s = 0.5;
constexpr double kStorySilence_s = 60, kStorySilenceIterations = 10;
constexpr double kLeastPlanLimit_s = 900, kPlanLimitIterations = 150;
constexpr double kNotCorrected = 0.01;  // the server corrects no job that draws so little more than planned
constexpr double kRoseBy = 1.05;        // of what counted under the low limit
constexpr double kRounding_w = 1e-3;
constexpr double kReturnReactions = 3;  // reaction times until watts are back, and plans of a restarted server
constexpr double kUsedWithin_s = 60;    // beyond the lease: the watts of a dead job
constexpr double kUsed = 0.98;          // of the limit, or of what the others draw without one
constexpr int kLeastIterations = 2;     // without the server, of each job

double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double mean_time_s(const std::vector<StoryIteration>& iterations) {
  if (iterations.empty()) return 0;
  const auto add = [](double sum, const StoryIteration& it) { return sum + it.end_s - it.start_s; };
  return std::accumulate(iterations.begin(), iterations.end(), 0.0, add) / static_cast<double>(iterations.size());
}

}  // namespace

bool limits_kept(const PowerMeasurement& m) {
  return !m.verdicts.empty() &&
         std::ranges::all_of(m.verdicts, [](const auto& v) { return v.windows > 0 && v.over == 0; });
}
bool acted_in_time(const PowerMeasurement& m) { return m.fall && m.fall->in_time; }
bool trained_on(const PowerMeasurement& m) {
  return std::ranges::all_of(m.jobs, [](const auto& job) { return job.iterations_without_server >= kLeastIterations; });
}
bool rose_again(const PowerMeasurement& m) { return m.returns == m.server_kills; }
bool watts_used(const PowerMeasurement& m) { return m.kill && m.kill->in_time(); }
bool story_holds(const PowerMeasurement& m) {
  return limits_kept(m) && acted_in_time(m) && trained_on(m) && rose_again(m) && watts_used(m) && m.clocks_given_back;
}
double limit_of_server_w(const PowerMeasurement& m, double limit_w) {
  return std::floor((1 - kNotCorrected) * limit_w - m.swing_w);
}
double most_over_w(const PowerMeasurement& m) {
  double most = -m.limit_w;
  for (const replay::WindowVerdict& v : m.verdicts) {
    if (v.windows > 0) most = std::max(most, v.power_w - v.limit_w);
  }
  return most;
}

namespace {

class PowerStory final : public Story<PowerMeasurement> {
 public:
  PowerStory(const DemoOptions& options, const DemoScratch& scratch)
      : o_(options), scratch_(scratch), server_(stage_, scratch) {}

  Result<PowerMeasurement> run() override {
    std::vector<Status (PowerStory::*)()> steps{&PowerStory::start_processes, &PowerStory::wait_for_plans,
                                                &PowerStory::measure_without_limit, &PowerStory::fall};
    for (int k = 0; k < o_.server_kills; ++k)
      steps.insert(steps.end(), {&PowerStory::raise, &PowerStory::ramp, &PowerStory::serve_again});
    steps.push_back(&PowerStory::kill_job);
    for (const auto step : steps) {
      if (const Status done = (this->*step)(); !done) return done.error();
      if (!goes_on_) break;
    }
    if (const Status done = end_training(); !done) return done.error();
    judge();
    m_.took_s = stage_.seconds();
    return std::move(m_);
  }

  Status tidy() override {
    stage_.clear();
    server_.while_waiting({});
    for (const auto& job : jobs_) job->training.tidy();
    for (const auto& job : jobs_) {
      if (Status unlocked = job->gpus.wait_until_unlocked(); !unlocked) return unlocked;
    }
    return Ok{};
  }

  void keep_server() override { server_.keep(); }
  void stop_server() override { server_.stop(); }

 private:
  Status start_processes() {
    const auto programs = find_demo_programs(o_);
    if (!programs) return programs.error();
    programs_ = *programs;
    auto jobs = story_jobs(o_, scratch_, stage_, server_);
    if (!jobs) return jobs.error();
    jobs_ = *std::move(jobs);
    if (Status made = jobs_.front()->gpus.make_leases(); !made) return made;
    if (Status started = server_.start(programs_.server, o_); !started) return started;
    std::vector<std::string> files;
    Seconds longest;
    for (const auto& job : jobs_) {
      if (Status made = job->gpus.make(); !made) return made;
      files.insert(files.end(), job->gpus.files().begin(), job->gpus.files().end());
      if (Status started = job->training.start(programs_); !started) return started;
      longest = std::max(longest, job->longest_computation());
      longest_iteration_s_ = std::max(longest_iteration_s_, job->job.all_max_time.value());
      m_.all_max_w += job->all_max_power().value();
    }
    // A computation that is begun late changes the past by half of it.
    const auto attach = [&](std::optional<simulated_gpu::SiteMeter>& meter) -> Status {
      auto attached =
          simulated_gpu::SiteMeter::attach(files, Seconds(kInterval_s), Seconds(0.5 + longest.value()), &monotonic_s);
      if (!attached) return attached.error();
      meter.emplace(*std::move(attached));
      return Ok{};
    };
    if (Status attached = attach(meter_); !attached) return attached;
    files.erase(files.begin(), files.begin() + jobs_.front()->num_gpus());
    if (Status attached = attach(others_); !attached) return attached;
    began_s_ = monotonic_s();
    unix_began_s_ = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    server_.while_waiting([this] { remember(look_at_jobs(0)); });
    m_.interval_s = kInterval_s;
    m_.window_s = std::max(kLeastWindow_s, std::ceil(kWindowIterations * longest_iteration_s_));
    m_.lease_s = kLease_s;
    m_.reaction_s = kLease_s + 2 * longest_iteration_s_;
    m_.swing_w = swing_reserve(jobs_, Seconds(m_.window_s)).value();
    m_.seed = o_.seed.value_or(std::random_device{}());
    m_.server_kills = o_.server_kills;
    random_.seed(m_.seed);
    // Estimate: the windows of all steps, half a minute for plans and changes, and another one until watts are used.
    const double ramp_s = kNotice_s + kRampWindows * m_.window_s + dead_s() / 2 + 3 * m_.window_s;
    if (const double minutes = (kWindows * m_.window_s + o_.server_kills * ramp_s + 60) / 60; minutes > 3)
      note(fmt::format("this takes about {:.0f} minutes; --time-scale makes it shorter", minutes));
    return Ok{};
  }

  Status wait_for_plans() {
    event("the clients start, the jobs register");
    for (const auto& job : jobs_) {
      if (Status sent = job->training.start_client(); !sent) return sent;
    }
    const double limit_s = std::max(kLeastPlanLimit_s, kPlanLimitIterations * longest_iteration_s_);
    const auto planned = [&] { return std::ranges::all_of(jobs_, [](const auto& job) { return job->follows_plan; }); };
    if (Status done = wait_until(planned, limit_s, "plans for all jobs"); !done) return done;
    event("all jobs follow plans; no limit yet");
    return Ok{};
  }

  Status measure_without_limit() {
    const double from_s = now_s();
    if (Status held = hold(m_.window_s); !held) return held;
    if (Status read = meter_until(now_s()); !read) return read;
    m_.drawn_w = replay::mean_power_w(readings(*meter_), from_s, now_s());
    others_w_ = replay::mean_power_w(readings(*others_), from_s, now_s());
    m_.limit_w = std::round(m_.drawn_w);
    m_.low_limit_w = std::round((1 - kFall) * m_.limit_w);
    return Ok{};
  }

  /// Sets the low limit without notice, waits until it is kept, and stays under it.
  Status fall() {
    event(fmt::format("the limit: {:.0f} W, without notice", m_.low_limit_w));
    m_.fall = StoryFall{now_s(), 0, false};
    if (Status put = put_limit(m_.low_limit_w); !put) return put;
    const double due_s = m_.fall->at_s + m_.reaction_s;
    counted_w_.reset();
    const auto counts = [&] {
      return counted_w_ && *counted_w_ <= limit_of_server_w(m_, m_.low_limit_w) + kRounding_w;
    };
    if (Status waited = wait_until([&] { return counts() || now_s() >= due_s; }, 2 * m_.reaction_s, "the limit");
        !waited)
      return waited;
    const double confirmed_s = now_s() + began_s_;
    const auto next_iterations = [&] {
      return std::ranges::all_of(jobs_, [&](const auto& job) {
        return !job->iterations.empty() && job->iterations.back().end_s > confirmed_s;
      });
    };
    m_.fall->in_time = counts();
    if (Status ended = wait_until(next_iterations, silence_s(), "the end of an iteration"); !ended) return ended;
    m_.fall->acted_s = m_.fall->in_time ? now_s() : std::max(due_s, now_s());
    event(m_.fall->in_time ? fmt::format("the limit has acted after {:.1f} s", m_.fall->acted_s - m_.fall->at_s)
                           : fmt::format("the limit has not acted within {:.1f} s: the story ends", m_.reaction_s));
    goes_on_ = goes_on_ && m_.fall->in_time;
    m_.judged.push_back({"the limit, without notice", m_.fall->acted_s, 0});
    low_counted_w_ = counted_w_.value_or(0);
    return hold(1.4 * m_.window_s);
  }

  Status raise() {
    event(fmt::format("the limit rises: {:.0f} W", m_.limit_w));
    const double due_s = now_s() + kReturnReactions * m_.reaction_s;
    if (Status put = put_limit(m_.limit_w); !put) return put;
    judge_next("the limit rises");
    const auto rose = [&] { return counted_w_ && *counted_w_ > kRoseBy * low_counted_w_; };
    if (Status waited = wait_until([&] { return rose() || now_s() >= due_s; }, silence_s() + due_s, ""); !waited)
      return waited;
    m_.returns += rose() ? 1 : 0;
    event(rose() ? "the jobs have the watts again" : "the jobs did not get the watts back");
    return hold(1.2 * m_.window_s);
  }

  /// Announces the fall as a ramp, and kills the server at a random moment from then on until the ramp's end.
  Status ramp() {
    StoryRamp ramp;
    ramp.from_s = now_s() + kNotice_s;
    ramp.until_s = ramp.from_s + kRampWindows * m_.window_s;
    event(fmt::format("the limit falls to {:.0f} W as a ramp, from {:.1f} s to {:.1f} s", m_.low_limit_w, ramp.from_s,
                      ramp.until_s));
    if (Status put = put_ramp(ramp); !put) return put;
    judge_next(fmt::format("ramp {}, without a server", m_.ramps.size() + 1));
    const double accepted_s = now_s() + kAccepted_s;
    ramp.killed_s = std::uniform_real_distribution(accepted_s, std::max(accepted_s, ramp.until_s))(random_);
    if (Status held = hold(ramp.killed_s - now_s()); !held) return held;
    ramp.killed_s = now_s();
    event(fmt::format("the server is killed, {:.1f} s before the ramp's end", ramp.until_s - ramp.killed_s));
    server_.kill();
    serves_ = false;
    m_.ramps.push_back(ramp);
    return hold(std::max(ramp.until_s + m_.window_s, ramp.killed_s + dead_s()) - now_s());
  }

  Status serve_again() {
    event("the server starts again, on its database");
    m_.ramps.back().serves_again_s = now_s();
    if (Status started = server_.restart(programs_.server, o_); !started) return started;
    judge_next(fmt::format("after ramp {}", m_.ramps.size()));
    serves_ = true;
    counted_w_.reset();
    for (const auto& job : jobs_) job->follows_plan = false;
    const auto planned = [&] { return std::ranges::all_of(jobs_, [](const auto& job) { return job->follows_plan; }); };
    const double due_s = now_s() + kReturnReactions * m_.reaction_s;
    if (Status done = wait_until([&] { return planned() || now_s() >= due_s; }, silence_s() + due_s, ""); !done)
      return done;
    goes_on_ = planned();
    event(goes_on_ ? "all jobs follow plans again" : "a job does not follow its plan again: the story ends");
    return Ok{};
  }

  /// Kills the first job, all its processes at once, and waits until the others draw what the limit leaves.
  Status kill_job() {
    StoryJob& job = *jobs_.front();
    if (Status read = meter_until(now_s()); !read) return read;
    StoryKill kill{.job = job.shape, .unlimited_w = others_w_, .at_most_s = kLease_s + kUsedWithin_s};
    kill.before_w = replay::mean_power_w(readings(*others_), now_s() - m_.window_s, now_s());
    event(fmt::format("{} is killed, all its processes at once; the others draw {:.0f} W", job.shape, kill.before_w));
    kill.at_s = now_s();
    job.kill();
    judge_next("a job killed");
    const auto used = [&] {
      const double at_s = others_->samples().back().at_s - began_s_;
      const auto mean_w = [&](const simulated_gpu::SiteMeter& meter) {
        return replay::mean_power_w(readings(meter), at_s - m_.window_s, at_s);
      };
      kill.after_w = mean_w(*others_);
      if (at_s - m_.window_s > kill.at_s && (kill.after_w >= kUsed * kill.unlimited_w ||
                                             mean_w(*meter_) >= kUsed * limit_of_server_w(m_, m_.low_limit_w)))
        kill.used_s = at_s - kill.at_s;
      return kill.used_s > 0;
    };
    const auto over = [&] { return now_s() > kill.at_s + kill.at_most_s + m_.window_s; };
    if (Status waited = wait_until([&] { return used() || over(); }, 2 * kill.at_most_s + silence_s(), ""); !waited)
      return waited;
    event(kill.used_s > 0 ? fmt::format("the others draw {:.0f} W", kill.after_w)
                          : fmt::format("the others draw {:.0f} W: they did not get its watts", kill.after_w));
    m_.kill = kill;
    return hold(1.4 * m_.window_s);
  }

  Status end_training() {
    const auto proof =
        server_.ask("GET", fmt::format("/v1/site/proof?from={:.0f}", std::floor(unix_began_s_ / 60) * 60));
    if (!proof) return proof.error();
    m_.proof = *proof;
    m_.judged.back().until_s = now_s();
    if (Status read = meter_until(now_s()); !read) return read;
    m_.readings = readings(*meter_);
    event("training ends");
    for (const auto& job : jobs_) job_figures(*job);
    server_.while_waiting({});
    for (const auto& job : jobs_) {
      if (job->killed) continue;
      if (const auto last = job->training.end(); !last) return last.error();
    }
    return Ok{};
  }

  void job_figures(const StoryJob& job) {
    const auto times = [&](double from_s, double until_s) {
      return job.between(from_s + began_s_, until_s + began_s_);
    };
    const auto under = [&](std::size_t k) {
      return k < m_.judged.size() ? mean_time_s(times(m_.judged[k].from_s, m_.judged[k].until_s)) : 0;
    };
    int least = m_.ramps.empty() ? 0 : static_cast<int>(job.iterations.size());
    std::vector<StoryIteration> without_server;
    for (const StoryRamp& ramp : m_.ramps) {
      const auto dead = times(std::max(ramp.killed_s, ramp.until_s), ramp.serves_again_s);
      without_server.insert(without_server.end(), dead.begin(), dead.end());
      least = std::min(least, static_cast<int>(times(ramp.killed_s, ramp.serves_again_s).size()));
    }
    m_.jobs.push_back(
        {job.shape,
         fmt::format("{}: ranks {}, stages {}, microbatches {}, replicas {}", job.options.schedule,
                     job.training.ranks(), job.job.profile.num_stages(), kMicrobatches, job.options.replicas),
         job.num_gpus(), static_cast<int>(job.iterations.size()), least, under(1), under(0),
         mean_time_s(without_server)});
  }

  void judge() {
    for (const replay::JudgedTime& time : m_.judged)
      m_.verdicts.push_back(replay::judge_windows(m_.readings, m_.limits, time, m_.window_s));
  }

  /// Every window from the first fall on is judged: in the time in which it ends.
  void judge_next(const std::string& name) {
    m_.judged.back().until_s = now_s();
    m_.judged.push_back({name, std::max(m_.judged.front().from_s, now_s() - m_.window_s), 0});
  }

  Status put_limit(double limit_w) {
    if (!m_.limits.empty()) m_.limits.push_back({now_s(), m_.limits.back().limit_w});
    m_.limits.push_back({now_s(), limit_w});
    return put_hall({{"limits", json::array{json::object{{"limit_w", limit_of_server_w(m_, limit_w)}}}}});
  }

  Status put_ramp(const StoryRamp& ramp) {
    m_.limits.push_back({ramp.from_s, m_.limit_w});
    m_.limits.push_back({ramp.until_s, m_.low_limit_w});
    const double high_w = limit_of_server_w(m_, m_.limit_w), low_w = limit_of_server_w(m_, m_.low_limit_w);
    return put_hall(
        {{"limits", json::array{json::object{{"limit_w", high_w}},
                                json::object{{"limit_w", low_w}, {"from_s", unix_began_s_ + ramp.until_s}}}},
         {"ramp_down_w_per_s", (high_w - low_w) / (ramp.until_s - ramp.from_s)}});
  }

  Status put_hall(json::object hall) {
    hall["name"] = "hall";
    const json::object site{{"lease_s", kLease_s},
                            {"dwell_s", kDwell_s},
                            {"node_overhead_w", 0},
                            {"domains", json::array{std::move(hall)}}};
    const auto answer = server_.ask("PUT", "/v1/site", formats::json_text(site));
    if (!answer) return answer.error();
    serves_ = true;
    return Ok{};
  }

  [[nodiscard]] double dead_s() const {
    return std::max(kLease_s + kDeadBeyondLease_s, kDeadIterations * longest_iteration_s_);
  }

  // Time and processes.

  [[nodiscard]] double now_s() const { return monotonic_s() - began_s_; }
  [[nodiscard]] double silence_s() const { return kStorySilence_s + kStorySilenceIterations * longest_iteration_s_; }

  Status hold(double duration_s) {
    const double until_s = now_s() + duration_s;
    return wait_until([&] { return now_s() >= until_s; }, duration_s + silence_s(), "");
  }

  Status wait_until(const std::function<bool()>& done, double limit_s, const std::string& what) {
    const double until_s = now_s() + limit_s;
    while (!done()) {
      if (InterruptGuard::interrupted()) return Error{ErrorCode::unavailable, "interrupted"};
      if (Status looked = look_at_jobs(20); !looked) return looked;
      if (!problem_.ok()) return problem_;
      if (Status read = read_server(); !read) return read;
      if (now_s() > until_s) return Error{ErrorCode::unavailable, fmt::format("{}: not within {:g} s", what, limit_s)};
    }
    return Ok{};
  }

  void remember(const Status& status) {
    if (problem_.ok()) problem_ = status;
  }

  Status look_at_jobs(int limit_ms) {
    for (const auto& job : jobs_) {
      if (job->killed) continue;
      if (Status looked = job->look(std::exchange(limit_ms, 0)); !looked) return looked;
      const double last_s = job->iterations.empty() ? began_s_ : job->iterations.back().end_s;
      if (monotonic_s() - last_s > silence_s())
        return Error{ErrorCode::unavailable,
                     fmt::format("{}: no iteration has ended for {:.0f} s", job->shape, silence_s())};
    }
    if (Status read = others_->read(); !read) return read;
    return meter_->read();
  }

  /// What the server says of the hall; nothing while there is no site or no server.
  Status read_server() {
    if (!serves_ || now_s() - read_s_ < kBetweenServerReadings_s) return Ok{};
    read_s_ = now_s();
    const auto power = server_.ask("GET", "/v1/site/power");
    if (!power) return power.error();
    const json::array& domains = list_in(*power, "domains");
    if (domains.empty()) return Ok{};
    const json::value& hall = domains.front();
    counted_w_ = number_at(hall, {"counted_w"});
    m_.server.push_back({now_s(), number_at(hall, {"planned_w"}), *counted_w_});
    const double metered_w = replay::mean_power_w(readings(*meter_), now_s() - 2 - m_.window_s, now_s());
    stage_.so_far(fmt::format("limit {:.0f} W, counted {:.0f} W, metered {:.0f} W",
                              replay::limit_at(m_.limits, now_s()), *counted_w_, metered_w));
    return Ok{};
  }

  Status meter_until(double until_s) {
    const auto read = [&] {
      return !others_->samples().empty() && others_->samples().back().at_s >= until_s + began_s_ &&
             !meter_->samples().empty() && meter_->samples().back().at_s >= until_s + began_s_;
    };
    return wait_until(read, silence_s(), "readings of the meter");
  }

  [[nodiscard]] std::vector<replay::EnergyReading> readings(const simulated_gpu::SiteMeter& meter) const {
    std::vector<replay::EnergyReading> readings;
    for (const simulated_gpu::MeterSample& sample : meter.samples())
      readings.push_back({sample.at_s - began_s_, sample.energy.value()});
    return readings;
  }

  void event(const std::string& what) {
    stage_.begin(what);
    m_.events.push_back({now_s(), what});
  }

  const DemoOptions& o_;
  const DemoScratch& scratch_;
  DemoStage stage_;
  DemoServer server_;
  DemoPrograms programs_;
  StoryJobs jobs_;
  std::optional<simulated_gpu::SiteMeter> meter_, others_;  ///< of all GPUs; without those of the first job
  std::mt19937 random_;
  PowerMeasurement m_;
  Status problem_ = Ok{};
  std::optional<double> counted_w_;  ///< as the server last said
  double began_s_ = 0, unix_began_s_ = 0, longest_iteration_s_ = 0, read_s_ = 0;
  double others_w_ = 0, low_counted_w_ = 0;
  bool serves_ = false;  ///< there are a server and a site
  bool goes_on_ = true;  ///< false: the verdict is no already
};

}  // namespace

std::unique_ptr<Story<PowerMeasurement>> power_story(const DemoOptions& options, const DemoScratch& scratch) {
  return std::make_unique<PowerStory>(options, scratch);
}

}  // namespace perseus::cli
