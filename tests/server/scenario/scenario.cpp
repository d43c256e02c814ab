#include "tests/server/scenario/scenario.h"

#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "base/error_table.h"
#include "io/formats/number.h"
#include "server/live/learned_profile.h"
#include "tests/server/scenario/in_process.h"
#include "tests/server/scenario/scenario_facts.h"
#include "tests/server/scenario/scenario_site.h"
#include "tests/server/scenario/scenario_step.h"
#include "tests/server/scenario/training.h"

namespace perseus::testing {
namespace {

using namespace jobs;

/// Of the GPUs that profile: what a story says does not depend on how many, and the search for windows grows with them.
constexpr int kGpuClocks = 6;

template <class T>
Status status_of(const Result<T>& result) {
  if (result) return Ok{};
  return result.error();
}

class Player {
 public:
  Player(std::string folder, ScenarioTarget& target) : folder_(std::move(folder)), target_(target) {}

  /// Ok, or the difference from the line's expectation.
  Status play_line(const std::string& line) {
    ScenarioStep step = parse_step(line);
    if (step.words.empty()) return Ok{};
    if (step.words[0] == "fails") {
      if (step.words.size() < 3) return wrong_step("fails CODE STEP...");
      const std::string code = step.words[1];
      step.words.erase(step.words.begin(), step.words.begin() + 2);
      const Status done = play_step(step);
      if (done) return wrong_step(fmt::format("expected the error {}, but it was done", code));
      if (entry_of(done.error().code).name == code) return Ok{};
      return wrong_step(fmt::format("expected the error {}, found {}: {}", code, entry_of(done.error().code).name,
                                    done.error().message));
    }
    return play_step(step);
  }

 private:
  using Action = Status (Player::*)(const ScenarioStep&);

  Status play_step(const ScenarioStep& step) {
    static const std::map<std::string, Action> actions{
        {"profile", &Player::profile},
        {"job", &Player::job},
        {"ranks", &Player::ranks},
        {"rank", &Player::rank},
        {"measured", &Player::measured},
        {"upload", &Player::upload},
        {"report", &Player::report},
        {"finish", &Player::finish},
        {"straggler", &Player::straggler},
        {"withdraw", &Player::withdraw},
        {"policy", &Player::policy},
        {"clear", &Player::clear},
        {"tier", &Player::tier},
        {"wait", &Player::wait},
        {"answered", &Player::answered},
        {"waiting", &Player::waiting},
        {"close", &Player::close_wait},
        {"expect", &Player::expect},
        {"at", &Player::at},
        {"train", &Player::train},
        {"drop", &Player::drop},
        {"shape", &Player::shape},
        {"site", &Player::site},
        {"no_site", &Player::no_site},
        {"vanish", &Player::vanish},
        {"meter", &Player::meter},
        {"admit", &Player::admit},
        {"release", &Player::release},
        {"power", &Player::power},
        {"follow", &Player::follow},
    };
    static const std::map<std::string, std::function<void(ScenarioTarget&)>> without_words{
        {"hold", [](ScenarioTarget& target) { target.hold_work(true); }},
        {"go", [](ScenarioTarget& target) { target.hold_work(false); }},
        {"restart", &ScenarioTarget::restart},
        {"stop", &ScenarioTarget::stop_and_start},
        {"break", [](ScenarioTarget& target) { target.break_store(true); }},
        {"mend", [](ScenarioTarget& target) { target.break_store(false); }},
        {"freeze", [](ScenarioTarget& target) { target.freeze_store(true); }},
        {"thaw", [](ScenarioTarget& target) { target.freeze_store(false); }},
        {"full", [](ScenarioTarget& target) { target.fill_disk(true); }},
        {"room", [](ScenarioTarget& target) { target.fill_disk(false); }},
    };
    if (const auto action = actions.find(step.words[0]); action != actions.end()) return (this->*action->second)(step);
    const auto action = without_words.find(step.words[0]);
    if (action == without_words.end()) return wrong_step(fmt::format("no step '{}'", step.words[0]));
    action->second(target_);
    return Ok{};
  }

  [[nodiscard]] std::string id(const ScenarioStep& step) const {
    const std::string name = step.words.size() > 1 ? step.words[1] : "";
    const auto known = job_ids_.find(name);
    return known == job_ids_.end() ? name : known->second;
  }

