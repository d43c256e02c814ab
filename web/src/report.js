// Script of report.html: adds the charts to the page that src/io/report/html.cpp writes; all show the same chosen point.
import { element } from './dom.js';
import { download } from './download.js';
import { createEnergySwitch } from './energy-switch.js';
import { seconds } from './format.js';
import { createFrontierChart, frontierLegend } from './frontier-chart.js';
import { allMaximumClock, readIteration, readPlan } from './iteration.js';
import { pointFacts } from './point-facts.js';
import { createPointsTable, pointsCsv } from './points-table.js';
import { createRunCosts } from './run-costs.js';
import { createStageClocks } from './stage-clocks.js';
import { createStragglerStory } from './straggler-story.js';
import { createTimelineChart } from './timeline-chart.js';
import { timelineOf } from './timeline.js';

const data = JSON.parse(document.getElementById('perseus-data').textContent);
const section = (id, title) => {
  const found = document.getElementById(id);
  const heading = element('div', { class: 'heading' }, element('h2', { id: `${id}-title`, text: title }));
  found.append(heading);
  return { found, heading };
};

const iteration = readIteration(data);
const frontier = { ...data, waiting_w: iteration.waiting.reduce((a, b) => a + b, 0) };
const { points, plans, summary } = data;
const fastest = points.time_s.length - 1;
const standard = summary.default_point ?? fastest;

/** Returns the index of the plan nearest to a point; the report has plans of some points only. */
function drawnPlan(point) {
  let best = 0;
  plans.point.forEach((p, k) => {
    if (Math.abs(p - point) < Math.abs(plans.point[best] - point)) best = k;
  });
  return best;
}
function panelOf(point) {
  const k = drawnPlan(point);
  const drawn = plans.point[k];
  const name = drawn === point ? `Point ${point}` : `Point ${drawn}, the nearest one kept in this file to point ${point}`;
  return { name, timeline: timelineOf(iteration, readPlan(iteration, plans.runs[k])) };
}

// Frontier
const frontierPart = section('frontier', 'Frontier');
const energySwitch = createEnergySwitch(document.documentElement, (effective) => chart.setEffective(effective));
frontierPart.heading.append(energySwitch.root);
const chartSide = element('div', { class: 'chart-side' }, frontierLegend('plan for the straggler, T′'));
const facts = element('dl', { class: 'facts', 'aria-live': 'polite' });
const shortcut = (text, point) => element('button', { type: 'button', text, onclick: () => choose(point) });
const leastEnergy = points.energy_j.indexOf(points.energy_j.reduce((a, b) => Math.min(a, b)));
const shortcuts = element('div', { class: 'shortcuts' }, shortcut('Default', standard), shortcut('Fastest', fastest), shortcut('Least energy', leastEnergy),
  shortcut('Slowest', 0));
frontierPart.found.append(element('div', { class: 'split' }, chartSide, element('div', { role: 'group', 'aria-label': 'Chosen point' }, facts, shortcuts)));
const slowest_s = points.time_s[0] + 0.3 * (points.time_s[0] - points.time_s[fastest] || points.time_s[0]);
const chart = createFrontierChart(chartSide, frontier, choose, { onDrag: (at_s) => story.set(at_s), until_s: slowest_s });
chartSide.append(energySwitch.note, element('p', { class: 'note', text: 'Click a point, or focus the chart and use the arrow keys.' }));

// Straggler
const after = (part, id) => part.found.after(element('section', { id, 'aria-labelledby': `${id}-title` }));
after(frontierPart, 'straggler');
const stragglerPart = section('straggler', 'While a straggler sets the pace');
const story = createStragglerStory(stragglerPart.found, frontier, { fastest_s: points.time_s[standard], slowest_s }, (choice, at_s) => {
  const label = choice ? `T′ = ${seconds(at_s)}` : 'no straggler';
  chart.setPlan({ point: choice?.point, ink: 'straggler', lines: [{ at_s, label, ink: 'straggler' }] });
  choose(choice?.point ?? standard);
});

// Costs
after(stragglerPart, 'costs');
const costs = createRunCosts(section('costs', 'Over a day and a year').found, data);

// Timeline
const timelinePart = section('timeline', 'One iteration, rank by rank');
const picker = element('input', { type: 'range', min: 0, max: fastest, step: 1, id: 'picker',
  oninput: () => choose(fastest - Number(picker.value)) });
const picked = element('output', { for: 'picker' });
timelinePart.heading.append(element('div', { class: 'picker' }, element('label', { for: 'picker', text: 'Point' }), picker, picked));
const timeline = createTimelineChart(timelinePart.found, [
  { name: 'Everything at maximum clock', timeline: timelineOf(iteration, allMaximumClock(iteration)) },
  panelOf(standard),
]);
timelinePart.found.append(element('p', { class: 'note', text: 'Letters are instructions (F forward, B backward), numbers are ' +
  'microbatches. Drag or use the slider to move, Ctrl + wheel to zoom, arrow keys to walk over the computations.' }));

// Clocks
after(timelinePart, 'clocks');
const clocks = createStageClocks(section('clocks', 'Clocks per stage').found, iteration);

// Points
const pointsPart = section('points', 'All points');
pointsPart.heading.append(element('button', { type: 'button', text: 'Download CSV',
  onclick: () => download('frontier.csv', 'text/csv', pointsCsv(frontier)) }));
const table = createPointsTable(pointsPart.found, frontier, choose);

let pending = 0;
function choose(point) {
  chart.choose(point);
  table.choose(point);
  costs.choose(point);
  facts.replaceChildren(...pointFacts(data, point));
  picker.value = String(fastest - point);
  picked.textContent = `${point}: ${seconds(points.time_s[point])}`;
  picker.setAttribute('aria-valuetext', `point ${point}, ${seconds(points.time_s[point])}`);
  document.documentElement.dataset.point = String(point);
  cancelAnimationFrame(pending); // a dragged slider changes more often than a large timeline can be drawn
  pending = requestAnimationFrame(() => {
    const panel = panelOf(point);
    timeline.setPanel(1, panel);
    clocks.show(panel.timeline.plan);
  });
}
story.set(summary.straggler?.deadline_s ?? points.time_s[standard]);
choose(standard);
document.documentElement.dataset.ready = 'true';
