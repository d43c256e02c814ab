// Any text is an event or an error that names the log; an event comes back as it was written.
#include <cstdint>

#include "server/jobs/event.h"
#include "server/jobs/event_text.h"
#include "server/jobs/job.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perseus;
  using namespace perseus::jobs;
  const auto event = jobs::parse_event({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!event) {
    PERSEUS_CHECK(event.error().message.starts_with("fuzz"), "the error names the log");
    return 0;
  }
  const auto again = jobs::parse_event(jobs::format_event(*event), "again");
  PERSEUS_CHECK(again.ok() && *again == *event, "comes back as it was");
  (void)jobs::text_of(*event);
  // A job takes it or refuses it, and one that was refused is as before.
  jobs::Job job;
  for (const std::string_view text :
       {R"({"kind":"job_registered","at_s":1,"degrees":{"dp":2,"pp":2,"tp":1}})",
        R"({"kind":"rank_registered","at_s":2,"rank":0})", R"({"kind":"profile_known","at_s":3,"input":"a"})",
        R"({"kind":"straggler_notice","at_s":3,"id":"s1","target":{"rank":0},"degree":1.2,"effective_s":9})",
        R"({"kind":"characterization_started","at_s":4,"inputs":["a"]})"}) {
    const jobs::Job before = job;
    if (!jobs::apply(job, *event)) PERSEUS_CHECK(job == before, "a refused event changes nothing");
    job = before;
    const auto next = jobs::parse_event(text, "known");
    PERSEUS_CHECK(next.ok() && jobs::apply(job, *next).ok(), "a log that is in order");
  }
  return 0;
}
