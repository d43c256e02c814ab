// Checked copy of perseus_options: strings owned, defaults filled in.
//
// Input:   the C struct of any size up to ours.
// Output:  ClientOptions; impossible values (negative degrees, ranks outside of them) are corrected, with a sentence
//          for the log.
// Errors:  none: the client fails open.
#pragma once

#include <perseus/perseus.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "training/client/complaints.h"
#include "training/client/device_progress.h"
#include "training/client/plan_guard.h"
#include "training/clock_control/restart_pause.h"

namespace perseus::client {

/// Timeouts of the session with the server; the C ABI has the defaults.
struct SessionTiming {
  double poll_s = 10;   ///< the server holds a request for a plan at most this long
  double answer_s = 5;  ///< ... and every other response arrives within this time, or counts as missing
  double grace_s = 5;
  double least_wait_s = 0.25, most_wait_s = 5;
  double clocks_s = 30;  ///< reports of iterations contain what was seen of the clocks at most this often
};

struct ClientOptions {
  std::string server, token, ca_file;
  std::string job, job_name;
  std::map<std::string, std::string> facts, labels;
  std::string domain;                          ///< tier; empty: not given
  std::optional<double> least_rate, priority;  ///< tier
  std::string profile, schedule, action_table;
  int microbatches = 0, chunks = 1;
  int rank = 0, dp_rank = 0, pp_rank = 0, tp_rank = 0;
  int dp_degree = 1, pp_degree = 1, tp_degree = 1;
  std::string device;  ///< empty: find it; "none": no GPU
  std::string accelerator, helper;
  double blocking_power_w = 0, transfer_latency_s = 0;
  double start_limit_s = 5, report_interval_s = 2;
  double switch_latency_s = -1;                     ///< 0: measured at the start; negative: only while training runs
  double plan_tolerance = 0.01;                     ///< see PlanGuard; negative: plans are not judged
  double most_slowdown = PlanGuard::kMostSlowdown;  ///< of plans that are slower on purpose, see PlanGuard
  bool advice_only = false, no_energy = false;
  bool reports_straggler = true;            ///< the rank reports that it became slower below its clock
  bool synchronous = false;                 ///< the program waits for its device in every computation
  bool paces = false;                       ///< the begin of an iteration may wait, see Pacer
  std::optional<ProgressWay> progress_way;  ///< none: the first way that works
  SessionTiming timing;
  clock_control::RestartLimits helper_restart{1, 300};
  Complaints::Log log;
  PauseLimits log_pauses;

  [[nodiscard]] int world_size() const { return dp_degree * pp_degree * tp_degree; }
};

perseus_options default_options();
/// `remarks` receives a sentence for each corrected value.
ClientOptions read_options(const perseus_options* options, std::vector<std::string>& remarks);

}  // namespace perseus::client
