// The power limits of a site: requests, and what follows from the answers.
import { percent } from '../format.js';
import { getJson } from './api.js';
import { count, kilowatts } from './words.js';

/** An answer on top of what is known: { version, domains: Map, jobs: Map, lists: { domains, jobs } }. A list whose rows are all as before is the same array. */
function known(before, answer) {
  const base = answer.since === undefined ? { domains: new Map(), jobs: new Map() } : before;
  const { domains, jobs } = base;
  for (const domain of answer.domains) domains.set(domain.name, domain);
  for (const job of answer.jobs) jobs.set(job.job, job);
  for (const job of answer.gone ?? []) jobs.delete(job);
  const list = (name, map, changes) => (base.lists && changes === 0 ? base.lists[name] : [...map.values()]);
  const lists = { domains: list('domains', domains, answer.domains.length), jobs: list('jobs', jobs, answer.jobs.length + (answer.gone ?? []).length) };
  return { version: answer.version ?? '', domains, jobs, lists };
}

/**
 * Returns load(signal), which loads the site of now: what GET /v1/site/power answers, with all domains and jobs, of which only those that have
 * changed since the last load are sent; { none: true } without a site, { refused: true } for a token that sees only some jobs.
 */
export function createSiteLoader() {
  let last = null;
  return async (signal) => {
    try {
      const answer = await getJson(`/v1/site/power?since=${encodeURIComponent(last?.version ?? '')}`, signal);
      last = known(last, answer);
      return { ...answer, ...last.lists };
    } catch (error) {
      if (error.isGone) return { none: true };
      if (error.status === 403) return { refused: true };
      throw error;
    }
  };
}

/** Domains in the order of a tree, each with its depth; one whose parent is not there is a root. */
export function treeOf(domains) {
  const names = new Set(domains.map(({ name }) => name));
  const inside = new Map(); // by parent; '': the roots
  for (const domain of domains) {
    const around = names.has(domain.parent) ? domain.parent : '';
    if (!inside.has(around)) inside.set(around, []);
    inside.get(around).push(domain);
  }
  const tree = [];
  const add = (domain, depth) => {
    tree.push({ ...domain, depth });
    inside.get(domain.name)?.forEach((inner) => add(inner, depth + 1));
  };
  inside.get('')?.forEach((root) => add(root, 0));
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

const weights = new WeakMap(); // by list of jobs
function weightOf(jobs) {
  if (!weights.has(jobs)) weights.set(jobs, jobs.reduce((sum, job) => sum + job.accelerators * (job.priority ?? 1), 0));
  return weights.get(jobs);
}
/** What one more kW in the domain would bring, in percent: of the mean slowdown, the throughput, or the slowest job's rate. */
export function pricePerKilowatt({ price = 0 }, { jobs, objective }) {
  const weight = objective === 'max-min' ? 1 : weightOf(jobs);
  return weight > 0 ? (100 * 1000 * price) / weight : 0;
}
const worth = {
  slowdown: (text) => `shortens iterations by ${text} on average`,
  throughput: (text) => `raises the throughput by ${text}`,
  'max-min': (text) => `raises the rate of the slowest job by ${text}`,
};
/** The price as a sentence. */
function priceWords(domain, power) {
  if (domain.limit_w == null) return `${domain.name} has no limit.`;
  const value = pricePerKilowatt(domain, power);
  if (domain.missing_w > 0) {
    const what = domain.gives?.length > 0 ? 'its jobs to keep their least rates' : 'what no grant controls';
    return `${domain.name} lacks ${kilowatts(domain.missing_w)} for ${what}.`;
  }
  if (value === 0) return `More watts in ${domain.name} bring nothing: its limit does not bind.`;
  const more_w = domain.limit_w / 100; // a kW is much for a small site, and little for a large one
  return `1 % more in ${domain.name} (${kilowatts(more_w)}) ${(worth[power.objective] ?? worth.slowdown)(percent((value * more_w) / 1000))}.`;
}

const mostPrices = 8;
/** The prices as sentences: of all limits, or of many the root's and those of the limits where a watt is worth most. */
export function pricesWords(power) {
  const limited = power.domains.filter(({ limit_w: limit }) => limit != null);
  if (limited.length <= mostPrices) return limited.map((domain) => priceWords(domain, power));
  const binds = (domain) => domain.missing_w > 0 || domain.price > 0;
  const inner = limited.filter((domain) => domain !== power.domains[0] && binds(domain))
    .sort((a, b) => (b.missing_w ?? 0) - (a.missing_w ?? 0) || (b.price ?? 0) - (a.price ?? 0));
  const shown = [power.domains[0], ...inner.slice(0, mostPrices - 1)];
  const free = limited.filter((domain) => !binds(domain)).length;
  const more = inner.length - (shown.length - 1);
  return [...shown.map((domain) => priceWords(domain, power)), `${more > 0 ? `${count(more, 'more limit')} where watts are worth less, and ` : ''}${count(free, 'limit')} of ` +
    `${limited.length.toLocaleString('en')} that ${free === 1 ? 'does' : 'do'} not bind.`];
}

/** How far the jobs of each domain, and of those inside, follow: name -> { jobs: their number, unconfirmed: [job] }. */
export function followers({ domains, jobs }) {
  const parents = new Map(domains.map(({ name, parent }) => [name, parent]));
  const of = new Map(domains.map(({ name }) => [name, { jobs: 0, unconfirmed: [] }]));
  for (const job of jobs) {
    for (let name = job.domain; of.has(name); name = parents.get(name)) {
      ++of.get(name).jobs;
      if (isUnconfirmed(job)) of.get(name).unconfirmed.push(job);
    }
  }
  return of;
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
export function summaryOf({ domains, jobs, unread_jobs: unread = 0 }) {
  const rest = unread > 0 ? `; ${count(unread, 'running job')} not read yet after a start of the server, so not counted` : '';
  return `${count(domains.length, 'domain')}, ${count(jobs.length, 'job')}${rest}`;
}
