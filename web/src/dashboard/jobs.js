// Mirror of the server's list of jobs: loads it once, in pages, and then applies changed rows.
import { loadPages } from './list-pages.js';

/** Loads every page of the list. Returns { jobs, factors, hasSite }: the server's price and emissions of a kWh; whether it keeps a site. */
export async function loadJobs(signal) {
  const jobs = [];
  let factors = {};
  let hasSite = false;
  await loadPages('/v1/jobs', (page) => {
    jobs.push(...page.jobs);
    factors = page.factors ?? {};
    hasSite = page.server?.site === true;
  }, signal);
  return { jobs, factors, hasSite };
}

/** Returns { replace(jobs), change({ jobs, removed }), rows() }: rows are in the server's order, newest first. */
export function createJobs() {
  let rows = new Map();
  let order = null; // cached sorted rows; null after a row was added or removed
  const older = (a, b) => b.created_at_s - a.created_at_s || (a.id < b.id ? -1 : 1);
  return {
    replace(jobs) {
      rows = new Map(jobs.map((job) => [job.id, job]));
      order = jobs;
    },
    change({ jobs = [], removed = [] }) {
      const changed = new Map();
      for (const job of jobs) {
        if (order && rows.has(job.id)) changed.set(job.id, job);
        else order = null;
        rows.set(job.id, job);
      }
      for (const id of removed) if (rows.delete(id)) order = null;
      if (order && changed.size > 0) order = order.map((job) => changed.get(job.id) ?? job);
    },
    rows() {
      order ??= [...rows.values()].sort(older);
      return order;
    },
  };
}
