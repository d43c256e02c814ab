// Chart of a domain's power: what was allowed, planned and drawn, and the limits and plans ahead, in which what is announced or
// expected is dashed. A second panel has the limit and the site meter as metered, if there is a meter.
// Keyboard: the chart is a slider over the steps, those ahead included.
import { element } from '../dom.js';
import { createChart } from '../echarts.js';
import { color, onThemeChange, pageFont } from '../theme.js';
import { createTooltip } from '../tooltip.js';
import { lineOf, stepTime } from './history-chart.js';
import { slower } from './site-data.js';
import { kilowatts } from './words.js';

/** Facts of a step: [title, [name, value], ...]; `ahead`: of the forecast. */
export function factsOf(step, step_s, ahead) {
  const fact = (name, w) => (w == null ? [] : [[name, kilowatts(w)]]);
  const limit = step.limit_w == null ? [['limit', 'none']] : fact('limit', step.limit_w);
  const lost = step.rate_lost == null ? [] : [['rate', slower(step.rate_lost)]];
  const missing = step.missing_w > 0 ? fact('missing', step.missing_w) : [];
  if (ahead) return [`from ${stepTime(step.start_s, step_s)}`, ...limit, ...(step.guard_w > 0 ? fact('guard', step.guard_w) : []),
    ...fact('expected', step.expected_w), ...missing, ...lost];
  return [stepTime(step.start_s, step_s), ...limit, ...fact('without limits', step.baseline_w), ...fact('planned', step.planned_w),
    ...fact('counted', step.counted_w), ...(step.reported_w > 0 ? fact('reported', step.reported_w) : []), ...fact('metered', step.metered_w),
    ...(step.metered_w == null ? [] : fact('metered limit', step.metered_limit_w)), ...missing, ...lost];
}

/** Points of a forecast: a step lasts until the next one. */
export function stepsAhead(entries, until_s, member) {
  if (entries.length === 0) return [];
  return [...entries.map((entry) => [1000 * entry.start_s, entry[member] ?? null]), [1000 * until_s, entries.at(-1)[member] ?? null]];
}

