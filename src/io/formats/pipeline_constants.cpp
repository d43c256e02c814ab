#include "io/formats/pipeline_constants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json_writer.h"
#include "io/formats/file.h"
#include "io/formats/json_reader.h"
#include "io/formats/transfer_latency_text.h"
#include "planning/model/make_schedule.h"
#include "planning/model/schedule.h"

namespace perseus::formats {
namespace {

bool is_valid(const model::TransferLatency& latency) {
  return latency.common >= Seconds(0) && std::ranges::all_of(latency.boundaries, [](const model::BoundaryLatency& b) {
           return b.forward >= Seconds(0) && b.backward >= Seconds(0);
         });
}

Result<model::TransferLatency> valid_latency(const JsonReader& json) {
  auto read = read_transfer_latency(json);
  if (read && !is_valid(*read)) return json.error("numbers >= 0");
  return read;
}

Result<std::vector<model::OtherLinks>> read_other_links(const JsonReader& json) {
  std::vector<model::OtherLinks> all;
  const Status read = json.for_each([&](const JsonReader& one) -> Status {
    if (all.size() == kMostOtherLinks) return json.error(fmt::format("at most {} entries", kMostOtherLinks));
    JsonFields fields(one);
    const JsonReader latency = fields.value("transfer_latency_s");
    const JsonReader blocking = fields.value("blocking_transfers");
    fields.reject_others();
    if (fields.error()) return *fields.error();
    auto links = valid_latency(latency);
    if (!links) return links.error();
    const auto blocks = blocking.boolean();
    if (!blocks) return blocks.error();
    all.push_back({*std::move(links), *blocks});
    return Ok{};
  });
  if (!read) return read.error();
  return all;
}

}  // namespace

Result<PipelineConstants> parse_pipeline_constants(std::string_view text, const std::string& name) {
  const auto document = parse_json(text, name);
  if (!document) return document.error();
  JsonFields fields(document->root());
  PipelineConstants constants;
  std::optional<Error> error;
  const auto at_least = [&](std::string_view key, double least, bool required) {
    const auto reader = required ? std::optional(fields.value(key)) : fields.optional(key);
    if (!reader || fields.error()) return 0.0;
    const auto number = reader->number();
    if (!error && (!number || *number < least)) error = reader->error(fmt::format("a number >= {:g}", least));
    return number ? *number : 0.0;
  };
  if (const auto schedule = fields.optional("schedule")) {
    const auto found = schedule->string();
    if (found && model::schedule_named(*found)) {
      constants.schedule = std::string(*found);
    } else {
      error = schedule->error(fmt::format("one of {}", fmt::join(model::schedule_names(), ", ")));
    }
  }
  constants.microbatches = fields.integer("microbatches");
  constants.costs.blocking_power = Watts(at_least("blocking_power_w", 0, true));
  constants.blocking_power_stddev = Watts(at_least("blocking_power_stddev_w", 0, false));
  const auto latency = [&](std::string_view key, bool required) -> model::TransferLatency {
    const auto reader = required ? std::optional(fields.value(key)) : fields.optional(key);
    if (!reader || fields.error()) return {};
    auto read = valid_latency(*reader);
    if (!read && !error) error = read.error();
    return read ? *std::move(read) : model::TransferLatency();
  };
  constants.costs.transfer_latency = latency("transfer_latency_s", true);
  constants.transfer_latency_stddev = latency("transfer_latency_stddev_s", false);
  const auto flag = [&](std::string_view key) {
    const auto reader = fields.optional(key);
    if (!reader) return false;
    const auto value = reader->boolean();
    if (!value && !error) error = value.error();
    return value && *value;
  };
  constants.costs.blocking_transfers = flag("blocking_transfers");
  constants.costs.serial_transfers = flag("serial_transfers");
  if (const auto reader = fields.optional("other_links")) {
    auto others = read_other_links(*reader);
    if (!others && !error) error = others.error();
    if (others) constants.other_links = *std::move(others);
  }
  fields.reject_others();
  if (fields.error()) return *fields.error();
  if (error) return *error;
  if (constants.microbatches < 1) return fields.value("microbatches").error("an integer >= 1");
  return constants;
}

Result<PipelineConstants> read_pipeline_constants(const std::string& path) {
  return parsed_file(path, parse_pipeline_constants);
}

std::string format_pipeline_constants(const PipelineConstants& constants) {
  const auto members = [&](JsonWriter& f) {
    f("schedule", constants.schedule);
    f.always("microbatches", constants.microbatches);
    f.always("blocking_power_w", constants.costs.blocking_power);
    f.always("blocking_power_stddev_w", constants.blocking_power_stddev);
    f.always("transfer_latency_s", JsonRaw{format_transfer_latency(constants.costs.transfer_latency)});
    f.always("transfer_latency_stddev_s", JsonRaw{format_transfer_latency(constants.transfer_latency_stddev)});
    f.always("blocking_transfers", constants.costs.blocking_transfers);
    f("serial_transfers", constants.costs.serial_transfers);
    if (constants.other_links.empty()) return;
    const auto one = [](const model::OtherLinks& links) {
      return JsonObject{[&links](JsonWriter& g) {
        g.always("transfer_latency_s", JsonRaw{format_transfer_latency(links.transfer_latency)});
        g.always("blocking_transfers", links.blocking_transfers);
      }};
    };
    f.always("other_links", JsonLines{constants.other_links, one});
  };
  return json_object(members, JsonLayout::lines) + "\n";
}

}  // namespace perseus::formats
