// Facts about a rank that training reveals after its registration, and when they are news to the server.
//
// Input:   recorded steps; the switch latency, blocking power and clock control as they are now.
// Output:  the facts to send: the first list of instructions, a value that differs by more than 10 % from the one sent
//          before, clocks of a rank that registered without any, a gain or a lasting loss of clock control.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "training/client/messages.h"
#include "training/client/power_model.h"
#include "training/client/step_recorder.h"

namespace perseus::client {

class LearnedFacts {
 public:
  struct Now {
    double switch_latency_s = 0;  ///< 0: not known, or given by an option
    PowerEstimate blocking;       ///< 0: not known, or given by an option
    std::vector<int> clocks_mhz;  ///< highest first
    bool has_control = false;     ///< a clock controller exists
    bool sets_clocks = false;     ///< ... and a helper of it works
    std::function<std::string()> why_no_clocks;
  };

  /// The facts with which the rank registered.
  void registered(RankFacts facts) { sent_ = std::move(facts); }
  /// Takes the instructions of the first whole training step.
  void ran(const Step& step);
  /// All facts, if one of them is news.
  std::optional<RankFacts> news(const Now& now, double now_s);

 private:
  bool learns_values(const Now& now);
  bool control_changed(const Now& now, double now_s);

  RankFacts sent_;
  bool sent_instructions_ = false;
  double control_lost_s_ = 0;  ///< since when no helper sets clocks; 0: one does
};

}  // namespace perseus::client