  /// A profile with so many times the energies, its last column.
  static std::string scaled(const std::string& csv, double energies) {
    if (energies == 1) return csv;
    std::stringstream lines(csv);
    std::string text, line;
    for (std::getline(lines, text); std::getline(lines, line);) {
      const std::size_t energy = line.rfind(',') + 1;
      text += fmt::format("\n{}{:.6f}", line.substr(0, energy), energies * std::stod(line.substr(energy)));
    }
    return text + "\n";
  }

  [[nodiscard]] Result<jobs::NamedProfile> read_profile(const ScenarioStep& step) const {
    if (step.words.size() < 3) return wrong_step("profile|upload NAME FILE.csv microbatches=M ...");
    std::ifstream file(folder_ + "/" + step.words[2]);
    if (!file) return wrong_step(fmt::format("cannot read {}", step.words[2]));
    std::stringstream content;
    content << file.rdbuf();
    jobs::NamedProfile profile{step.words[1], scaled(content.str(), step.number("energies", 1)), {}, ""};
    profile.shape.schedule = step.text("schedule", "1f1b");
    profile.shape.microbatches = step.whole("microbatches", 4);
    if (step.find("blocking_power")) profile.shape.blocking_power = Watts(step.number("blocking_power", 0));
    return profile;
  }

  Status profile(const ScenarioStep& step) {
    const auto profile = read_profile(step);
    return profile ? target_.put_profile(*profile) : Status(profile.error());
  }

  Status upload(const ScenarioStep& step) {
    auto profile = read_profile(step);
    if (!profile) return profile.error();
    profile->name.clear();
    return target_.upload_profile(id(step), *profile);
  }

  static jobs::Tier tier_in(const ScenarioStep& step) {
    jobs::Tier tier{step.text("domain")};
    if (step.find("least_rate")) tier.least_rate = step.number("least_rate", 0);
    if (step.find("priority")) tier.priority = step.number("priority", 1);
    return tier;
  }

  Status job(const ScenarioStep& step) {
    jobs::RegisterJob request;
    request.name = step.words.size() > 1 ? step.words[1] : "";
    request.degrees = {step.whole("dp", 1), step.whole("pp", 1), step.whole("tp", 1)};
    request.world_size = step.whole("world_size", 0);
    request.profile = step.text("profile");
    request.detect_stragglers = step.text("detect_stragglers") == "yes";
    for (int p = 0; p < request.degrees.dp; ++p) {
      if (const auto own = step.find(fmt::format("profile.{}", p))) request.profile_of[p] = *own;
    }
    request.profile_online = step.text("profile_online") == "yes";
    request.plain_profiling = step.text("plain_profiling") == "yes";
    if (step.find("model")) request.facts["model"] = step.text("model");
    if (step.find("model_name")) request.facts["model_name"] = step.text("model_name");
    if (step.find("protocol")) request.facts["protocol"] = step.text("protocol");
    request.tier = tier_in(step);
    if (const auto token = step.find("token")) {
      request.tier_bounded = true;
      request.facts[std::string(live::kOwnerFact)] = *token;
      if (const auto team = step.find("team")) request.facts[std::string(jobs::kTeamFact)] = *team;
    }
    if (step.find("switch_latency")) request.switch_latency = Seconds(step.number("switch_latency", 0));
    if (step.find("profiling_slowdown")) request.profiling_slowdown_pct = step.number("profiling_slowdown", 5);
    const int microbatches = step.whole("microbatches", 6);
    if (request.profile_online) {
      request.shape.emplace();
      request.shape->microbatches = microbatches;
    }
    const auto registered = target_.register_job(request);
    if (!registered) return registered.error();
    job_ids_[request.name] = registered->job;
    degrees_[request.name] = request.degrees;
    if (request.profile_online || step.text("trains") == "yes") {
      SimulationOptions simulation;
      simulation.energy_breakdown = step.text("iteration_energies") != "yes";
      simulation.short_computations = step.text("short_computations") == "yes";
      training_.erase(request.name);
      auto& training =
          training_
              .try_emplace(
                  request.name, target_, registered->job, request.degrees, microbatches, simulation, 1,
                  InventedGpu{
                      .clocks = kGpuClocks, .time = step.number("gpu_time", 1), .power = step.number("gpu_power", 1)})
              .first->second;
      if (step.text("energies") == "no") training.without_energies();
      training.energies_from(step.whole("energies_from", 0));
    }
    return Ok{};
  }

