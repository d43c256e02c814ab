// Calls of /v1/site/admission: a scheduler asks before it starts a job.
#include <utility>

#include "server/routes/call_input.h"
#include "server/routes/site_json.h"

namespace perseus::routes {

void Api::admit_job(Call call, jobs::AdmissionRequest body) {
  body.by = author_of(call.identity);
  service_.admissions.admit(std::move(body), then<power::Admission>(call, admission_json));
}

void Api::release_admission(Call call) {
  service_.admissions.release(call.parts[0], then_ok(call), author_of(call.identity));
}

}  // namespace perseus::routes
