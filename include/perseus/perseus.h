/* C API of the Perseus client, which runs in a training process; a stable ABI.
 *
 * Measures time and energy of every computation, fetches plans from a Perseus server, and has a helper process set the
 * GPU's clock per computation. Use: perseus_start() once per rank; per iteration perseus_step_begin(), then around each
 * computation perseus_set_speed(), perseus_begin(), perseus_end(), and perseus_step_end(); perseus_stop() at the end.
 *
 * It fails open: no function throws, blocks (perseus_start and perseus_stop at most as long as `start_limit_s`), exits
 * or touches errno-like state of the caller. perseus_start() returns NULL only when it is out of memory; every function
 * accepts NULL and then does nothing. After any problem (server gone, no permission, a plan that does not fit),
 * training continues at the maximum clock, the client logs the problem once through `log`, and perseus_status() reports
 * it. While the server sends a power budget with its plans, training continues at the budget's ceiling instead.
 *
 * Strings are UTF-8, copied, and end in NUL. Structs begin with their size, so that they can grow: call ..._init().
 * Units are in the names. Threads: step, begin, end and set_speed one at a time, on any thread: a call beside another
 * one does nothing, and its iteration is not measured. The others: any thread. A forked child has no client: calls
 * there do nothing.
 */
#ifndef PERSEUS_PERSEUS_H
#define PERSEUS_PERSEUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PERSEUS_ABI_VERSION 1
#define PERSEUS_API __attribute__((visibility("default")))

typedef struct perseus_client perseus_client;

/* The instruction names of plans and profiles. A chunk is a stage's index among those of this rank, from 0. */
enum perseus_instruction {
  PERSEUS_FORWARD = 0,
  PERSEUS_BACKWARD = 1,
  PERSEUS_INPUT_GRADIENT = 2,
  PERSEUS_WEIGHT_GRADIENT = 3,
  PERSEUS_RECOMPUTE = 4,
  PERSEUS_PURE_BACKWARD = 5,
  PERSEUS_LOAD = 6,
  PERSEUS_ALL_REDUCE = 7,
  PERSEUS_OPTIMIZER_STEP = 8
};

enum perseus_step { PERSEUS_TRAIN = 0, PERSEUS_EVALUATE = 1 /* the client does nothing until the end of the step */ };

enum perseus_log_level { PERSEUS_LOG_INFO = 0, PERSEUS_LOG_WARNING = 1, PERSEUS_LOG_ERROR = 2 };

enum perseus_flag {
  PERSEUS_ADVICE_ONLY = 1u << 0, /* measure and plan, report the possible saving, set no clock, start no helper */
  PERSEUS_NO_ENERGY = 1u << 1,   /* do not read the energy counter */
  PERSEUS_SYNCHRONOUS = 1u << 2, /* the program waits for its GPU in every computation: clocks may change at the call */
  PERSEUS_PACES = 1u << 3        /* perseus_step_begin() may wait, 10 s at most, where a site lacks watts */
};

typedef struct perseus_options {
  size_t size;
  const char* server;       /* "http://host:7787"; NULL: none, only measure */
  const char* token;        /* bearer token; NULL: none */
  const char* ca_file;      /* certificates to trust; NULL: the system's */
  const char* job;          /* id of the job, from the rank that registered it; NULL: this rank registers it */
  const char* job_name;     /* name for display */
  const char* facts;        /* "key=value" lines that identify the same job again: model, framework, partition, ... */
  const char* profile;      /* name of a profile on the server; NULL: profile online */
  const char* schedule;     /* "1f1b", "gpipe", ... as `perseus plan --schedule` */
  const char* action_table; /* PyTorch's CSV of the whole pipeline, instead of schedule */
  int microbatches;
  int chunks; /* stages per rank; default: 1 */
  int rank, dp_rank, pp_rank, tp_rank;
  int dp_degree, pp_degree, tp_degree;
  const char* device; /* selector, see `perseus doctor`: "nvml:GPU-...", "simulated:PATH"; "cuda:1" (CUDA's number);
                          "none"; "zeusd:" or NULL: from the CUDA context, CUDA_VISIBLE_DEVICES and LOCAL_RANK */
  const char* accelerator;   /* its name in the infrastructure; NULL: its UUID */
  const char* helper;        /* path of perseus-clockd; NULL: beside the library, then $PATH */
  double blocking_power_w;   /* of a waiting GPU; 0: measured */
  double transfer_latency_s; /* per sent activation, if known; default: 0 */
  double start_limit_s;      /* default: 5 */
  double report_interval_s;  /* between reports of iteration times; default: 2 */
  uint32_t flags;
  /* Called from any thread, which holds no lock that begin, end or set_speed waits for; NULL: standard error. */
  void (*log)(void* context, int level, const char* message);
  void* log_context;
  /* How much slower than promised iterations under a plan may be before the client drops the plan: 0.01 is 1 %.
   * 0: $PERSEUS_PLAN_TOLERANCE, else 0.01; negative: never drop one. */
  double plan_tolerance;
  /* From a clock request until the GPU runs at the new clock, s. 0: measured at perseus_start(), by some clock changes
   * within a second; negative: not measured then, but while training runs. */
  double switch_latency_s;
  const char* labels; /* "team=vision,model=gpt3": for lists of jobs on the server; NULL: none */
  /* Tier of the job under a site's power limits, as far as the operator allows it. Not given: $PERSEUS_DOMAIN,
   * $PERSEUS_LEAST_RATE and $PERSEUS_PRIORITY, else what the operator gives the job's team. */
  const char* domain; /* power domain; NULL: not given */
  double least_rate;  /* least part of its full speed, 0 to 1; negative: not given */
  double priority;    /* weight per rank where watts are short, 0.001 to 1000; 0: not given */
} perseus_options;