  jobs::RegisterRank rank_request(const ScenarioStep& step, int rank) {
    jobs::RegisterRank request = rank_of(id(step), degrees_[step.words[1]], rank);
    if (const auto training = training_.find(step.words[1]); training != training_.end()) {
      request = training->second.registration(rank);
    }
    request.accelerator = fmt::format("{}-gpu-{}", step.words[1], rank);
    request.epoch = step.epoch();
    request.replaces = step.text("replaces") == "yes";
    request.gpu = step.text("gpu");
    request.keeps_budgets = step.text("keeps_budgets") == "yes";
    request.paces = step.text("paces") == "yes";
    request.control = step.text("control");
    request.control_reason = step.text("control_reason");
    return request;
  }

  Status measured(const ScenarioStep& step) {
    jobs::RegisterRank request = rank_request(step, step.whole("rank", 0));
    if (step.find("switch_latency")) request.switch_latency = Seconds(step.number("switch_latency", 0));
    if (step.find("blocking_power")) request.blocking_power = Watts(step.number("blocking_power", 0));
    return target_.register_rank(request);
  }

  Status drop(const ScenarioStep& step) {
    jobs::DropPlan request;
    request.job = id(step);
    request.rank = step.whole("rank", 0);
    const auto answered = waits_.find(step.text("version"));
    request.version = answered == waits_.end() ? step.whole("version", 0) : version_of(answered->second);
    request.reason = step.text("because");
    request.epoch = step.epoch();
    request.microbatches = step.whole("microbatches", 0);
    request.measured = Seconds(step.number("measured", 0));
    request.promised = Seconds(step.number("promised", 0));
    return target_.drop_plan(request);
  }

  Status shape(const ScenarioStep& step) {
    jobs::SeeShape request;
    request.job = id(step);
    request.rank = step.whole("rank", 0);
    request.microbatches = step.whole("microbatches", 0);
    request.prevails = step.text("prevails") == "yes";
    request.varies = step.text("varies");
    request.epoch = step.epoch();
    const auto training = training_.find(step.words[1]);
    if (training != training_.end() && request.prevails) training->second.change(request.microbatches);
    return target_.see_shape(request);
  }

  Status ranks(const ScenarioStep& step) {
    for (int rank = 0; rank < degrees_[step.words[1]].world_size(); ++rank) {
      if (Status registered = target_.register_rank(rank_request(step, rank)); !registered) return registered;
    }
    return Ok{};
  }

  Status rank(const ScenarioStep& step) {
    jobs::RegisterRank request = rank_request(step, step.whole("rank", 0));
    request.dp_rank = step.whole("dp", request.dp_rank);
    request.pp_rank = step.whole("pp", request.pp_rank);
    request.tp_rank = step.whole("tp", request.tp_rank);
    request.accelerator = step.text("accelerator", request.accelerator);
    request.host = step.text("host", request.host);
    if (step.find("switch_latency")) request.switch_latency = Seconds(step.number("switch_latency", 0));
    if (step.text("clock") == "none") {
      request.clocks_mhz.clear();
    } else if (step.find("clock")) {
      request.clocks_mhz = {step.whole("clock", 0)};
    }
    return target_.register_rank(request);
  }

  Status report(const ScenarioStep& step) {
    jobs::ReportIterations request;
    request.job = id(step);
    request.rank = step.whole("rank", 0);
    if (step.find("iteration")) request.last_iteration = step.whole("iteration", 0);
    const auto count = static_cast<std::size_t>(step.whole("count", 1));
    if (step.find("time")) request.iteration_time.assign(count, Seconds(step.number("time", 0)));
    if (step.find("slower")) {  // than planned
      const auto view = target_.job(request.job);
      if (!view) return view.error();
      const int pipeline = request.rank / (view->degrees.pp * view->degrees.tp);
      request.iteration_time.assign(count, step.number("slower", 1) * view->pipelines[pipeline].time);
    }
    if (step.find("drawn")) {  // of what is planned, by all ranks alike
      const auto view = target_.job(request.job);
      if (!view) return view.error();
      if (!view->per_iteration) return wrong_step("drawn=: the job has no plan");
      const double ranks = view->degrees.world_size();
      request.iteration_energy.assign(count, (step.number("drawn", 1) / ranks) * view->per_iteration->energy);
    }
    if (step.find("plan_version")) request.plan_version = step.whole("plan_version", 0);
    if (step.find("energy")) request.iteration_energy.assign(count, Joules(step.number("energy", 0)));
    if (step.find("microbatches")) request.microbatches.assign(count, step.whole("microbatches", 0));
    if (step.find("window")) request.window = step.whole("window", 0);
    request.missed = step.text("missed");
    request.epoch = step.epoch();
    for (int n = step.whole("times", 1); n > 0; --n) {
      if (Status reported = target_.report_iterations(request); !reported) return reported;
    }
    return Ok{};
  }

