#include "server/live/learned_profile.h"

#include <fmt/format.h>

#include "server/jobs/describe.h"
#include "server/jobs/identity.h"
#include "server/jobs/pipeline_input.h"

namespace perseus::live {

namespace {

std::string fact(const std::map<std::string, std::string>& facts, std::string_view name) {
  const auto found = facts.find(std::string(name));
  return found == facts.end() ? std::string() : found->second;
}

/// "model" is the name in our own clients, "model_name" in the published one.
std::string model_of(const std::map<std::string, std::string>& facts) {
  return fact(facts, "model").empty() ? fact(facts, "model_name") : fact(facts, "model");
}

}  // namespace

std::string learned_key(const jobs::Degrees& degrees, const std::map<std::string, std::string>& facts,
                        const std::optional<jobs::PipelineShape>& shape) {
  const std::string model = model_of(facts);
  if (model.empty()) return "";
  std::string text = fmt::format("{} {}\nmodel={}\n", degrees.pp, degrees.tp, model);
  for (const char* name : {"framework", "partition_method", "accelerator", "microbatch_size"}) {
    text += fmt::format("{}={}\n", name, fact(facts, name));
  }
  if (const std::string team = fact(facts, kTeamFact); !team.empty()) text += fmt::format("team={}\n", team);
  if (shape) {
    // A computation's time depends neither on the number of computations nor on how they wait for each other.
    jobs::PipelineShape own = *shape;
    if (own.action_table.empty()) own.microbatches = 0;
    own.switch_latency.reset();
    own.min_dwell.reset();
    own.transfer_latency.reset();
    own.blocking_power.reset();
    text += jobs::format_shape(own);
  }
  return std::string(kLearnedPrefix) + jobs::content_key(text);
}

void note_learned(const jobs::Job& job, const jobs::ProfileKnown& profile, double now_s, Decision& decision) {
  const auto& facts = job.spec.facts;
  const std::string key = learned_key(job.spec.degrees, facts, job.spec.shape);
  if (key.empty() || !profile.pipelines.empty()) return;
  decision.blobs.push_back(
      learned_blob(key, {"", profile.input, fact(facts, kTeamFact), model_of(facts), job.id, now_s}));
}

store::Blob learned_blob(const std::string& key, const jobs::LearnedProfile& learned) {
  return {key, jobs::json_text(learned), {"input/" + learned.input, "frontier/" + learned.input}};
}

Result<jobs::LearnedProfile> parse_learned(const std::string& key, const std::string& bytes) {
  auto learned = jobs::parse_json_as<jobs::LearnedProfile>(bytes, key);
  if (learned) learned->id = key.substr(kLearnedPrefix.size());
  return learned;
}

}  // namespace perseus::live
