// Calls of /v1/site/admission: a scheduler asks before it starts a job.
#include <utility>

#include "server/routes/api.h"
#include "server/routes/site_json.h"

namespace perseus::routes {

void Api::admit_job(Call call) {
  auto request = jobs::parse_admission_request(call.request.body, "body");
  if (!request) return call.fail(request.error());
  request->by = author_of(call.identity);
  service_.admit(*std::move(request), then<service::Admission>(call, admission_json));
}

void Api::release_admission(Call call) {
  service_.release_admission(call.parts[0], then_ok(call), author_of(call.identity));
}

}  // namespace perseus::routes
