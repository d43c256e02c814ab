// Requests of the dashboard to the server's /v1 API (src/server/jobs/view_json.h writes the responses). Members that are
// missing, null or unknown do no harm.
//
// GET /v1/jobs            { next, server: { site: whether it keeps power limits and shows them to this reader }, factors: { price_per_kwh, currency, carbon_g_per_kwh },
//                           jobs: [{ id, name, state, created_at_s, ranks, ranks_registered, pipelines, stragglers, accelerator,
//                           iteration_time_s, saved_pct, possible_saving_pct, possible_saving_stddev_pct,
//                           possible_saving_modeled, maximum_clock (the plan in force: there is no frontier), saved_j, estimated_saved_j,
//                           power_w, all_max_power_w, planned_power_w, power_measured, labels: { NAME: VALUE } }] }, newest first; with `next` there is another page, ?after=NEXT
// GET /v1/job_changes     server-sent events { jobs, removed: [ID] }: rows of that list that changed
// GET /v1/alerts          { next, alerts: [ALERT], resolved: [ALERT] (first page) }, newest first; ALERT: { alert, state, job, name,
//                           domain (of the site, instead of job and name), text, since_s, raised_at_s, resolved_at_s }
// GET /v1/events/recent   { next, events: [{ job, name, sequence, kind, at_s, text, by }] }, newest first
// GET /v1/jobs/ID         { id, name, state, reason, created_at_s, now_s, schedule, degrees: { dp, pp, tp }, microbatches,
//                           shapes: [{ microbatches, planned, why }],
//                           world_size, ranks: { expected, registered, waiting }, facts: { accelerator, framework, ... },
//                           profiling: { over, windows, iterations, uncertainty_pct, text, waiting_for, rejected, rejections,
//                                        cost: { iterations, time_s, energy_j, mean_slowdown_pct, worst_slowdown_pct,
//                                                earned_back_after_iterations } },
//                           plans_dropped: [TEXT], profile_doubts: [TEXT] (units that cannot be right),
//                           plan: { version, from_iteration, deployed_at_s, t_max_s, t_min_s, t_star_s, t_straggler_s, t_opt_s, reason },
//                           pipelines: [{ pipeline, straggler, point, points, time_s, energy_j, frontier }],
//                           stragglers: [{ id, target, degree, state: pending | in_force, at_s, origin }],
//                           policies: [{ kind, text }],
//                           site: { domain, least_rate, priority, state, reason, granted_w, ceiling_mhz, counted_w, planned_w, baseline_w,
//                                   rate, rate_lost, correction },
//                           savings: { per_iteration: { energy_j, all_max_energy_j, time_s, all_max_time_s },
//                                      waits_not_counted: { period_s, wait_s, energy_j } of a paced job, per iteration,
//                                      total: { iterations, saved_j, all_max_energy_j, measured, estimated_iterations, estimated_saved_j },
//                                      no_total_because (instead of total),
//                                      measured, measured_all_max: { energy_j, time_s, iterations }, none_because,
//                                      possible: { saving_pct, saving_stddev_pct },
//                                      factors: { price_per_kwh, currency, carbon_g_per_kwh } } }
// GET /v1/jobs/ID/ranks   { next, ranks: [{ rank, dp_rank, pp_rank, tp_rank, host, accelerator, control, control_reason,
//                           wanted_least_mhz, wanted_most_mhz, set_mhz, clocks_failed, clocks_late, throttled_iterations,
//                           last_heard_s, waiting }] }; with `next` there is another page, ?after=NEXT
// GET /v1/hosts           { next, hosts: [{ host, job, job_name, ranks, without_control, control_reason, reporting, wanted_least_mhz,
//                           wanted_most_mhz, set_least_mhz, set_most_mhz, clocks_failed, clocks_late, throttled_iterations,
//                           last_heard_s }] } of live jobs
// GET /v1/jobs/ID/history?step=minute|hour|day&from=S
//                         { step_s, next_s, buckets: [{ start_s, iterations, iteration_time_s, energy_iterations, iteration_energy_j,
//                           planned_time_s, planned_energy_j, straggler_iterations, first_plan_version, last_plan_version }] }
// GET /v1/history?step=minute|hour|day&from=S    of all jobs
//                         { step_s, next_s, buckets: [{ start_s, iterations, compared_iterations, energy_j, planned_energy_j }] }
// GET /v1/site/power?since=VERSION
//                         { now_s, version, since, gone: [job], objective, domains: [{ name, parent, limit_w, metered_limit_w, guard_w,
//                           granted_w, counted_w, reported_w, reserved_w, metered_w, planned_w, baseline_w, missing_w, price, rate_lost }],
//                           jobs: [{ job, name, domain, least_rate, priority, accelerators, state, reason, granted_w, counted_w,
//                           reported_w, planned_w, baseline_w, rate, rate_lost }],
//                           reservations: [{ job (a name), domain, accelerators, power_w, counted_w, since_s, expires_s, ready, by }] };
//                           with `since`: only domains and jobs that have changed since, and `gone`
// GET /v1/site/proof?step=minute|hour|day&from=S&until=S&domain=NAME
//                         { step_s, next_s, entries: [{ start_s, domain, limit_w, metered_limit_w, baseline_w, planned_w, counted_w,
//                           reported_w, metered_w, over_s, rate_lost }] }; CSV with Accept: text/csv
// GET /v1/site/forecast?hours=H&domain=NAME
//                         { now_s, until_s, entries: [{ start_s, domain, limit_w, metered_limit_w, guard_w, expected_w, missing_w, rate_lost }] }
// GET /v1/jobs/ID/frontier?pipeline=P            write_frontier_data() of src/io/report/report_data.h
// GET /v1/jobs/ID/timeline?pipeline=P&point=K    write_timeline_data() there
// GET /v1/jobs/ID/events                         server-sent events { job, sequence, kind, at_s, text, by }
// Errors: status and { detail: MESSAGE }. Tokens: Authorization: Bearer, also for events, which are therefore
// read with fetch() (stream.js) and not with EventSource, which can send no header.
const tokenKey = 'perseus-token';
export const token = {
  get: () => sessionStorage.getItem(tokenKey) ?? '',
  set: (text) => (text ? sessionStorage.setItem(tokenKey, text) : sessionStorage.removeItem(tokenKey)),
};

