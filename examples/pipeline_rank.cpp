// One rank of a pipeline-parallel job that uses the client: a 1F1B schedule whose computations only sleep.
//
//   perseus serve --listen 127.0.0.1:7787 &
//   perseus profile push sample data/sample_profile.csv --schedule 1f1b --microbatches 12 --blocking-power 90
//   for rank in 0 1 2 3; do pipeline_rank http://127.0.0.1:7787 $rank 4 12 $JOB & done
//
// usage: pipeline_rank SERVER RANK STAGES MICROBATCHES [JOB] [ITERATIONS] [DEVICE] [HELPER]
//
// Output:  the job's id, one line per iteration, the client's status.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <perseus/perseus.hpp>
#include <string>
#include <thread>

namespace {

void compute(double milliseconds) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fputs("usage: pipeline_rank SERVER RANK STAGES MICROBATCHES [JOB] [ITERATIONS] [DEVICE] [HELPER]\n", stderr);
    return 64;
  }
  const int rank = std::atoi(argv[2]), stages = std::atoi(argv[3]), microbatches = std::atoi(argv[4]);
  const int iterations = argc > 6 ? std::atoi(argv[6]) : 20;

  perseus::api::Options options;
  options.server = argv[1];
  options.rank = options.pp_rank = rank;
  options.pp_degree = stages;
  options.microbatches = microbatches;
  options.profile = "sample";
  options.job = argc > 5 && *argv[5] != '\0' ? argv[5] : nullptr;  // none: rank 0 registers a job and prints its id
  options.device = argc > 7 ? argv[7] : "none";
  options.helper = argc > 8 ? argv[8] : nullptr;
  options.report_interval_s = 0.2;
  const perseus::api::Client client(options);
  std::printf("job %s\n", client.job());
  std::fflush(stdout);

  const int warm_up = std::min(stages - 1 - rank, microbatches);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    {
      const perseus::api::TrainingStep step(client);
      const auto forward = [&] {
        const perseus::api::TimedComputation computation(client, PERSEUS_FORWARD);
        compute(1);
      };
      const auto backward = [&] {
        const perseus::api::TimedComputation computation(client, PERSEUS_BACKWARD);
        compute(2);
      };
      for (int i = 0; i < warm_up; ++i) forward();
      for (int i = warm_up; i < microbatches; ++i) {
        forward();
        backward();
      }
      for (int i = 0; i < warm_up; ++i) backward();
    }
    const perseus_statistics now = client.statistics();
    std::printf("iteration %lld: %.4f s, state %d, plan %lld\n", static_cast<long long>(now.iteration),
                now.last_iteration_time_s, now.state, static_cast<long long>(now.plan_version));
    std::fflush(stdout);
  }
  std::printf("%s\n", client.status().c_str());
  return 0;
}
