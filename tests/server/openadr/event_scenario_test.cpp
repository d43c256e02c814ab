// Stories of events, each a text file in scenarios/: what the utility's server has, and what a site is limited to.
//
// A line is a step; '#' begins a comment:
//   default W | baseline W | emergency W | level N W    settings, before the first `at`
//   at TIME                   time passes until then; polls happen every 45 s
//   event JSON                the server has this event, also on the following lines until an empty one
//   delete ID | hide ID       it is gone; hide: from lists only
//   fails | works             the server does not answer lists, or does again
//   refuse | accept           the receiver of the limits
//   forget                    the receiver loses them
//   limit TIME W | none       the limit at a time, of the schedule that was sent last
//   sent N                    number of schedules sent since the beginning
//   logged TEXT               a line of the log since the last `logged` contains TEXT
//   unread TEXT | none        the sentence on unread limits that was sent last contains TEXT, or is empty
//   restart                   a new client begins, of the same server and receiver
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "server/openadr/event_follower.h"

namespace perseus::openadr {
namespace {

/// A server whose lists and calls a story sets.
class StorySource final : public EventSource {
 public:
  Result<ListedEvents> events() override {
    if (fails) return Error{ErrorCode::unavailable, "the server does not answer"};
    std::string text;
    for (const auto& [id, json] : texts) {
      if (hidden.contains(id)) continue;
      text += (text.empty() ? "" : ",") + json;
    }
    auto list = parse_events("[" + text + "]", "list");
    if (!list) return list.error();
    return ListedEvents{{*std::move(list)}, {{"program-kw", {{"DISPATCH_SETPOINT", "W"}}}}};
  }
  Result<std::optional<GridEvent>> event(const std::string& id) override {
    const auto found = texts.find(id);
    if (found == texts.end()) return std::optional<GridEvent>();
    auto one = parse_event(found->second, "event");
    if (!one) return one.error();
    return std::optional(*std::move(one));
  }
  std::map<std::string, std::string> texts;
  std::set<std::string> hidden;
  bool fails = false;
};

double time_of(const std::string& text) {
  const auto time = parse_event_time(text);
  EXPECT_TRUE(time && *time) << text;
  return time && *time ? **time : 0;
}

class Story : private FollowerHost {
 public:
  void run(const std::filesystem::path& path) {
    const std::string name = path.filename().string();
    std::ifstream file(path);
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      const ::testing::ScopedTrace trace(name.c_str(), number, line);
      std::istringstream words(line.substr(0, line.starts_with('#') ? 0 : std::string::npos));
      std::string verb;
      if (!(words >> verb)) continue;
      if (verb == "event") {
        std::string more;
        for (; std::getline(file, more) && !more.empty(); ++number) line += "\n" + more;
        ++number;
        add_event(line.substr(verb.size()));
      } else {
        step(verb, words);
      }
    }
  }

 private:
  void step(const std::string& verb, std::istringstream& words) {
    std::string text, more;
    std::getline(words >> std::ws, text);
    std::istringstream parts(text);
    parts >> more;
    if (verb == "default") return void(options_.settings.default_limit = Watts(std::stod(text)));
    if (verb == "baseline") return void(options_.settings.baseline = Watts(std::stod(text)));
    if (verb == "emergency") return void(options_.settings.emergency = Watts(std::stod(text)));
    if (verb == "level") {
      double watts = 0;
      parts >> watts;
      return void(options_.settings.levels.at(std::stoul(more)) = Watts(watts));
    }
    if (verb == "at") return pass_until(time_of(text));
    if (verb == "delete") return void(source_.texts.erase(text));
    if (verb == "hide") return void(source_.hidden.insert(text));
    if (verb == "fails" || verb == "works") return void(source_.fails = verb == "fails");
    if (verb == "refuse" || verb == "accept") return void(refuses_ = verb == "refuse");
    if (verb == "sent") {
      EXPECT_EQ(sent_, std::stoi(text));
      return;
    }
    if (verb == "forget") return steps_.clear();
    if (verb == "logged") return expect_logged(text);
    if (verb == "unread") return expect_unread(text);
    if (verb == "restart") return follower_.reset();
    ASSERT_EQ(verb, "limit");
    std::string watts;
    parts >> watts;
    expect_limit(time_of(more), watts);
  }
  void add_event(const std::string& json) {
    const auto list = parse_events("[" + json + "]", "event");
    ASSERT_TRUE(list) << list.error().message;
    source_.texts[list->at(0).id] = json;
  }
  void pass_until(double time_s) {
    if (!follower_) {
      clock_.turn_to(time_s);
      FollowerParts parts;
      parts.source = &source_;
      parts.host = this;
      parts.wall = &clock_;
      parts.unstepped = &clock_;
      options_.seed = "site-7";
      follower_.emplace(options_, parts);
      next_s_ = time_s;
    }
    while (next_s_ <= time_s) {
      clock_.turn_to(next_s_);
      next_s_ += std::max(follower_->step(), 0.001);
    }
    clock_.turn_to(time_s);
  }
  Status send(const SentLimits& limits) override {
    if (refuses_) return Error{ErrorCode::unavailable, "the receiver does not answer"};
    ++sent_;
    steps_ = limits.steps;
    unread_ = limits.unread;
    return Ok{};
  }
  Result<SentLimits> received() override {
    if (refuses_) return Error{ErrorCode::unavailable, "the receiver does not answer"};
    return SentLimits{steps_, unread_};
  }
  void polled(std::span<const SeenEvent> /*events*/, const std::map<std::string, PayloadUnits>& /*program_units*/,
              double /*now_s*/) override {}
  void log(const std::string& line) override { log_ += line + "\n"; }
  double random() override { return 0.5; }
  void expect_limit(double time_s, const std::string& watts) {
    ASSERT_FALSE(steps_.empty());
    const auto limit = steps_from(time_s, steps_).front().limit;
    if (watts == "none") {
      EXPECT_FALSE(limit) << limit->value();
    } else {
      ASSERT_TRUE(limit);
      EXPECT_DOUBLE_EQ(limit->value(), std::stod(watts));
    }
  }
  void expect_logged(const std::string& text) {
    EXPECT_NE(log_.find(text), std::string::npos) << log_;
    log_.clear();
  }

  void expect_unread(const std::string& text) {
    if (text == "none") {
      EXPECT_EQ(unread_, "");
    } else {
      EXPECT_NE(unread_.find(text), std::string::npos) << unread_;
    }
  }

  HandTurnedClock clock_;
  StorySource source_;
  FollowerOptions options_;
  std::optional<EventFollower> follower_;
  double next_s_ = 0;
  bool refuses_ = false;
  int sent_ = 0;
  std::vector<WattStep> steps_;
  std::string log_, unread_;
};

class EventScenario : public ::testing::TestWithParam<std::string> {};

TEST_P(EventScenario, IsAsWritten) {
  Story().run(std::filesystem::path(PERSEUS_SOURCE_DIR) / "tests/server/openadr/scenarios" / (GetParam() + ".txt"));
}

std::vector<std::string> scenarios() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(PERSEUS_SOURCE_DIR) /
                                                              "tests/server/openadr/scenarios")) {
    names.push_back(file.path().stem().string());
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Files, EventScenario, ::testing::ValuesIn(scenarios()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace perseus::openadr