/** Returns { show({ past, step_s, ahead, until_s }, from_s, now_s), dispose() }. */
export function createSiteChart(parent) {
  const surface = element('div', { class: 'chart-surface' });
  const holder = element('div', { class: 'chart history-chart site-chart', tabindex: '0', role: 'slider', 'aria-valuemin': '0',
    'aria-label': 'Power of the domain against its limit, later to the right' }, surface);
  parent.append(holder);
  const chart = createChart(surface);
  const tooltip = createTooltip(holder);
  const state = { past: [], ahead: [], step_s: 60, from_s: 0, now_s: 0, until_s: 0, chosen: null };
  const steps = () => [...state.past, ...state.ahead];
  const hasMeter = () => state.past.some(({ metered_w: w }) => w != null);

  function series() {
    const { past, ahead, step_s, until_s, now_s } = state;
    const line = (data, lineStyle, more = {}) => ({ type: 'line', data, symbol: 'circle', showSymbol: past.length < 3, symbolSize: 3.5, connectNulls: false,
      animation: false, silent: true, lineStyle, itemStyle: { color: lineStyle.color }, xAxisIndex: 0, yAxisIndex: 0, ...more });
    const of = (member) => lineOf(past, step_s, member);
    const now = { silent: true, symbol: 'none', animation: false, label: { show: false }, lineStyle: { color: color('line'), width: 1.5, type: 'solid' },
      data: [{ xAxis: 1000 * now_s }] };
    const limit = { color: color('limit'), width: 2 };
    const second = { xAxisIndex: 1, yAxisIndex: 1 };
    return [
      line(of('counted_w'), { color: color('counted'), width: 1.5 }, { markLine: now }),
      line(of('baseline_w'), { color: color('dim'), width: 1.2, type: [1, 4] }),
      line(of('planned_w'), { color: color('plan'), width: 1.5, type: [5, 4] }),
      line(of('reported_w').map(([at, w]) => [at, w > 0 ? w : null]), { color: color('accent'), width: 2 }),
      line(of('limit_w'), limit, { step: 'end' }),
      line(stepsAhead(ahead, until_s, 'limit_w'), { ...limit, type: [3, 3] }, { step: 'end' }),
      line(stepsAhead(ahead, until_s, 'expected_w'), { color: color('plan'), width: 1.5, type: [5, 4] }, { step: 'end' }),
      ...(hasMeter() ? [line(of('metered_w'), { color: color('accent'), width: 2 }, second), line(of('metered_limit_w'), limit, { ...second, step: 'end' }),
        line(stepsAhead(ahead, until_s, 'metered_limit_w'), { ...limit, type: [3, 3] }, { ...second, step: 'end' })] : []),
    ];
  }
  function draw() {
    const label = { color: color('dim'), hideOverlap: true };
    const names = hasMeter() ? ['accelerators [kW]', 'as metered [kW]'] : ['accelerators [kW]'];
    const grids = names.length === 1 ? [{ left: 66, right: 18, top: 26, bottom: 34 }]
      : [{ left: 66, right: 18, top: 26, height: '36%' }, { left: 66, right: 18, bottom: 34, height: '32%' }];
    const range = { min: 1000 * state.from_s, max: 1000 * Math.max(state.now_s, state.until_s) };
    chart.setOption({
      animation: false,
      aria: { enabled: false }, // the holder is the accessible slider
      textStyle: { fontFamily: pageFont() },
      grid: grids,
      xAxis: names.map((_, k) => ({ type: 'time', gridIndex: k, ...range, axisLabel: { ...label, show: k === names.length - 1 }, axisTick: { show: false },
        axisLine: { lineStyle: { color: color('line') } }, splitLine: { show: false } })),
      yAxis: names.map((name, k) => ({ type: 'value', gridIndex: k, name, scale: true, nameTextStyle: { color: color('text'), align: 'left' }, nameGap: 8,
        splitNumber: 3, axisLabel: { ...label, formatter: (w) => (w / 1000).toLocaleString('en', { maximumSignificantDigits: 5 }) },
        splitLine: { lineStyle: { color: color('grid') } } })),
      series: series(),
    }, { notMerge: true });
  }

  const facts = (k) => factsOf(steps()[k], state.step_s, k >= state.past.length);
  function choose(k) {
    const last = steps().length - 1;
    state.chosen = Math.min(last, Math.max(0, k));
    const [title, ...values] = facts(state.chosen);
    holder.setAttribute('aria-valuemax', last);
    holder.setAttribute('aria-valuenow', state.chosen);
    holder.setAttribute('aria-valuetext', `${title}: ${values.map(([name, value]) => `${name} ${value}`).join(', ')}`);
  }
  function showChosen(k) {
    choose(k);
    const step = steps()[state.chosen];
    const [x, y] = chart.convertToPixel({ gridIndex: 0 }, [1000 * step.start_s, step.counted_w ?? step.expected_w ?? 0]);
    tooltip.show(x, y, facts(state.chosen));
  }
  /** Index of the step nearest to a horizontal pixel; of the forecast, the one that holds there. */
  function nearest(px) {
    const [at_ms] = chart.convertFromPixel({ gridIndex: 0 }, [px, 0]);
    const all = steps();
    const held = all.findLastIndex(({ start_s }) => 1000 * start_s <= at_ms);
    if (held >= state.past.length || held === all.length - 1) return held;
    if (held < 0) return 0;
    return held + 1 < state.past.length && 1000 * all[held + 1].start_s - at_ms < at_ms - 1000 * all[held].start_s ? held + 1 : held;
  }
  const zr = chart.getZr();
  zr.on('mousemove', (event) => showChosen(nearest(event.offsetX)));
  zr.on('click', (event) => showChosen(nearest(event.offsetX))); // on a phone
  zr.on('globalout', () => tooltip.hide());
  holder.addEventListener('keydown', (event) => {
    const page = Math.max(1, Math.round(steps().length / 10));
    const moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: page, PageDown: -page, Home: -Infinity, End: Infinity };
    if (event.key === 'Escape') tooltip.hide();
    if (!(event.key in moves)) return;
    event.preventDefault();
    showChosen(state.chosen + moves[event.key]);
  });
  holder.addEventListener('blur', () => tooltip.hide());
  const endTheme = onThemeChange(draw);
  return {
    show({ past, step_s, ahead, until_s }, from_s, now_s) {
      const last = state.chosen === null || state.chosen === state.past.length - 1;
      Object.assign(state, { past, ahead, step_s, until_s, from_s, now_s });
      choose(last ? Math.max(0, past.length - 1) : state.chosen);
      draw();
    },
    dispose() {
      endTheme();
      chart.dispose();
      holder.remove();
    },
  };
}
