// The steps `site` and `power` of scenarios: a site document from options, and the facts of a view of its power.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "tests/server/scenario/scenario_step.h"

namespace perseus::testing {

/// `site hall=8000 row=0:4000,60:3000 parent.rack=row host.n1=row prefix.a-=row lease=15 dwell=10`: each other option
/// is a domain with its limits, the first one the site; times in seconds after the start, `none` for no limit.
Result<std::string> site_document(const ScenarioStep& step, double start_s);

/// The body of POST /v1/site/meter for a step `meter DOMAIN=WATTS [at=SECONDS]`.
Result<std::string> meter_readings(const ScenarioStep& step, double start_s);

/// `admit JOB accelerators=N [domain=D] [hosts=H,H] [accelerator_w=W] [profile=P] [like_job=J] [least_rate=R]
/// [dry_run=yes] ...`: the body of POST /v1/site/admission, and what the other options expect of the answer.
struct AdmissionStep {
  std::string request;
  ScenarioStep expected;
};
AdmissionStep admission_step(const ScenarioStep& step, const std::map<std::string, std::string>& job_ids);
/// Times in seconds after the start.
Result<ScenarioFacts> admission_facts(const std::string& answer, double start_s);

/// Of the job, domain or reservation of that name in the answer to GET /v1/site/power.
Result<ScenarioFacts> power_facts(const std::string& view, const std::string& name);

}  // namespace perseus::testing
