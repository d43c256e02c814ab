// The table of named schedules and their shape limits.
#include "planning/model/make_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "planning/model/schedule.h"
#include "planning/model/schedule_generators.h"

namespace perseus::model {
namespace {

constexpr int kMaxStages = 65536;
constexpr long kMaxStageMicrobatches = 1L << 22;

struct Family {
  const char* name;
  const char* of_torch;  ///< the class in torch.distributed.pipelining; empty: none
  int chunks;            ///< stages per rank if the schedule fixes it; 0: the caller chooses
  schedules::Ranks (*generate)(const ScheduleShape&);
  /// An error message if the shape is invalid, else empty.
  std::string (*objection)(const ScheduleShape&);
};

std::string none(const ScheduleShape&) { return {}; }

std::string whole_rounds(const ScheduleShape& shape) {
  const int rounds = std::max(1, shape.num_microbatches / shape.num_ranks);
  if (shape.num_microbatches % rounds == 0) return {};
  return fmt::format(
      "{} microbatches on {} ranks make {} rounds; must be a multiple of that (a multiple of {} always is)",
      shape.num_microbatches, shape.num_ranks, rounds, shape.num_ranks);
}

std::string as_many_as_stages(const ScheduleShape& shape) {
  if (shape.num_microbatches >= 2 * shape.num_ranks) return {};
  return fmt::format("{} microbatches; must be at least the {} stages (2 x {} ranks)", shape.num_microbatches,
                     2 * shape.num_ranks, shape.num_ranks);
}

const std::array kFamilies = {
    Family{"gpipe", "ScheduleGPipe", 1, schedules::gpipe, none},
    Family{"1f1b", "Schedule1F1B", 1, schedules::one_forward_one_backward, none},
    Family{"early-recompute-1f1b", "", 1, schedules::early_recompute, none},
    Family{"interleaved-1f1b", "ScheduleInterleaved1F1B", 0, schedules::interleaved, whole_rounds},
    Family{"zero-bubble", "ScheduleInterleavedZeroBubble", 1, schedules::zero_bubble, none},
    Family{"zbv", "ScheduleZBVZeroBubble", 2, schedules::zbv, none},
    Family{"dualpipev", "ScheduleDualPipeV", 2, schedules::dualpipev, as_many_as_stages},
};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

const Family* find(std::string_view name) {
  const auto found = std::ranges::find_if(kFamilies, [&](const Family& f) {
    return !name.empty() && (equal_ignoring_case(name, f.name) || equal_ignoring_case(name, f.of_torch));
  });
  return found == kFamilies.end() ? nullptr : &*found;
}

}  // namespace

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Family& family : kFamilies) all.emplace_back(family.name);
    return all;
  }();
  return names;
}

std::optional<std::string> schedule_named(std::string_view name) {
  const Family* family = find(name);
  return family == nullptr ? std::nullopt : std::optional<std::string>(family->name);
}

int chunks_fixed_by(const std::string& schedule_name) {
  const Family* family = find(schedule_name);
  return family == nullptr ? 0 : family->chunks;
}

int usual_chunks(const std::string& schedule_name) {
  const Family* family = find(schedule_name);
  if (family == nullptr) return 1;
  return family->chunks != 0 ? family->chunks : 2;
}

Result<Schedule> make_schedule(const std::string& name, const ScheduleShape& shape) {
  const auto usage = [](std::string message) { return Error{ErrorCode::usage, std::move(message)}; };
  const Family* family = find(name);
  if (family == nullptr) {
    return usage(fmt::format("unknown schedule '{}'; allowed: {}", name, fmt::join(schedule_names(), ", ")));
  }
  const auto [num_ranks, num_microbatches, chunks] = shape;
  if (num_ranks < 1) return usage(fmt::format("{}: {} ranks; must be >= 1", name, num_ranks));
  if (num_microbatches < 1) return usage(fmt::format("{}: {} microbatches; must be >= 1", name, num_microbatches));
  if (chunks < 1) return usage(fmt::format("{}: {} chunks per rank; must be >= 1", name, chunks));
  if (family->chunks != 0 && chunks != family->chunks) {
    return usage(fmt::format("{}: {} chunks per rank; this schedule has {}", name, chunks, family->chunks));
  }
  if (static_cast<long>(num_ranks) * chunks > kMaxStages) {
    return usage(
        fmt::format("{}: {} ranks x {} chunks; at most {} stages are allowed", name, num_ranks, chunks, kMaxStages));
  }
  const int num_stages = num_ranks * chunks;
  if (static_cast<long>(num_stages) * num_microbatches > kMaxStageMicrobatches) {
    return usage(fmt::format("{}: {} stages x {} microbatches; the product may be at most {}", name, num_stages,
                             num_microbatches, kMaxStageMicrobatches));
  }
  if (std::string objection = family->objection(shape); !objection.empty()) {
    return usage(fmt::format("{}: {}", name, objection));
  }
  return Schedule{family->name, num_stages, num_microbatches, family->generate(shape)};
}

}  // namespace perseus::model
