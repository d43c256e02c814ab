// Which of a boundary's operations can be captured into a CUDA graph, and what a replay of them does.
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "parts.h"
#include "shared_word.h"

namespace perseus::measure {
namespace {

constexpr int kThreadLocal = 1;
constexpr unsigned kRecordExternal = 1;

/// Captures `work`; the executable graph, or null with the reason in `why`.
void* capture(const Cuda& cuda, Stream stream, const std::function<int()>& work, std::string& why) {
  cuda.call("cuStreamBeginCapture_v2", stream, kThreadLocal);
  const int worked = work();
  void *graph = nullptr, *executable = nullptr;
  const int ended = cuda.code("cuStreamEndCapture", stream, &graph);
  if (worked != 0 || ended != 0 || graph == nullptr) {
    why = cuda.name_of(worked != 0 ? worked : ended);
    return nullptr;
  }
  cuda.call("cuGraphInstantiateWithFlags", &executable, graph, 0ULL);
  cuda.call("cuGraphDestroy", graph);
  return executable;
}

void replay(const Cuda& cuda, void* executable, Stream stream) {
  cuda.call("cuGraphLaunch", executable, stream);
  cuda.synchronize(stream);
}

}  // namespace

void measure_graphs(Bench& bench) {
  const Cuda& cuda = bench.cuda;
  const client::CudaDriver& driver = *cuda.client();
  const Stream stream = cuda.make_stream();
  std::string why;

  if (driver.write_value != nullptr && driver.host_register != nullptr && driver.host_device_pointer != nullptr) {
    SharedWord word;
    std::uint64_t address = 0;
    cuda.check(driver.host_register(&*word, SharedWord::bytes(),
                                    client::CudaDriver::kRegisterPortable | client::CudaDriver::kRegisterDeviceMap),
               "cuMemHostRegister");
    cuda.check(driver.host_device_pointer(&address, &word->position, 0), "cuMemHostGetDevicePointer");
    void* const executable = capture(
        cuda, stream,
        [&] {
          cuda.spin(stream, 200);
          return driver.write_value(stream, address, 7, 0);
        },
        why);
    std::string answer = "cannot be captured: " + why;
    if (executable != nullptr) {
      int written = 0;
      for (int i = 0; i < 2; ++i) {
        word->position.store(0);
        replay(cuda, executable, stream);
        written += word->position.load() == 7 ? 1 : 0;
      }
      answer = "captured; written in " + std::to_string(written) + " of 2 replays (the same value each time)";
    }
    bench.figures.fact("cuStreamWriteValue32", answer);
  } else {
    bench.figures.fact("cuStreamWriteValue32", "the driver does not have it");
  }

  const Event begin = cuda.make_event(), end = cuda.make_event();
  void* executable = capture(
      cuda, stream,
      [&] {
        int code = cuda.code("cuEventRecordWithFlags", begin, stream, kRecordExternal);
        cuda.spin(stream, 1000);
        return code != 0 ? code : cuda.code("cuEventRecordWithFlags", end, stream, kRecordExternal);
      },
      why);
  std::string answer = "cannot be captured: " + why;
  if (executable != nullptr) {
    std::vector<double> measured_us;
    for (int i = 0; i < bench.settings.of(50, 2); ++i) {
      replay(cuda, executable, stream);
      measured_us.push_back(cuda.elapsed_us(begin, end));
    }
    answer = "captured; each replay records anew";
    bench.figures.add("external events around a kernel of 1 ms in a replayed graph", "us", std::move(measured_us));
  }
  bench.figures.fact("cuEventRecordWithFlags, external", answer);

  executable = capture(
      cuda, stream,
      [&] {
        cuda.spin(stream, 200);
        return driver.event_record(begin, stream);
      },
      why);
  if (executable == nullptr) {
    answer = "cannot be captured: " + why;
  } else {
    replay(cuda, executable, stream);
    float milliseconds = 0;
    answer =
        "captured; the event's time afterwards: " + cuda.name_of(driver.event_elapsed(&milliseconds, begin, begin));
  }
  bench.figures.fact("cuEventRecord", answer);

  if (driver.launch_host_function != nullptr) {
    std::atomic<int> calls{0};
    executable = capture(
        cuda, stream,
        [&] {
          return driver.launch_host_function(
              stream, [](void* count) { static_cast<std::atomic<int>*>(count)->fetch_add(1); }, &calls);
        },
        why);
    if (executable != nullptr) {
      for (int i = 0; i < 2; ++i) replay(cuda, executable, stream);
    }
    bench.figures.fact("cuLaunchHostFunc", executable == nullptr ? "cannot be captured: " + why
                                                                 : "captured; called " + std::to_string(calls.load()) +
                                                                       " times in 2 replays");
  }
}

}  // namespace perseus::measure
