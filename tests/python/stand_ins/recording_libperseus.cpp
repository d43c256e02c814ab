// A libperseus that only records its calls, one line per call, in the file that $PERSEUS_RECORDING names.
//
// $PERSEUS_RECORDING_ABI: its reported version. $PERSEUS_RECORDING_JOB: the job's id.
#include <perseus/perseus.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

struct perseus_client {
  std::string job;
};

namespace {

const char* environment(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

__attribute__((format(printf, 1, 2))) void record(const char* format, ...) {
  static std::FILE* const file = std::fopen(environment("PERSEUS_RECORDING", "/dev/null"), "a");
  if (file == nullptr) return;
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(file, format, arguments);
  va_end(arguments);
  std::fputc('\n', file);
  std::fflush(file);
}

void record_text(const char* name, const char* value) {
  if (value == nullptr) return;
  std::string line = value;  // of one line
  for (std::size_t at = 0; (at = line.find('\n', at)) != std::string::npos;) line.replace(at, 1, "\\n");
  record("option %s=%s", name, line.c_str());
}

}  // namespace

extern "C" {

void perseus_options_init(perseus_options* options) {
  std::memset(options, 0, sizeof(perseus_options) + 64);  // as a later version with more fields would
  options->size = sizeof(perseus_options);
  options->chunks = options->dp_degree = options->pp_degree = options->tp_degree = 1;
  options->start_limit_s = 5;
  options->report_interval_s = 2;
}

int perseus_abi_version(void) { return std::atoi(environment("PERSEUS_RECORDING_ABI", "1")); }
const char* perseus_version(void) { return "recording"; }
int perseus_instruction_named(const char* name) {
  constexpr const char* names[] = {"forward",       "backward", "input_gradient", "weight_gradient", "recompute",
                                   "pure_backward", "load",     "all_reduce",     "optimizer_step"};
  for (int i = 0; i < 9; ++i) {
    if (std::strcmp(name, names[i]) == 0) return i;
  }
  return -1;
}

perseus_client* perseus_start(const perseus_options* options) {
  record("start");
  record_text("server", options->server);
  record_text("token", options->token);
  record_text("ca_file", options->ca_file);
  record_text("job", options->job);
  record_text("job_name", options->job_name);
  record_text("facts", options->facts);
  record_text("profile", options->profile);
  record_text("schedule", options->schedule);
  record_text("action_table", options->action_table);
  record_text("device", options->device);
  record_text("accelerator", options->accelerator);
  record_text("helper", options->helper);
  record("option microbatches=%d", options->microbatches);
  record("option chunks=%d", options->chunks);
  record("option ranks=%d %d %d %d", options->rank, options->dp_rank, options->pp_rank, options->tp_rank);
  record("option degrees=%d %d %d", options->dp_degree, options->pp_degree, options->tp_degree);
  record("option numbers=%g %g %g %g", options->blocking_power_w, options->transfer_latency_s, options->start_limit_s,
         options->report_interval_s);
  record("option flags=%u", options->flags);
  if (options->log != nullptr) {
    options->log(options->log_context, PERSEUS_LOG_INFO, "started");
    std::thread(options->log, options->log_context, PERSEUS_LOG_WARNING, "from a thread: \xc3\xa9 \xff").join();
  }
  return new perseus_client{environment("PERSEUS_RECORDING_JOB", "job-1")};
}

void perseus_stop(perseus_client* client) {
  record("stop");
  delete client;
}

const char* perseus_job(const perseus_client* client) { return client->job.c_str(); }
void perseus_step_begin(perseus_client* /*client*/, int kind) { record("step_begin %d", kind); }
void perseus_step_begin_of(perseus_client*, int kind, int microbatches) {
  record("step_begin %d", kind);
  record("microbatches %d", microbatches);
}
void perseus_step_table(perseus_client*, int microbatches, const char* action_table) {
  std::string line = action_table;
  for (std::size_t at = 0; (at = line.find('\n', at)) != std::string::npos;) line.replace(at, 1, "\\n");
  record("table %d %s", microbatches, line.c_str());
}
void perseus_step_end(perseus_client* /*client*/) { record("step_end"); }
void perseus_begin(perseus_client* /*client*/, int instruction, int microbatch, int chunk) {
  record("begin %d %d %d", instruction, microbatch, chunk);
}
void perseus_end(perseus_client* /*client*/, int instruction, int microbatch, int chunk) {
  record("end %d %d %d", instruction, microbatch, chunk);
}
void perseus_set_speed(perseus_client* /*client*/, int instruction, int microbatch, int chunk) {
  record("set_speed %d %d %d", instruction, microbatch, chunk);
}
int perseus_time_with_cuda(perseus_client* /*client*/, void* stream) {
  record("time_with_cuda %p", stream);
  return 0;
}
void perseus_time_with(perseus_client* /*client*/, uint64_t (*now_ns)(void* context), void* context) {
  record("time_with %llu", static_cast<unsigned long long>(now_ns(context)));
}
void perseus_statistics_get(perseus_client* /*client*/, perseus_statistics* statistics) {
  const std::size_t size = statistics->size;
  *statistics = {};
  statistics->size = size;
  statistics->state = PERSEUS_PLANNED;
  statistics->iteration = 7;
  statistics->server_reached = 1;
}
size_t perseus_status(perseus_client* /*client*/, char* buffer, size_t capacity) {
  const std::string text = R"({"state": "planned"})";
  if (capacity > 0) {
    const std::size_t length = text.copy(buffer, capacity - 1);
    buffer[length] = '\0';
  }
  return text.size();
}
}
