// Events, policies and straggler targets as sentences for people, and who caused an event.
//
// Errors:  none.
// Threads: pure functions.
#pragma once

#include <string>

#include "server/jobs/event.h"

namespace perseus::jobs {

struct Job;

/// One sentence for people.
std::string text_of(const Event& event);
/// Who caused it: the name of a token ("alice"; without a name "token 1a2b3c4d5e6f"), "client" (of a server without
/// tokens), "rank 3", or "server". Empty: not known, as in logs of earlier versions.
std::string author_of(const Event& event);
/// The event as its readers get it.
JobEvent job_event(const std::string& job, std::int64_t sequence, const Event& event);

/// "accelerator GPU-1", "rank 5", "pipeline 2"
std::string text_of(const StragglerTarget& target);
/// "power cap 250 kW"
std::string text_of(const Policy& policy);
/// "tier of domain row-a, least rate 0.9, priority 2"
std::string text_of(const Tier& tier);
/// "rank 3 dropped plan 5: iterations took 0.71 s, 0.67 s was promised"
std::string text_of(const PlanDropped& dropped);
/// "no plan can fit: 9 numbers of microbatches ...", and what to do
std::string text_of_varying(const std::string& seen);
/// "rank 3 on node-7 and 2 more do not call, while others do"; empty: no rank of it alone is silent.
std::string text_of_silent_ranks(const Job& job);
/// "rank 3 cannot set its clock: insufficient permissions"
std::string text_of_control(int rank, const std::string& control, const std::string& reason);

}  // namespace perseus::jobs
