// The view of one job, updated in place, so that focus and scroll position stay.
import { element } from '../dom.js';
import { createEnergySwitch } from '../energy-switch.js';
import { createFrontierChart, frontierLegend } from '../frontier-chart.js';
import { seconds } from '../format.js';
import { allMaximumClock, readIteration, readPlan } from '../iteration.js';
import { pointFacts } from '../point-facts.js';
import { createTimelineChart } from '../timeline-chart.js';
import { timelineOf } from '../timeline.js';
import { createActivity } from './activity.js';
import { getJson, jobPath } from './api.js';
import { createHistory } from './history.js';
import { createPipelines } from './pipelines.js';
import { createProfiling } from './profiling.js';
import { createRanks } from './ranks.js';
import { createRefresher } from './refresher.js';
import { createSavings } from './savings.js';
import { isUnconfirmed, rate, slower } from './site-data.js';
import { createStragglers } from './stragglers.js';
import { clockTime, jobState, kilowatts } from './words.js';

const retry_ms = 1000;

/** Calls onNews(text) for each new event of the job. Returns { show(job), fail(error), close() }. */
export function createJobView(parent, id, onNews) {
  const state = { job: null, pipeline: null, browsed: null, chart: null, chartKey: null, timeline: null, timelineKey: null };
  const kicker = element('p', { class: 'kicker' });
  const title = element('h2', { class: 'job-title', id: 'job-title' });
  const facts = element('ul', { class: 'inputs' });
  const reason = element('p', { class: 'reason', hidden: true });
  const doubts = element('p', { class: 'reason failed', id: 'profile-doubts', hidden: true });
  const head = element('header', { class: 'job-head' }, element('a', { href: '#/', class: 'back', text: '‹ Cluster' }),
    kicker, title, facts, reason, doubts);
  const body = element('div', { class: 'job-body', hidden: true });
  const trouble = element('p', { class: 'trouble', role: 'status', hidden: true });
  const loading = element('p', { class: 'empty-line', text: 'Loading the job …' });
  const root = element('article', { 'aria-labelledby': 'job-title' }, head, trouble, loading, body);
  parent.replaceChildren(root);

  function section(name, heading) {
    const headingLine = element('div', { class: 'heading' }, element('h3', { id: `${name}-title`, text: heading }));
    const made = element('section', { id: name, 'aria-labelledby': `${name}-title` }, headingLine);
    body.append(made);
    return { made, headingLine };
  }
  const savingsPart = element('section', { 'aria-label': 'Savings' });
  body.append(savingsPart);
  const savings = createSavings(savingsPart);
  const historyPart = section('history', 'Measured over time');
  const history = createHistory(historyPart.made, historyPart.headingLine, id);
  const profiling = createProfiling(section('profiling', 'Profiling').made);
  const stragglers = createStragglers(section('stragglers', 'Stragglers and policies').made);
  const pipelinesPart = section('pipelines', 'Pipelines');
  const pipelines = createPipelines(pipelinesPart.made, choosePipeline);

  // Frontier
  const frontierPart = section('frontier', 'Frontier');
  const energySwitch = createEnergySwitch(root, (effective) => state.chart?.setEffective(effective));
  frontierPart.headingLine.append(energySwitch.root);
  const frontierEmpty = element('p', { class: 'empty-line' });
  const chartSide = element('div', { class: 'chart-side' }, frontierLegend('plan in force'));
  const chosenFacts = element('dl', { class: 'facts' });
  const follow = element('button', { type: 'button', text: 'Back to the plan in force', hidden: true, onclick: () => browse(null) });
  const split = element('div', { class: 'split', hidden: true }, chartSide,
    element('div', { role: 'group', 'aria-label': 'Chosen point' }, chosenFacts, element('div', { class: 'shortcuts' }, follow)));
  frontierPart.made.append(frontierEmpty, energySwitch.note, split);

  // Timeline
  const timelinePart = section('timeline', 'One iteration, rank by rank');
  const timelineNote = element('p', { class: 'note', text: 'Letters are instructions (F forward, B backward), numbers are ' +
    'microbatches. Ctrl + wheel or the buttons zoom; arrow keys walk over the computations.' });
  const timelineHolder = element('div');
  const stragglerNote = element('p', { class: 'note', hidden: true, text: 'This pipeline is the straggler: it runs the plan for no straggler. ' +
    'The drawing shows that plan without the slowdown.' });
  timelinePart.made.append(timelineHolder, stragglerNote, timelineNote);
  const ranks = createRanks(section('ranks', 'Ranks').made, id);
  const activity = createActivity(section('activity', 'Activity').made, id, onNews);

  const frontiers = new Map(); // equal pipelines share a frontier, which is loaded once
  const pipelineNow = () => state.job.pipelines?.find((p) => p.pipeline === state.pipeline) ?? null;
  const frontierKey = (p) => p.frontier ?? `${p.pipeline}, ${p.points} points, ${state.job.plan?.t_min_s}`;
  const pointNow = () => state.browsed ?? pipelineNow()?.point ?? null;

  let retry = 0;
  const drawings = createRefresher(loadDrawings, showDrawings, (error) => {
    if (error.isUnreachable) return; // the connection sign shows this, and the page requests again after reconnecting
    const planned = pipelineNow()?.point != null; // then a frontier exists and the server is still reading it
    if (planned) retry = setTimeout(drawings.ask, retry_ms);
    noDrawings(error.isGone ? (planned ? 'Loading the frontier …' : waitingFor(state.job))
      : `The server did not send the frontier: ${error.message}`);
  });

  async function loadDrawings(signal) {
    const pipeline = pipelineNow();
    if (!pipeline || pipeline.point == null) return null;
    const key = frontierKey(pipeline);
    if (!frontiers.has(key)) {
      frontiers.set(key, await getJson(jobPath(id, `/frontier?pipeline=${pipeline.pipeline}`), signal));
    }
    const frontier = frontiers.get(key);
    const point = Math.min(pointNow() ?? 0, frontier.points.time_s.length - 1);
    const timelineKey = `${key} / ${point}`;
    const timeline = timelineKey === state.timelineKey ? null
      : await getJson(jobPath(id, `/timeline?pipeline=${pipeline.pipeline}&point=${point}`), signal);
    return { pipeline, key, frontier, point, timeline, timelineKey };
  }

  function showDrawings(loaded) {
    if (!loaded) return noDrawings(waitingFor(state.job));
    if (loaded.pipeline.pipeline !== state.pipeline) return; // the user chose another pipeline meanwhile
    frontierEmpty.hidden = true;
    split.hidden = energySwitch.root.hidden = timelinePart.made.hidden = false;
    if (state.chartKey !== loaded.key) {
      state.chart?.dispose();
      state.chart = createFrontierChart(chartSide, loaded.frontier, browse);
      state.chart.setEffective(energySwitch.effective());
      state.chartKey = loaded.key;
    }
    showPlan();
    showChosen();
    if (loaded.timeline) showTimeline(loaded);
    nameTimeline(loaded.point);
  }

  function showTimeline({ timeline, timelineKey, key, point }) {
    const iteration = readIteration(timeline);
    const panels = [{ name: 'Everything at maximum clock', timeline: timelineOf(iteration, allMaximumClock(iteration)) },
      { name: pointName(point), timeline: timelineOf(iteration, readPlan(iteration, timeline.runs)) }];
    if (state.timelineOf === key) {
      panels.forEach((panel, k) => state.timeline.setPanel(k, panel));
    } else {
      state.timeline?.dispose();
      state.timeline = createTimelineChart(timelineHolder, panels);
      state.timelineOf = key;
    }
    state.panel = panels[1];
    state.timelineKey = timelineKey;
  }
  const pointName = (point) => `Point ${point}${point === pipelineNow()?.point ? ', in force' : ''}`;
  function nameTimeline(point) {
    if (!state.panel || state.panel.name === pointName(point)) return;
    state.panel = { ...state.panel, name: pointName(point) };
    state.timeline.setPanel(1, state.panel);
  }

  function noDrawings(text) {
    for (const name of ['chart', 'timeline']) {
      state[name]?.dispose();
      state[name] = null;
    }
    state.chartKey = state.timelineKey = state.timelineOf = state.panel = null;
    split.hidden = energySwitch.root.hidden = timelinePart.made.hidden = true;
    frontierEmpty.hidden = false;
    if (frontierEmpty.textContent !== text) frontierEmpty.textContent = text;
  }

  /** Draws the ring around the plan in force, with the reason for this plan. */
  function showPlan() {
    const { plan } = state.job;
    const pipeline = pipelineNow();
    if (!state.chart || pipeline?.point == null) return;
    const lines = [];
    if (plan?.t_straggler_s > 0) {
      lines.push({ at_s: plan.t_straggler_s, label: `T′ = ${seconds(plan.t_straggler_s)}`, ink: 'straggler' });
    }
    const apart = (a, b) => Math.abs(a - b) > 1e-4 * b;
    if (plan?.t_opt_s > 0 && apart(plan.t_opt_s, plan.t_straggler_s ?? plan.t_max_s ?? plan.t_min_s)) {
      lines.push({ at_s: plan.t_opt_s, label: `T_opt = ${seconds(plan.t_opt_s)}`, ink: 'plan' });
    }
    state.chart.setPlan({ point: pipeline.point, ink: 'plan', lines: pipeline.straggler ? lines.slice(0, 1) : lines });
  }

  function showChosen() {
    const point = pointNow();
    const frontier = frontiers.get(state.chartKey);
    if (!state.chart || point === null || !frontier) return;
    state.chart.choose(point);
    chosenFacts.replaceChildren(...pointFacts(frontier, point));
    follow.hidden = state.browsed === null || state.browsed === pipelineNow()?.point;
    document.documentElement.dataset.point = String(point);
  }

  function browse(point) {
    if (point === null && document.activeElement === follow) chartSide.querySelector('.frontier-chart')?.focus();
    state.browsed = point === pipelineNow()?.point ? null : point;
    showChosen();
    drawings.ask();
  }

  function choosePipeline(pipeline) {
    if (pipeline === state.pipeline) return;
    state.pipeline = pipeline;
    state.browsed = null;
    showPipelines();
    drawings.ask();
  }
  function showPipelines() {
    pipelines.show(state.job.pipelines ?? [], state.pipeline);
    pipelinesPart.made.hidden = (state.job.pipelines ?? []).length < 2;
    stragglerNote.hidden = !pipelineNow()?.straggler;
  }

  function showHead(job) {
    const [words, kind] = jobState({ ...job, maximum_clock: job.plan?.version > 0 && (job.pipelines ?? []).every(({ point }) => point == null) });
    const { degrees, ranks, plan } = job;
    const expected = ranks?.expected ?? job.world_size;
    kicker.replaceChildren(element('span', { class: `state ${kind}`, text: words }));
    title.textContent = job.name || job.id;
    document.title = `${job.name || job.id} - Perseus`;
    const fact = (name, value) => value && element('li', {}, element('span', { text: name }), ` ${value}`);
    const shown = [
      ['job', job.name && job.id],
      ['schedule', job.schedule],
      ['degrees', degrees && ['dp', 'pp', 'tp'].filter((d) => degrees[d] > 0).map((d) => `${d.toUpperCase()} ${degrees[d]}`).join(' · ')],
      ['microbatches', job.microbatches > 0 && shapesText(job)],
      ['ranks', ranks && (ranks.registered < expected ? `${ranks.registered} of ${expected} registered` : String(expected)) +
        (ranks.waiting > 0 ? `, ${ranks.waiting.toLocaleString('en')} waiting` : '')],
      ...Object.entries(job.facts ?? {}).filter(([name]) => name !== 'token').map(([name, value]) => [name.replaceAll('_', ' '), String(value)]),
      ...siteFacts(job.site, job.savings?.waits_not_counted),
      ['plan', plan?.version > 0 && `version ${plan.version}` +
        (plan.from_iteration > 0 ? ` from iteration ${plan.from_iteration.toLocaleString('en')}` : '')],
      ['deployed', plan?.deployed_at_s > 0 && clockTime(plan.deployed_at_s)],
      ['registered', job.created_at_s > 0 && clockTime(job.created_at_s)],
    ];
    facts.replaceChildren(...shown.map(([name, value]) => fact(name, value)).filter(Boolean));
    reason.hidden = !job.reason;
    reason.className = `reason ${kind}`;
    reason.textContent = job.reason ?? '';
    doubts.hidden = !job.profile_doubts?.length;
    doubts.textContent = job.profile_doubts?.length ? `The profile is doubtful: ${job.profile_doubts.join('; ')}` : '';
  }

  return {
    show(job) {
      state.job = job;
      loading.hidden = true;
      trouble.hidden = true;
      body.hidden = false;
      const all = job.pipelines ?? [];
      if (!all.some((p) => p.pipeline === state.pipeline)) {
        state.pipeline = (all.find((p) => !p.straggler && p.point != null) ?? all[0])?.pipeline ?? null;
      }
      showHead(job);
      savings.show(job);
      history.show(job);
      profiling.show(job);
      stragglers.show(job, (job.now_s ?? Date.now() / 1000) - Date.now() / 1000);
      showPipelines();
      drawings.ask();
      activity.show(job);
    },
    fail(error) {
      loading.hidden = true;
      trouble.hidden = false;
      trouble.textContent = error.isGone ? 'The server does not know this job: it may have expired.' : error.message;
      if (error.isGone) body.hidden = true;
      if (!title.textContent) title.textContent = id;
    },
    close() {
      clearTimeout(retry);
      drawings.close();
      stragglers.close();
      activity.close();
      ranks.close();
      history.close();
      noDrawings('');
      root.remove();
    },
  };
}

