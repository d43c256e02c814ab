// The power limits of a site: requests, and what follows from the answers.
import { percent } from '../format.js';
import { getJson } from './api.js';
import { count, kilowatts } from './words.js';

/** The site now: GET /v1/site/power; { none: true } without a site, { refused: true } for a token that sees only some jobs. */
export async function loadSite(signal) {
  try {
    return await getJson('/v1/site/power', signal);
  } catch (error) {
    if (error.isGone) return { none: true };
    if (error.status === 403) return { refused: true };
    throw error;
  }
}

/** Domains in the order of a tree, each with its depth; one whose parent is not there is a root. */
export function treeOf(domains) {
  const names = new Set(domains.map(({ name }) => name));
  const tree = [];
  const add = (domain, depth) => {
    tree.push({ ...domain, depth });
    domains.filter(({ parent }) => parent === domain.name).forEach((inner) => add(inner, depth + 1));
  };
  domains.filter(({ parent }) => !parent || !names.has(parent)).forEach((root) => add(root, 0));
  return tree;
}

/** Whether ranks of a job may still draw more than it is granted: they have not confirmed the last grant. */
export const isUnconfirmed = (job) => job.granted_w != null && job.counted_w > job.granted_w * (1 + 1e-6);
/** Watts that a job gives up against its fastest plan. */
export const gives = (job) => Math.max(0, (job.baseline_w ?? 0) - (job.planned_w ?? 0));
export const isOver = ({ limit_w: limit, counted_w: counted }) => limit != null && counted > limit * (1 + 1e-6);

export const rate = (part) => (part == null ? '' : percent(100 * part));
/** A rate below full speed: "3.20 % slower", "full speed". */
export const slower = (lost) => (lost == null ? 'not known' : lost < 5e-5 ? 'full speed' : `${percent(100 * lost)} slower`);

/** What one more kW in the domain would bring, in percent: of the mean slowdown, the throughput, or the slowest job's rate. */
export function pricePerKilowatt({ price = 0 }, { jobs, objective }) {
  const weight = objective === 'max-min' ? 1 : jobs.reduce((sum, job) => sum + job.accelerators * (job.priority ?? 1), 0);
  return weight > 0 ? (100 * 1000 * price) / weight : 0;
}
const worth = {
  slowdown: (text) => `shortens iterations by ${text} on average`,
  throughput: (text) => `raises the throughput by ${text}`,
  'max-min': (text) => `raises the rate of the slowest job by ${text}`,
};
/** The price as a sentence. */
export function priceWords(domain, power) {
  if (domain.limit_w == null) return `${domain.name} has no limit.`;
  const value = pricePerKilowatt(domain, power);
  if (domain.missing_w > 0) return `${domain.name} lacks ${kilowatts(domain.missing_w)} for the least rates of its jobs.`;
  if (value === 0) return `More watts in ${domain.name} bring nothing: its limit does not bind.`;
  const more_w = domain.limit_w / 100; // a kW is much for a small site, and little for a large one
  return `1 % more in ${domain.name} (${kilowatts(more_w)}) ${(worth[power.objective] ?? worth.slowdown)(percent((value * more_w) / 1000))}.`;
}

/** How far the jobs of a domain, and of those inside, follow: { jobs, unconfirmed: [job] }. */
export function following(domain, power) {
  const inside = new Set([domain.name]);
  for (const one of treeOf(power.domains)) if (inside.has(one.parent)) inside.add(one.name);
  const jobs = power.jobs.filter((job) => inside.has(job.domain));
  return { jobs, unconfirmed: jobs.filter(isUnconfirmed) };
}

/** Jobs by least rate: [{ least_rate, jobs, gives_w, rate_lost }], the rate as mean over accelerators. */
export function tiersOf(jobs) {
  const tiers = new Map();
  for (const job of jobs) {
    const tier = tiers.get(job.least_rate) ?? { least_rate: job.least_rate, jobs: 0, known: 0, gives_w: 0, lost: 0 };
    tiers.set(job.least_rate, tier);
    ++tier.jobs;
    tier.gives_w += gives(job);
    if (job.rate_lost == null) continue;
    tier.known += job.accelerators;
    tier.lost += job.rate_lost * job.accelerators;
  }
  return [...tiers.values()].sort((a, b) => a.least_rate - b.least_rate)
    .map(({ known, lost, ...tier }) => ({ ...tier, rate_lost: known > 0 ? lost / known : null }));
}
export const tierName = (leastRate) => (leastRate > 0 ? `at least ${percent(100 * leastRate)}` : 'no least rate');

/** One sentence on the site. */
export const summaryOf = ({ domains, jobs, allocates }) => `${count(domains.length, 'domain')}, ${count(jobs.length, 'job')}` +
  (allocates ? '' : '; another server grants: it knows prices and missing watts');