  Status train(const ScenarioStep& step) {
    const auto training = training_.find(step.words.size() > 1 ? step.words[1] : "");
    if (training == training_.end()) return wrong_step("no such job with profile_online=yes");
    if (!step.find("windows")) return training->second.run_until_plan(step.whole("most", 200));
    std::set<int> silent;
    std::stringstream ranks(step.text("silent"));
    for (std::string rank; std::getline(ranks, rank, ',');) silent.insert(formats::number_in<int>(rank).value_or(-1));
    for (int n = step.whole("windows", 1); n > 0; --n) {
      if (const auto ran = training->second.run_window(silent); !ran) return ran.error();
    }
    return Ok{};
  }

  Status finish(const ScenarioStep& step) { return target_.finish_job(id(step)); }

  Status straggler(const ScenarioStep& step) {
    jobs::SetStraggler request;
    if (step.words.size() > 1 && step.words[1] != "any") request.job = id(step);
    request.target.accelerator = step.text("accelerator");
    if (step.find("rank")) request.target.rank = step.whole("rank", 0);
    if (step.find("pipeline")) request.target.pipeline = step.whole("pipeline", 0);
    request.delay = Seconds(step.number("delay", 0));
    request.degree = step.number("degree", 1);
    const auto set = target_.set_straggler(request);
    if (!set) return set.error();
    if (const auto name = step.find("as")) notices_[*name] = set->notices.at(0).id;
    return Ok{};
  }

  Status withdraw(const ScenarioStep& step) {
    if (step.words.size() < 3) return wrong_step("withdraw JOB NOTICE");
    const auto known = notices_.find(step.words[2]);
    return target_.withdraw_straggler({id(step), known == notices_.end() ? step.words[2] : known->second});
  }

  Status policy(const ScenarioStep& step) {
    auto policy = policy_in(step, start_s_);
    return policy ? target_.set_policy({id(step), *std::move(policy)}) : Status(policy.error());
  }

  Status clear(const ScenarioStep& step) {
    return target_.clear_policy({id(step), step.words.size() > 2 ? step.words[2] : ""});
  }

  Status tier(const ScenarioStep& step) {
    return target_.set_tier({id(step), tier_in(step), step.text("reset") == "yes"});
  }

  Status wait(const ScenarioStep& step) {
    jobs::WaitForPlan request;
    request.job = id(step);
    request.rank = step.whole("rank", 0);
    const auto earlier = waits_.find(step.text("have"));  // the version with which this wait was answered
    request.have_version = earlier == waits_.end() ? step.whole("have", 0) : version_of(earlier->second);
    if (step.find("iteration")) request.iteration = step.whole("iteration", 0);
    if (step.find("most")) request.max_wait_s = step.number("most", 0);
    request.epoch = step.epoch();
    const int wait = target_.wait_for_plan(request);
    waits_[step.text("as", "w")] = wait;
    const auto answer = target_.answer_of(wait);
    return answer ? status_of(*answer) : Status(Ok{});
  }

  std::int64_t version_of(int wait) {
    const auto answer = target_.answer_of(wait);
    return answer && *answer && (*answer)->schedule ? (*answer)->schedule->version : 0;
  }

  Status waiting(const ScenarioStep& step) {
    const auto wait = waits_.find(step.words.size() > 1 ? step.words[1] : "w");
    if (wait == waits_.end()) return wrong_step("no such wait");
    if (const auto answer = target_.answer_of(wait->second)) {
      return wrong_step(fmt::format("expected to wait still, but there is an answer: version {}",
                                    *answer && (*answer)->schedule ? (*answer)->schedule->version : -1));
    }
    return Ok{};
  }

