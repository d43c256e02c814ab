// Chart of a history: what was measured (lines) against the plan (dashed), a panel for each figure, with lines where the plan
// changed and marks where a straggler was in force. A step without reports is a gap.
// Keyboard: the chart is a slider over the steps.
import { element } from '../dom.js';
import { createChart } from '../echarts.js';
import { change, seconds } from '../format.js';
import { color, onThemeChange, pageFont } from '../theme.js';
import { createTooltip } from '../tooltip.js';
import { count, energy } from './words.js';

const clock = { hour: '2-digit', minute: '2-digit' };
const date = { day: 'numeric', month: 'short' };

export function stepTime(start_s, step_s) {
  const at = new Date(start_s * 1000);
  if (step_s > 3600) return at.toLocaleDateString([], { ...date, timeZone: 'UTC' }); // a day is one in UTC
  return at.toLocaleString([], { ...(step_s === 3600 && date), ...clock, hourCycle: 'h23' });
}

/** Steps in which the plan was another one than before. */
export function planChanges(buckets) {
  let before = null;
  return buckets.filter(({ first_plan_version: first, last_plan_version: last }) => {
    if (!last) return false;
    const changed = before !== null && (first !== before || last !== first);
    before = last;
    return changed;
  });
}

/** How a measured value differs from the planned one, if there is a plan. */
export const against = (measured, planned) => (planned > 0 ? ` (${change((100 * (measured - planned)) / planned)} against the plan)` : '');

/** Facts of a step of a job: [title, [name, value], ...]. */
export function factsOf(bucket, step_s) {
  const { iteration_time_s: time, planned_time_s: planTime, iteration_energy_j: used, planned_energy_j: planEnergy } = bucket;
  return [
    stepTime(bucket.start_s, step_s),
    ['iterations', count(bucket.iterations, 'iteration')],
    ['time', seconds(time) + against(time, planTime)],
    ['energy', used > 0 ? energy(used) + against(used, planEnergy) : 'not measured'],
    ['planned', planTime > 0 ? `${seconds(planTime)}, ${energy(planEnergy)}` : 'no plan followed'],
    ...(bucket.last_plan_version ? [['plan', `version ${bucket.last_plan_version}`]] : []),
    ...(bucket.straggler_iterations > 0 ? [['straggler in force', count(bucket.straggler_iterations, 'iteration')]] : []),
  ];
}

/** Points of a line, with a gap wherever a step or its value is missing. */
export function lineOf(buckets, step_s, member) {
  const line = [];
  let last_s = null;
  for (const bucket of buckets) {
    if (last_s !== null && bucket.start_s - last_s > step_s) line.push([1000 * (last_s + step_s), null]);
    line.push([1000 * bucket.start_s, bucket[member] ?? null]);
    last_s = bucket.start_s;
  }
  return line;
}

/**
 * panels: [{ name, measured, planned }], the last two are members of a step; facts(step, step_s): as factsOf().
 * Returns { show({ buckets, step_s }, from_s, to_s), dispose() }.
 */