/* Sets all members to their defaults. */
PERSEUS_API void perseus_options_init(perseus_options* options);

PERSEUS_API int perseus_abi_version(void);
PERSEUS_API const char* perseus_version(void);
/* PERSEUS_FORWARD for "forward" ...; -1 for any other name. */
PERSEUS_API int perseus_instruction_named(const char* name);

PERSEUS_API perseus_client* perseus_start(const perseus_options* options);
/* Gives clocks back and ends all started threads and processes; logs nothing afterwards. May be called twice and
 * concurrently with any other call, on any thread. Where a driver call hangs, it returns after start_limit_s. */
PERSEUS_API void perseus_stop(perseus_client* client);

/* The job's id, for the other ranks; "" while (or if) there is none. Valid until perseus_stop(). */
PERSEUS_API const char* perseus_job(const perseus_client* client);

/* PERSEUS_EVALUATE within a training step: that step was evaluation, too (a forward without a backward). */
PERSEUS_API void perseus_step_begin(perseus_client* client, int kind);
/* The same for a program whose steps differ in their number of microbatches: `microbatches` is that of this step. The
 * server plans each number that comes back, and the step follows the plan of its own. Without it, a step is expected to
 * have as many as the one before. */
PERSEUS_API void perseus_step_begin_of(perseus_client* client, int kind, int microbatches);
/* The action table (see perseus_options) of steps with that many microbatches. Call it before the first such step if
 * the options have an action table: there is no other way to plan them. Any thread. */
PERSEUS_API void perseus_step_table(perseus_client* client, int microbatches, const char* action_table);
PERSEUS_API void perseus_step_end(perseus_client* client);
/* microbatch, chunk: from 0; -1: the client counts. For asynchronous work (CUDA): perseus_time_with_cuda(). */
PERSEUS_API void perseus_begin(perseus_client* client, int instruction, int microbatch, int chunk);
PERSEUS_API void perseus_end(perseus_client* client, int instruction, int microbatch, int chunk);
/* Requests the plan's clock for the current (or next) computation. microbatch, chunk as in perseus_begin(). */
PERSEUS_API void perseus_set_speed(perseus_client* client, int instruction, int microbatch, int chunk);

/* For programs that enqueue work on a GPU: computations run on that stream (a cudaStream_t or CUstream; NULL: the
 * default stream) of the calling thread's current context. CUDA events time them, and a clock changes when the GPU has
 * passed the boundary between two computations, however far ahead the host is. Call again with another stream when
 * computations move there. 0: success; else `log` receives the reason, and no clock is set. A program that uses CUDA or
 * HIP and calls neither this nor perseus_time_with(), nor sets PERSEUS_SYNCHRONOUS, gets no clocks, and `log` receives
 * a message about it. */
PERSEUS_API int perseus_time_with_cuda(perseus_client* client, void* stream);
/* For programs that call begin and end when the device begins and ends (simulations): that function (nanoseconds,
 * monotonic) times computations. The client calls it in begin and end, and in step_begin to find the offset to the
 * host's clock. Clocks change at the call. */
PERSEUS_API void perseus_time_with(perseus_client* client, uint64_t (*now_ns)(void* context), void* context);

enum perseus_state {
  PERSEUS_STARTING = 0,
  PERSEUS_MAXIMUM_CLOCK = 1, /* no plan, or a problem: see perseus_status() */
  PERSEUS_PROFILING = 2,
  PERSEUS_PLANNED = 3,
  PERSEUS_CEILING = 4 /* in place of PERSEUS_MAXIMUM_CLOCK, while a power budget holds */
};

typedef struct perseus_statistics {
  size_t size;
  int state;
  int64_t iteration;    /* completed training steps */
  int64_t plan_version; /* in force; 0: none */
  int64_t plan_from_iteration;
  double planned_iteration_time_s;
  double last_iteration_time_s;
  double last_iteration_energy_j; /* of this GPU; negative: not known */
  double energy_total_j;          /* since perseus_start() */
  double blocking_power_w;        /* given or measured; 0: not known */
  int64_t clocks_requested, clocks_applied, clocks_superseded, clocks_failed;
  double request_to_device_p50_s, request_to_device_p99_s;
  double begin_end_ns, set_speed_ns; /* median cost of a call in this process */
  double client_cpu_s;               /* processor time of the client's own threads and helper */
  int64_t samples, samples_throttled, samples_rejected;
  int64_t server_failures;                /* failed requests */
  int32_t controls_clock, server_reached; /* 1: now */
  /* Computations during which the clock changed; and of these, those whose time at their own clock is not known. */
  int64_t computations_mixed, computations_unsure;
  int64_t helper_restarts; /* number of times that another perseus-clockd replaced an ended one */
  int64_t plans_dropped;   /* because iterations under them were slower than promised */
  double lease_left_s;     /* under a power budget: how long the plan is valid without another answer of the server */
  int32_t ceiling_mhz;     /* highest clock without a valid plan; 0: no power budget */
  double paced_s;          /* waited in perseus_step_begin() since the start, see PERSEUS_PACES */
} perseus_statistics;

PERSEUS_API void perseus_statistics_get(perseus_client* client, perseus_statistics* statistics);
/* The same and more, as JSON: profile with error bars, current problems and since when. Returns the length without NUL,
 * and writes at most `capacity` bytes; call with capacity 0 to get the length. */
PERSEUS_API size_t perseus_status(perseus_client* client, char* buffer, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
