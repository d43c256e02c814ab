// Gives the jobs of a server a utility's prices or emissions, as the signal of their policy max_slowdown.
//
// Problem: the signal is a part of each job's policy, jobs come and go, and operators set policies too.
// Input:   a server; the policy; which jobs; the steps of the signal.
// Output:  every live job that the selector names has the policy with this signal. A policy max_slowdown that is not
//          from here (its unit says so) stays as it is. Times without a value have the threshold, so that no job is
//          slow then. At most kMostChanges jobs per call; the others follow with the next one.
// Errors:  the server's; of single jobs: lines for the log.
// Cost:    the lists of jobs and policies, a call per job that has another signal.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/http/http_client.h"
#include "server/openadr/signal_steps.h"

namespace perseus::cli {

struct SignalPolicy {
  std::string payload;  ///< PRICE or GHG; empty: none is followed
  double slowdown = 1, threshold = 0;
  std::string selector;  ///< as GET /v1/jobs has it; empty: all jobs
};

inline constexpr int kMostChanges = 1000;

/// The number of jobs that were changed.
Result<int> set_job_signals(const http::HttpPeer& server, const SignalPolicy& policy,
                            const std::vector<openadr::SignalStep>& steps,
                            const std::function<void(const std::string&)>& log);

}  // namespace perseus::cli
