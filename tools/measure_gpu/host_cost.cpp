// What each driver call of a boundary costs the host, on an idle and on a busy stream.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "clock_map.h"
#include "parts.h"
#include "shared_word.h"
#include "training/client/device_progress.h"

namespace perseus::measure {
namespace {

struct Call {
  std::string name;
  std::function<void()> call;
};

}  // namespace

void measure_host_cost(Bench& bench) {
  const Cuda& cuda = bench.cuda;
  const client::CudaDriver& driver = *cuda.client();
  const Stream stream = cuda.make_stream(), side = cuda.make_stream();
  const Event plain = cuda.make_event(client::CudaDriver::kEventDisableTiming), timed = cuda.make_event();
  SharedWord word;
  std::vector<std::unique_ptr<client::DeviceProgress>> ways;
  std::uint32_t position = 0;

  std::vector<Call> calls{
      {"cuLaunchKernel", [&] { cuda.spin_cycles(stream, 1000); }},
      {"cuEventRecord", [&] { cuda.check(driver.event_record(timed, stream), "cuEventRecord"); }},
      {"cuEventRecord, event without timing", [&] { cuda.check(driver.event_record(plain, stream), "cuEventRecord"); }},
      {"cuEventQuery", [&] { (void)driver.event_query(plain); }},
  };
  if (driver.is_capturing != nullptr) calls.push_back({"cuStreamIsCapturing", [&] { (void)driver.capturing(stream); }});
  if (driver.stream_wait_event != nullptr) {
    calls.push_back({"cuStreamWaitEvent on another stream",
                     [&] { cuda.check(driver.stream_wait_event(side, plain, 0), "cuStreamWaitEvent"); }});
  }
  if (driver.launch_host_function != nullptr) {
    calls.push_back({"cuLaunchHostFunc", [&] {
                       cuda.check(driver.launch_host_function(
                                      stream, [](void*) {}, nullptr),
                                  "cuLaunchHostFunc");
                     }});
  }
  // The client's own code: its write-value is cuStreamWriteValue32_v2 where the driver has that.
  for (const auto way :
       {client::ProgressWay::write_value, client::ProgressWay::host_function, client::ProgressWay::polling}) {
    auto opened = client::DeviceProgress::open(
        cuda.client(), stream, {&*word, SharedWord::bytes(), &word->position, [](std::uint32_t) {}}, way);
    const std::string name = "client boundary by " + std::string(client::name_of(way));
    if (!opened) {
      bench.figures.fact(name, "not possible: " + opened.error().message);
      continue;
    }
    client::DeviceProgress* const progress = ways.emplace_back(std::move(*opened)).get();
    calls.push_back({name, [&position, progress] { (void)progress->mark(++position); }});
  }

  std::vector<double> reading;
  for (int i = 0; i < 1000; ++i) {
    const double before = host_now_us();
    reading.push_back(host_now_us() - before);
  }
  bench.figures.add("reading the clock (included below)", "us", std::move(reading));
  for (const Call& call : calls) {
    for (const int ahead : {0, 1, 8, 64, 1000}) {
      std::vector<double> samples;
      const int runs = bench.settings.of(ahead == 1000 ? 20 : 40, 2), calls_per_run = ahead == 1000 ? 4 : 16;
      for (int run = 0; run < runs; ++run) {
        for (int i = 0; i < ahead; ++i) cuda.spin(stream, ahead >= 64 ? 50 : 1000);
        for (int i = 0; i < calls_per_run; ++i) {
          const double before = host_now_us();
          call.call();
          samples.push_back(host_now_us() - before);
        }
        cuda.synchronize(stream);
        cuda.synchronize(side);
      }
      bench.figures.add(call.name + (ahead == 0 ? ", stream idle" : ", " + std::to_string(ahead) + " ahead"), "us",
                        std::move(samples));
    }
  }
}

}  // namespace perseus::measure