/** The number that most steps have, and the others, which have plans of their own. */
function shapesText(job) {
  const others = (job.shapes ?? []).filter((shape) => shape.microbatches !== job.microbatches);
  const text = others.map((shape) => `${shape.microbatches}${shape.planned ? '' : shape.why ? `: ${shape.why}` : ', being planned'}`);
  return [String(job.microbatches), text.length > 0 && `others: ${text.join('; ')}`].filter(Boolean).join('; ');
}

/** Facts of a job under the power limits of a site: domain, least rate, priority, grant, what it loses by the limits, and its waits if it is paced. */
function siteFacts(site, waits) {
  if (!site) return [];
  const grant = site.granted_w != null ? `${kilowatts(site.granted_w)}${isUnconfirmed(site) ? `, not confirmed: counts as ${kilowatts(site.counted_w)}` : ''}`
    : site.state === 'fixed' ? `not controlled${site.reason ? ` (${site.reason})` : ''}: counts as ${kilowatts(site.counted_w)}` : 'no limit applies';
  return [
    ['domain', site.domain],
    ['least rate', site.least_rate > 0 && rate(site.least_rate)],
    ['priority', site.priority !== 1 && String(site.priority)],
    ['grant', grant],
    ['by limits', site.rate_lost != null && site.granted_w != null && slower(site.rate_lost)],
    ['paced', waits && `an iteration every ${seconds(waits.period_s)}, of which its ranks wait ${seconds(waits.wait_s)}` +
      (site.rate != null ? `: ${rate(site.rate)} of full speed` : '')],
    ['correction', site.correction != null && `× ${site.correction.toFixed(3)}`],
  ];
}

/** Returns the reason why there is no frontier yet. */
function waitingFor({ state, ranks, world_size }) {
  if (state === 'registered') {
    const expected = ranks?.expected ?? world_size;
    if (expected > ranks?.registered) return `Waiting for ranks: ${ranks.registered} of ${expected} have registered.`;
    return 'Waiting for a profile. Until there is a plan, everything runs at maximum clock.';
  }
  if (state === 'profiling') {
    return 'The frontier follows when profiling is done.';
  }
  if (state === 'characterizing') return 'The frontier is being computed. Meanwhile everything runs at maximum clock.';
  if (state === 'failed') return 'There is no frontier: everything runs at maximum clock.';
  return 'There is no frontier.';
}