/** An error response of the server; status 0: no response. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
  get needsToken() {
    return this.status === 401 || this.status === 403;
  }
  get isGone() {
    return this.status === 404;
  }
  /** Whether the server is unreachable, or a proxy cannot reach it. */
  get isUnreachable() {
    return this.status === 0 || this.status >= 500;
  }
}

/** Where the server's paths begin: a proxy may serve them below a path of its own, as the page itself. */
export const serverUrl = () => new URL('.', location.href).href.replace(/\/$/, '');

export async function request(path, { headers = {}, signal } = {}) {
  const bearer = token.get();
  let response;
  try {
    response = await fetch(serverUrl() + path, { headers: { ...headers, ...(bearer && { authorization: `Bearer ${bearer}` }) }, signal,
      cache: 'no-store' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'The server does not answer');
  }
  if (!response.ok) throw new ApiError(response.status, await messageOf(response));
  return response;
}

async function messageOf(response) {
  const text = await response.text().catch(() => '');
  try {
    return String(JSON.parse(text).detail);
  } catch {
    return text.slice(0, 300) || `The server answers ${response.status}`;
  }
}

export async function getJson(path, signal) {
  const response = await request(path, { signal });
  try {
    return await response.json();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'The server stopped in the middle of an answer');
  }
}

export const jobPath = (id, part = '') => `/v1/jobs/${encodeURIComponent(id)}${part}`;