  Status close_wait(const ScenarioStep& step) {
    const auto wait = waits_.find(step.words.size() > 1 ? step.words[1] : "w");
    if (wait == waits_.end()) return wrong_step("no such wait");
    if (target_.answer_of(wait->second)) return wrong_step("the wait has its answer");
    target_.close_wait(wait->second);
    return Ok{};
  }

  Status answered(const ScenarioStep& step) {
    const auto wait = waits_.find(step.words.size() > 1 ? step.words[1] : "w");
    if (wait == waits_.end()) return wrong_step("no such wait");
    const auto answer = target_.answer_of(wait->second);
    if (!answer) return wrong_step("expected an answer, but it still waits");
    if (!*answer) return answer->error();
    return compare(step, facts_of(**answer));
  }

  /// Does what is due now.
  void let_act() { target_.go_to(target_.now_s() - start_s_); }

  Status site(const ScenarioStep& step) {
    const auto document = site_document(step, start_s_);
    return document ? target_.set_site(*document) : Status(document.error());
  }
  Status no_site(const ScenarioStep&) { return target_.set_site(""); }
  Status meter(const ScenarioStep& step) {
    const auto readings = meter_readings(step, start_s_);
    return readings ? target_.read_meter(*readings) : Status(readings.error());
  }
  Status admit(const ScenarioStep& step) {
    const AdmissionStep admission = admission_step(step, job_ids_);
    const auto answer = target_.admit(admission.request);
    if (!answer) return answer.error();
    const auto facts = admission_facts(*answer, start_s_);
    return facts ? compare(admission.expected, *facts) : Status(facts.error());
  }
  Status release(const ScenarioStep& step) {
    return target_.release_admission(step.words.size() > 1 ? step.words[1] : "");
  }
  Status power(const ScenarioStep& step) {
    let_act();
    const auto view = target_.site_power();
    if (!view) return view.error();
    const auto facts = power_facts(*view, step.words.size() > 1 ? step.words[1] : "");
    return facts ? compare(step, *facts) : Status(facts.error());
  }
  /// The job's ranks, or one, get the newest plan and then say that they have it.
  Status follow(const ScenarioStep& step) {
    const int world_size = degrees_[step.words.size() > 1 ? step.words[1] : ""].world_size();
    for (int rank = 0; rank < world_size; ++rank) {
      if (step.find("rank") && step.whole("rank", 0) != rank) continue;
      std::int64_t version = 0;
      for (int asks = 0; asks < 2; ++asks) {
        jobs::WaitForPlan request{id(step), rank, version, std::nullopt, 0.0, step.epoch()};
        const int wait = target_.wait_for_plan(request);
        const auto answer = target_.answer_of(wait);
        if (answer && !*answer) return answer->error();
        if (version == 0) version = version_of(wait);
      }
    }
    let_act();
    return Ok{};
  }

  Status expect(const ScenarioStep& step) {
    const auto view = target_.job(id(step));
    if (!view) return view.error();
    return compare(step, facts_of(*view));
  }

  Status at(const ScenarioStep& step) {
    std::string time = step.words.size() > 1 ? step.words[1] : "";
    double unit = 1;
    if (!time.empty()) {
      unit = time.back() == 'd' ? 86400 : time.back() == 'h' ? 3600 : time.back() == 'm' ? 60 : 1;
      time.pop_back();
    }
    const auto seconds = formats::number_in<double>(time);
    if (!seconds) return wrong_step("at TIME, for example 30s, 5m, 2h, 7d");
    target_.go_to(*seconds * unit);
    return Ok{};
  }
  Status vanish(const ScenarioStep& step) {
    target_.lose_job(id(step));
    return Ok{};
  }

  std::string folder_;
  ScenarioTarget& target_;
  double start_s_ = target_.now_s();
  std::map<std::string, std::string> job_ids_;
  std::map<std::string, jobs::Degrees> degrees_;
  std::map<std::string, std::string> notices_;
  std::map<std::string, int> waits_;
  std::map<std::string, Training> training_;
};

}  // namespace

Status play(std::string_view text, const std::string& name, const std::string& folder, ScenarioTarget& target) {
  Player player(folder, target);
  std::stringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (Status played = player.play_line(line); !played) {
      return Error{played.error().code, fmt::format("{}:{}: {}: {}", name, number, line, played.error().message)};
    }
  }
  return Ok{};
}

}  // namespace perseus::testing