export function createHistoryChart(parent, { panels, facts }) {
  const surface = element('div', { class: 'chart-surface' });
  const holder = element('div', { class: `chart history-chart${panels.length === 1 ? ' single' : ''}`, tabindex: '0', role: 'slider', 'aria-valuemin': '0',
    'aria-label': 'Measured iterations against the plan, later to the right' }, surface);
  parent.append(holder);
  const chart = createChart(surface);
  const tooltip = createTooltip(holder);
  const state = { buckets: [], step_s: 60, from_s: 0, to_s: 0, chosen: null };

  const ruler = (changes) => ({ silent: true, symbol: 'none', animation: false, label: { show: false },
    lineStyle: { color: color('plan'), width: 1.2, type: 'solid' }, data: changes.map(({ start_s }) => ({ xAxis: 1000 * start_s })) });
  function seriesOf(panel, k) {
    const { buckets, step_s } = state;
    const place = { xAxisIndex: k, yAxisIndex: k, animation: false, silent: true };
    // A step with a gap on both sides has no line.
    const line = (member, style) => ({ ...place, type: 'line', data: lineOf(buckets, step_s, member), symbol: 'circle', showSymbol: buckets.length < 200,
      symbolSize: 3.5, connectNulls: false, lineStyle: style, itemStyle: { color: style.color } });
    const slow = buckets.filter((bucket) => bucket.straggler_iterations > 0 && bucket[panel.measured] != null);
    return [
      { ...line(panel.planned, { color: color('plan'), width: 1.5, type: [5, 4] }), markLine: ruler(planChanges(buckets)) },
      line(panel.measured, { color: color('accent'), width: 2 }),
      { ...place, type: 'scatter', symbol: 'triangle', symbolSize: 8, itemStyle: { color: color('straggler'), opacity: 1 },
        data: slow.map((bucket) => [1000 * bucket.start_s, bucket[panel.measured]]) },
    ];
  }

  function draw() {
    const label = { color: color('dim'), hideOverlap: true };
    const [first, last] = panels.length === 1 ? [{ bottom: 34 }] : [{ height: '36%' }, { bottom: 34, height: '34%' }];
    const grids = [{ left: 66, right: 18, top: 26, ...first }, ...(last ? [{ left: 66, right: 18, ...last }] : [])];
    const range = { min: 1000 * state.from_s, max: 1000 * state.to_s };
    chart.setOption({
      animation: false,
      aria: { enabled: false }, // the holder is the accessible slider
      textStyle: { fontFamily: pageFont() },
      grid: grids,
      xAxis: panels.map((_, k) => ({ type: 'time', gridIndex: k, ...range, axisLabel: { ...label, show: k === panels.length - 1 }, axisTick: { show: false },
        axisLine: { lineStyle: { color: color('line') } }, splitLine: { show: false } })),
      yAxis: panels.map(({ name }, k) => ({ type: 'value', gridIndex: k, name, scale: true, nameTextStyle: { color: color('text'), align: 'left' }, nameGap: 8,
        splitNumber: 3, axisLabel: { ...label, formatter: (v) => v.toLocaleString('en', { maximumSignificantDigits: 5 }) },
        splitLine: { lineStyle: { color: color('grid') } } })),
      series: panels.flatMap(seriesOf),
    }, { notMerge: true });
  }

  function choose(k) {
    state.chosen = Math.min(state.buckets.length - 1, Math.max(0, k));
    const bucket = state.buckets[state.chosen];
    const [title, ...values] = facts(bucket, state.step_s);
    holder.setAttribute('aria-valuemax', state.buckets.length - 1);
    holder.setAttribute('aria-valuenow', state.chosen);
    holder.setAttribute('aria-valuetext', `${title}: ${values.map(([name, value]) => `${name} ${value}`).join(', ')}`);
    return bucket;
  }
  function showChosen(k) {
    const bucket = choose(k);
    const [x, y] = chart.convertToPixel({ gridIndex: 0 }, [1000 * bucket.start_s, bucket[panels[0].measured] ?? 0]);
    tooltip.show(x, y, facts(bucket, state.step_s));
  }
  /** Index of the step nearest to a horizontal pixel. */
  function nearest(px) {
    const [at_ms] = chart.convertFromPixel({ gridIndex: 0 }, [px, 0]);
    let best = 0;
    state.buckets.forEach(({ start_s }, k) => {
      if (Math.abs(1000 * start_s - at_ms) < Math.abs(1000 * state.buckets[best].start_s - at_ms)) best = k;
    });
    return best;
  }

  const zr = chart.getZr();
  zr.on('mousemove', (event) => showChosen(nearest(event.offsetX)));
  zr.on('click', (event) => showChosen(nearest(event.offsetX))); // on a phone
  zr.on('globalout', () => tooltip.hide());
  holder.addEventListener('keydown', (event) => {
    const page = Math.max(1, Math.round(state.buckets.length / 10));
    const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: page, PageDown: -page, Home: -Infinity, End: Infinity };
    if (event.key === 'Escape') tooltip.hide();
    if (!(event.key in steps)) return;
    event.preventDefault();
    showChosen(state.chosen + steps[event.key]);
  });
  holder.addEventListener('blur', () => tooltip.hide());

  const endTheme = onThemeChange(draw);
  return {
    show({ buckets, step_s }, from_s, to_s) {
      const last = state.chosen === null || state.chosen === state.buckets.length - 1;
      Object.assign(state, { buckets, step_s, from_s, to_s });
      choose(last ? buckets.length - 1 : state.chosen);
      draw();
    },
    dispose() {
      endTheme();
      chart.dispose();
      holder.remove();
    },
  };
}
