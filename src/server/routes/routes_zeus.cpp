// Two existing client protocols on the same paths: Zeus's PipelineFrequencyOptimizer, and the client published with
// the paper. The content of the registration distinguishes them; extra members are ignored.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <ctime>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "io/formats/json_reader.h"
#include "server/jobs/job.h"
#include "server/routes/api.h"
#include "server/routes/call_input.h"

namespace perseus::routes {
namespace {

std::string text_or_nothing(formats::JsonFields& fields, std::string_view key) {
  const auto member = fields.optional(key);
  return member && !member->is_null() ? std::string(fields.string(key)) : "";
}

/// The members of a body; other ones are ignored.
template <class Value>
Result<Value> read_members(std::string_view text, Result<Value> (*read)(formats::JsonFields&)) {
  if (Status checked = check_values(text); !checked) return checked.error();
  const auto document = formats::parse_json(text, "body");
  if (!document) return document.error();
  formats::JsonFields fields(document->root());
  auto value = read(fields);
  if (fields.error()) return *fields.error();
  return value;
}

/// The job name that these clients' servers use; a random part is added to make it unguessable.
std::string id_prefix(const jobs::Degrees& degrees, const std::string& metadata, double now_s) {
  const auto now = fmt::gmtime(static_cast<std::time_t>(now_s));
  std::string prefix =
      fmt::format("{:%Y-%m-%d-%H-%M-%S}+dp{}+pp{}+tp{}+perseus", now, degrees.dp, degrees.pp, degrees.tp);
  if (!metadata.empty()) prefix += "+" + metadata;
  return prefix + "+";
}

std::string zeus_schedule(const jobs::StageSchedule& schedule) {
  return json_object([&](JsonWriter& f) {
    f.always("frequencies", JsonList{schedule.clocks, [](const formats::ClockedInstruction& planned) {
                                       return std::pair(std::string_view(planned.instruction), planned.clock);
                                     }});
  });
}

/// One clock for each of the rank's own instructions: the planned one where there is one, otherwise the previous one.
std::string artifact_schedule(const jobs::StageSchedule& schedule) {
  std::vector<Megahertz> clocks;
  std::size_t next = 0;
  for (const std::string& instruction : schedule.instructions) {
    Megahertz clock = clocks.empty() ? Megahertz(0) : clocks.back();
    if (next < schedule.clocks.size() && instruction == schedule.clocks[next].instruction) {
      clock = schedule.clocks[next++].clock;
    }
    clocks.push_back(clock);
  }
  return json_object([&](JsonWriter& f) { f.always("power_states", clocks); });
}

template <class Answer>
std::string null_of(const Answer& /*answer*/) {
  return "null";
}

std::string schedule_json(const jobs::PlanAnswer& answer) {
  const jobs::StageSchedule& schedule = *answer.schedule;
  auto& text = schedule.rendered["zeus"];
  if (!text) {
    text = std::make_shared<const std::string>(schedule.instructions.empty() ? zeus_schedule(schedule)
                                                                             : artifact_schedule(schedule));
  }
  return json_object([&](JsonWriter& f) {
    f.always("rank", answer.rank);
    f.members_of(*text);
  });
}

void read_place(formats::JsonFields& fields, jobs::RegisterRank& rank) {
  rank.rank = fields.integer("rank");
  rank.dp_rank = fields.integer("dp_rank");
  rank.pp_rank = fields.integer("pp_rank");
  rank.tp_rank = fields.integer("tp_rank");
}

jobs::ReportIterations::Breakdown breakdown_of(formats::JsonFields& fields, std::string_view key) {
  jobs::ReportIterations::Breakdown breakdown;
  const auto member = fields.optional(key);
  if (!member || member->is_null()) return breakdown;
  const Status read = member->for_each_member([&](std::string_view name, const formats::JsonReader& lists) -> Status {
    auto& iterations = breakdown[std::string(name)];
    return lists.for_each([&](const formats::JsonReader& list) -> Status {
      auto values = list.numbers();
      if (!values) return values.error();
      iterations.push_back(std::move(*values));
      return Ok{};
    });
  });
  if (!read) breakdown.clear();
  return breakdown;
}

}  // namespace

void Api::legacy_info(Call call) {
  call.answer(json_object([](JsonWriter& f) {
    f.always("scheduler", "Perseus");
    f.always("scheduler_args", JsonObject{[](JsonWriter&) {}});
    f.always("log_level", "INFO");
    f.always("mode", "frequency");
    f.always("dump_data", false);
    f.always("dump_dir", "");
  }));
}

template <>
Result<LegacyJob> parse_body(std::string_view text) {
  return read_members<LegacyJob>(text, [](formats::JsonFields& fields) -> Result<LegacyJob> {
    jobs::RegisterJob job;
    job.degrees = {fields.integer("dp_degree"), fields.integer("pp_degree"), fields.integer("tp_degree")};
    job.world_size = fields.integer("world_size");
    job.name = text_or_nothing(fields, "job_metadata");
    if (const auto microbatches = fields.optional("num_microbatches")) {  // the artifact's client
      for (const std::string_view fact : {"framework", "model_name", "partition_method"}) {
        job.facts.emplace(fact, fields.string(fact));
      }
      job.facts.emplace("microbatch_size", std::to_string(fields.integer("microbatch_size")));
      job.facts.emplace(jobs::kProtocolFact, "artifact");
      job.name = job.facts["model_name"];
      jobs::PipelineShape shape;
      shape.microbatches = fields.integer("num_microbatches");
      job.shape = shape;
    } else {
      job.facts.emplace(jobs::kProtocolFact, "zeus");
      job.profile = job.name;
    }
    return LegacyJob{std::move(job)};
  });
}

void Api::legacy_register_job(Call call, LegacyJob body) {
  jobs::RegisterJob& job = body.job;
  // Ids stay short and plain whatever the metadata contain.
  std::string metadata = job.name;
  std::erase_if(metadata, [](char c) {
    return (std::isalnum(static_cast<unsigned char>(c)) == 0) && c != '-' && c != '_' && c != '.';
  });
  metadata.resize(std::min<std::size_t>(metadata.size(), 64));
  job.id_prefix = id_prefix(job.degrees, metadata, clock_.now_s());
  const bool may_be_known = job.shape.has_value();
  auto own = owned(call, std::move(job));
  if (!own) return call.fail(own.error());
  const auto made = then<jobs::RegisterJobAnswer>(
      call, [](const jobs::RegisterJobAnswer& registered) { return json_text(registered.job); });
  if (!may_be_known) return service_.registrations.register_job(*std::move(own), made);
  service_.profiles.names(
      [this, request = *std::move(own), made](const Result<std::vector<std::string>>& names) mutable {
        if (!names) return made(names.error());
        if (std::ranges::find(*names, request.name) != names->end()) {
          request.profile = request.name;  // known from an earlier run
          request.shape.reset();
        } else {
          request.profile_online = true;
        }
        service_.registrations.register_job(std::move(request), made);
      });
}

template <>
Result<LegacyRank> parse_body(std::string_view text) {
  return read_members<LegacyRank>(text, [](formats::JsonFields& fields) -> Result<LegacyRank> {
    jobs::RegisterRank rank;
    rank.clocks_mhz = fields.integers("available_frequencies");
    read_place(fields, rank);
    return LegacyRank{std::move(rank)};
  });
}

template <>
Result<ArtifactRank> parse_body(std::string_view text) {
  return read_members<ArtifactRank>(text, [](formats::JsonFields& fields) -> Result<ArtifactRank> {
    jobs::RegisterRank rank;
    rank.job = fields.string("job_id");
    if (const auto schedule = fields.optional("pipe_schedule")) {
      const Status read = schedule->for_each([&](const formats::JsonReader& instruction) -> Status {
        const auto name = instruction.string();
        if (!name) return name.error();
        rank.instructions.emplace_back(*name);
        return Ok{};
      });
      if (!read) return read.error();
    }
    rank.clocks_mhz = fields.integers("power_state_range");
    read_place(fields, rank);
    if (!fields.error() && rank.instructions.empty()) {
      return Error{ErrorCode::invalid_input, "body: $.pipe_schedule: expected the rank's instructions, one at least"};
    }
    return ArtifactRank{std::move(rank)};
  });
}

void Api::legacy_register_rank(Call call, LegacyRank body) {
  body.rank.job = call.parts[0];
  service_.registrations.register_rank(std::move(body.rank),
                                       then<jobs::RegisterRankAnswer>(call, null_of<jobs::RegisterRankAnswer>));
}

void Api::artifact_register_rank(Call call, ArtifactRank body) {
  const std::string job = body.rank.job;
  if_it_reaches(std::move(call), job, [this, rank = std::move(body.rank)](const Call& reaching) {
    service_.registrations.register_rank(rank,
                                         then<jobs::RegisterRankAnswer>(reaching, null_of<jobs::RegisterRankAnswer>));
  });
}

void Api::legacy_schedule(Call call) {
  const auto text = call.request.parameter("rank").value_or("");
  jobs::WaitForPlan wait;
  wait.job = call.parts[0];
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), wait.rank);
  if (text.empty() || problem != std::errc{} || end != text.data() + text.size()) {
    return call.fail({ErrorCode::usage, fmt::format("'rank' is '{}'; expected a rank's number", text)});
  }
  wait.asks_once = true;
  wait_for_plan(call, std::move(wait), schedule_json);
}

template <>
Result<LegacyResult> parse_body(std::string_view text) {
  return read_members<LegacyResult>(text, [](formats::JsonFields& fields) -> Result<LegacyResult> {
    jobs::ReportIterations report;
    report.rank = fields.integer("rank");
    for (const double time : fields.numbers("iter_time")) report.iteration_time.emplace_back(time);
    for (const double energy : fields.numbers("iter_energy")) report.iteration_energy.emplace_back(energy);
    report.time_s = breakdown_of(fields, "time_breakdown");
    report.energy_j = breakdown_of(fields, "energy_breakdown");
    return LegacyResult{std::move(report)};
  });
}

void Api::legacy_result(Call call, LegacyResult body) {
  body.report.job = call.parts[0];
  service_.reports.report(std::move(body.report),
                          then<jobs::ReportedIterations>(call, null_of<jobs::ReportedIterations>));
}

}  // namespace perseus::routes
