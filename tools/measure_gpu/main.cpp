// Measures what a GPU's driver does with the calls that Perseus makes. It sets no clock, power limit or mode.
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cuda.h"
#include "figures.h"
#include "parts.h"
#include "shared_word.h"
#include "training/clock_control/helper_process.h"

namespace perseus::measure {
namespace {

constexpr int kExitUsage = 64, kExitNoGpu = 69, kExitSoftware = 70, kExitCannotWrite = 73;

struct Part {
  const char *name, *title;
  void (*measure)(Bench&);
};
constexpr Part kParts[] = {
    {"host-cost", "Cost of driver calls on the host", measure_host_cost},
    {"boundary-cost", "Cost of a boundary on the stream", measure_boundary_cost},
    {"visibility", "From the device passing a boundary until it is visible", measure_visibility},
    {"order", "Order of positions and events", measure_order},
    {"queue-depth", "Depth of the launch queue", measure_queue_depth},
    {"timers", "Event resolution and drift", measure_timers},
    {"helper", "From the device passing a boundary until perseus-clockd's device call (no-op device)", measure_helper},
    {"graphs", "Captured graphs", measure_graphs},
    {"nvml", "NVML (getters only)", measure_nvml},
};

constexpr const char* kHelp =
    R"(measure_gpu measures one GPU's driver: costs, latencies and order of the calls that Perseus makes.

usage: measure_gpu --markdown FILE --json FILE [--gpu N] [--part NAME]... [--quick]

  --markdown FILE  write the tables there, after each part
  --json FILE      write the same as JSON
  --gpu N          ordinal of the GPU among those visible to CUDA (default: 0)
  --part NAME      measure only this part; may be repeated. Parts: host-cost, boundary-cost, visibility, order,
                   queue-depth, timers, helper, graphs, nvml
  --quick          take few samples, to see that everything runs

It sets no clock, power limit or mode.
Environment: PERSEUS_CUDA and PERSEUS_NVML name other libraries than libcuda.so.1 and libnvidia-ml.so.1.
Exit codes: 0 measured; 64 wrong usage; 69 no GPU; 70 a part failed (the output says which); 73 cannot write.
)";

struct Options {
  std::string markdown, json;
  int gpu = 0;
  std::vector<std::string> parts;
  Settings settings;
  bool help = false;
};

/// An empty text, or what is wrong.
std::string parse(int count, char** arguments, Options& options) {
  for (int i = 1; i < count; ++i) {
    const std::string_view name = arguments[i];
    if (name == "--help" || name == "-h") return options.help = true, "";
    if (name == "--quick") {
      options.settings.quick = true;
      continue;
    }
    if (name != "--markdown" && name != "--json" && name != "--gpu" && name != "--part") {
      return "unknown option: " + std::string(name) + "; allowed: --markdown, --json, --gpu, --part, --quick, --help";
    }
    if (i + 1 == count) return std::string(name) + " needs a value";
    const std::string value = arguments[++i];
    if (name == "--markdown") options.markdown = value;
    if (name == "--json") options.json = value;
    if (name == "--gpu") {
      char* end = nullptr;
      const long number = std::strtol(value.c_str(), &end, 10);
      if (value.empty() || *end != '\0' || number < 0 || number > 1023)
        return "--gpu: " + value + "; allowed: 0 to 1023";
      options.gpu = static_cast<int>(number);
    }
    if (name == "--part") {
      std::string known;
      bool found = false;
      for (const Part& part : kParts) {
        found = found || value == part.name;
        known += (known.empty() ? "" : ", ") + std::string(part.name);
      }
      if (!found) return "--part: " + value + "; allowed: " + known;
      options.parts.push_back(value);
    }
  }
  if (options.markdown.empty() || options.json.empty()) return "--markdown FILE and --json FILE are required";
  return "";
}

bool write(const std::string& file, const std::string& text) {
  std::ofstream out(file, std::ios::trunc);
  out << text;
  return static_cast<bool>(out.flush());
}

std::string now() {
  const std::time_t time = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

void describe(const Cuda& cuda, const Settings& settings, Figures& figures) {
  utsname system{};
  ::uname(&system);
  figures.head("driver", cuda.simulated() ? "SIMULATED: no figure here is one of a GPU" : "real");
  figures.head("GPU", cuda.gpu_name());
  figures.head("CUDA driver version", std::to_string(cuda.driver_version()));
  figures.head("compute capability", std::to_string(cuda.attribute(75)) + "." + std::to_string(cuda.attribute(76)));
  figures.head("cuStreamWriteValue32_v2", cuda.find<void (*)()>("cuStreamWriteValue32_v2") != nullptr ? "yes" : "no");
  figures.head("host", std::string(system.sysname) + " " + system.release + " " + system.machine + ", " +
                           std::to_string(std::thread::hardware_concurrency()) + " processors");
  figures.head("began", now());
  figures.head("samples", settings.quick ? "few (--quick): figures are meaningless" : "full");
  figures.not_touched("clocks: no function that sets or resets a clock was looked up or called");
  figures.not_touched("power limits, persistence mode, compute mode, MIG mode, ECC: only getters were called");
  figures.not_touched("other processes' work: this program's kernels used one thread of the GPU");
  figures.not_touched("perseus-clockd's clock calls ended in a no-op device of this program");
}

int measure(const Options& options) {
  std::unique_ptr<Cuda> cuda;
  try {
    cuda = std::make_unique<Cuda>(options.gpu);
  } catch (const NoGpu& none) {
    std::fprintf(stderr, "measure_gpu: no GPU: %s\n", none.what());
    return kExitNoGpu;
  }
  Figures figures;
  describe(*cuda, options.settings, figures);
  Bench bench{*cuda, options.settings, figures};
  for (const Part& part : kParts) {
    if (!options.parts.empty() &&
        std::find(options.parts.begin(), options.parts.end(), part.name) == options.parts.end()) {
      continue;
    }
    std::fprintf(stderr, "measure_gpu: %s\n", part.name);
    figures.begin_part(part.name, part.title);
    try {
      part.measure(bench);
    } catch (const std::exception& failure) { figures.failed(failure.what()); }
    if (!write(options.markdown, figures.markdown()) || !write(options.json, figures.json())) {
      std::fprintf(stderr, "measure_gpu: cannot write %s or %s\n", options.markdown.c_str(), options.json.c_str());
      return kExitCannotWrite;
    }
  }
  return figures.any_failed() ? kExitSoftware : 0;
}

int run(int count, char** arguments) {
  const std::string_view first = count > 1 ? arguments[1] : "";
  // Processes that this program starts of itself.
  if (first == "watch-word") return watch_word_main();
  if (first == "--device" && count == 3 && clock_control::helper_fds_given()) {
    clock_control::HelperJob job;
    job.selector = arguments[2];
    clock_control::run_helper(job);
  }

  Options options;
  if (const std::string wrong = parse(count, arguments, options); !wrong.empty()) {
    std::fprintf(stderr, "measure_gpu: %s\n", wrong.c_str());
    return kExitUsage;
  }
  if (options.help) return std::fputs(kHelp, stdout), 0;
  char path[PATH_MAX] = {};
  if (::readlink("/proc/self/exe", path, sizeof path - 1) <= 0) return kExitSoftware;
  options.settings.program = path;
  try {
    return measure(options);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "measure_gpu: %s\n", failure.what());
    return kExitSoftware;
  }
}

}  // namespace
}  // namespace perseus::measure

int main(int count, char** arguments) {
  // Not through destructors: threads of the driver may still call back.
  const int code = perseus::measure::run(count, arguments);
  std::fflush(nullptr);
  ::_exit(code);
}
