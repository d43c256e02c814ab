// Chart of the time-energy frontier: realized points, lower bound, reference points, T', the plan for T', the chosen point.
// T*, where effective energy is least, is shown with effective energy only; points past the least energy are hollow without it.
// Pointer: shows the nearest point; a click chooses it. Keyboard: the chart is a slider over the points, slower to the right.
import { element } from './dom.js';
import { createDragHandle } from './drag-handle.js';
import { createChart } from './echarts.js';
import { change, joules, percent, seconds, watts } from './format.js';
import { leastEnergyPoint } from './point-facts.js';
import { color, onThemeChange, pageFont } from './theme.js';
import { createTooltip } from './tooltip.js';

const symbols = { max: 'triangle', min: 'diamond' };

/**
 * frontier: { points: {time_s, energy_j, effective_energy_j, bound_j}, bound: {time_s, effective_energy_j},
 *             summary: {all_max, min_energy, straggler?}, waiting_w } (src/io/report/report_data.h)
 * Calls onChoose(point) when the user chooses a point.
 * Returns { choose(point), setEffective(boolean), setPlan(plan), dispose() }. A plan puts a ring around a point and draws
 * labeled lines that give the reason: { point, ink, lines: [{ at_s, label, ink }] }; ink is the name of a color; without a
 * point there is no ring. With { onDrag, until_s } the first line has a handle, dragging it calls onDrag(time), and the time
 * axis reaches until_s.
 */
export function createFrontierChart(parent, frontier, onChoose, { onDrag, until_s } = {}) {
  const surface = element('div', { class: 'chart-surface' });
  const holder = element('div', { class: 'chart frontier-chart', tabindex: '0', role: 'slider',
    'aria-label': 'Points of the frontier, slower to the right', 'aria-valuemin': '0' }, surface);
  parent.append(holder);
  const chart = createChart(surface);
  const tooltip = createTooltip(holder);
  const { points, summary } = frontier;
  const count = points.time_s.length;
  const least = leastEnergyPoint(points);
  const handle = onDrag && createDragHandle(holder, chart, onDrag);
  const state = { effective: false, chosen: count - 1, plan: null };

  const energyOf = (effective, total) => (state.effective ? effective : total);
  const pointEnergy = (p) => energyOf(points.effective_energy_j[p], points.energy_j[p]);
  const costEnergy = (cost) => energyOf(cost.effective_energy_j, cost.energy_j);
  const pointXY = (p) => [points.time_s[p], pointEnergy(p)];
  const paysOnlyWaiting = (p) => !state.effective && p < least;
  const pointDatum = (p) => (paysOnlyWaiting(p)
    ? { value: pointXY(p), itemStyle: { color: color('page'), borderColor: color('accent'), borderWidth: 1.5 } } : pointXY(p));
  const costXY = (cost) => [cost.time_s, costEnergy(cost)];

  function bound(xMax) {
    const { time_s, effective_energy_j } = frontier.bound;
    const line = time_s.map((t, k) => [t, effective_energy_j[k]]);
    line.push([Math.max(xMax, time_s.at(-1)), effective_energy_j.at(-1)]);
    return state.effective ? line : line.map(([t, e]) => [t, e + frontier.waiting_w * t]);
  }

  function extents() {
    const marked = [...points.time_s.keys()].map(pointXY);
    marked.push(costXY(summary.all_max), [frontier.bound.time_s[0], pointEnergy(count - 1)]);
    if (state.effective) marked.push(costXY(summary.min_energy));
    const farthest = farthestLine();
    for (const { at_s } of state.plan?.lines ?? []) marked.push([Math.min(at_s, farthest), pointEnergy(0)]);
    if (until_s) marked.push([Math.min(until_s, farthest), pointEnergy(0)]);
    return [0, 1].map((axis) => {
      const low = marked.reduce((a, xy) => Math.min(a, xy[axis]), Infinity);
      const high = marked.reduce((a, xy) => Math.max(a, xy[axis]), -Infinity);
      const air = (high > low ? high - low : Math.abs(high) || 1) * 0.06;
      return [low - air, high + air];
    });
  }

  /** Returns the latest time at which a line is drawn; later lines become an arrow there, so that the frontier stays wide. */
  function farthestLine() {
    const slowest = Math.max(points.time_s[0], summary.min_energy.time_s);
    return slowest + Math.max(0.6 * (slowest - points.time_s[count - 1]), 0.05 * slowest);
  }
  function planLines([low, high]) {
    const farthest = farthestLine();
    return (state.plan?.lines ?? []).map(({ at_s, label, ink }) => {
      const x = Math.min(at_s, farthest);
      return { xAxis: x, lineStyle: { color: color(ink) },
        label: { formatter: at_s > farthest ? `${label} ↓` : label, color: color(ink),
          position: x - low > (high - low) / 2 ? 'insideEndBottom' : 'insideEndTop' } };
    });
  }

  function axis(name, [min, max], gap) {
    return {
      type: 'value', name, nameLocation: 'middle', nameGap: gap, min, max, scale: true,
      nameTextStyle: { color: color('text'), fontSize: 13 },
      axisLine: { show: false }, axisTick: { show: false },
      axisLabel: { color: color('dim'), showMinLabel: false, showMaxLabel: false, hideOverlap: true,
        formatter: (v) => v.toLocaleString('en', { maximumSignificantDigits: 5 }) },
      splitLine: { lineStyle: { color: color('grid') } },
    };
  }

  function marker(name, symbol, at, ink) {
    return { name, type: 'scatter', data: [at], symbol, symbolSize: 15, z: 5, silent: true,
      itemStyle: { opacity: 1, color: ink, borderColor: color('page'), borderWidth: 1.5 } };
  }

  function draw() {
    const [x, y] = extents();
    const { plan } = state;
    chart.setOption({
      animation: false,
      aria: { enabled: false }, // the holder is the accessible slider
      textStyle: { fontFamily: pageFont() },
      grid: { left: 66, right: 18, top: 14, bottom: 50 },
      xAxis: axis('iteration time [s]', x, 30),
      yAxis: axis(state.effective ? 'effective energy [J]' : 'energy per iteration [J]', y, 52),
      dataZoom: [{ type: 'inside', filterMode: 'none', zoomOnMouseWheel: 'ctrl', moveOnMouseMove: 'ctrl' }],
      series: [
        { name: 'bound', type: 'line', data: bound(x[1]), symbol: 'none', silent: true, z: 4,
          lineStyle: { color: color('text'), width: 1.2, type: [5, 5] } },
        { name: 'points', type: 'scatter', data: [...points.time_s.keys()].map(pointDatum), symbolSize: count > 300 ? 4.5 : 7,
          z: 3, silent: true, itemStyle: { color: color('accent') },
          markLine: { silent: true, symbol: 'none', animation: false, lineStyle: { width: 1.5, type: 'solid' },
            label: { rotate: 90, fontSize: 12 }, data: planLines(x) } },
        marker('max', symbols.max, costXY(summary.all_max), color('max')),
        marker('min', symbols.min, state.effective ? costXY(summary.min_energy) : [], color('min')),
        { ...marker('plan', 'circle', plan?.point == null ? [] : pointXY(plan.point), 'transparent'), symbolSize: 19,
          itemStyle: { opacity: 1, color: 'transparent', borderColor: color(plan?.ink ?? 'straggler'), borderWidth: 2.5 } },
        { ...marker('chosen', 'circle', pointXY(state.chosen), color('text')), symbolSize: 13, z: 6,
          itemStyle: { opacity: 1, color: color('accent'), borderColor: color('text'), borderWidth: 2.5 } },
      ],
    }, { notMerge: false });
    const dragged = plan?.lines[0];
    handle?.place(dragged ? Math.min(dragged.at_s, farthestLine()) : null);
  }

  function facts(p) {
    const energy = points.energy_j[p];
    return [
      `Point ${p}`,
      ['time', seconds(points.time_s[p])],
      ['energy', joules(energy)],
      ['against maximum clock', change((100 * (energy - summary.all_max.energy_j)) / summary.all_max.energy_j)],
      ...(state.effective ? [['effective energy', joules(points.effective_energy_j[p])]] : []),
      ['gap to the bound', percent((100 * (energy - points.bound_j[p])) / points.bound_j[p])],
      ['mean power', watts(energy / points.time_s[p])],
      ...(paysOnlyWaiting(p) ? [['pays', 'only while waiting']] : []),
    ];
  }

  const costFacts = (title, cost) => [title, ['time', seconds(cost.time_s)], ['energy', joules(cost.energy_j)],
    ...(state.effective ? [['effective energy', joules(cost.effective_energy_j)]] : [])];

  /** Returns the nearest item to the pixel, if it is close enough. */
  function nearest(px, py) {
    const distance = (xy) => {
      const [qx, qy] = chart.convertToPixel({ gridIndex: 0 }, xy);
      return Math.hypot(qx - px, qy - py);
    };
    let best = { distance: 72 };
    for (let p = 0; p < count; ++p) {
      const d = distance(pointXY(p));
      if (d < best.distance) best = { distance: d, point: p, xy: pointXY(p), facts: () => facts(p) };
    }
    const special = [['Everything at maximum clock', summary.all_max]];
    if (state.effective) special.push(['Minimum effective energy (T*)', summary.min_energy]);
    for (const [title, cost] of special) {
      const d = distance(costXY(cost)) - 4;
      if (d < Math.min(12, best.distance)) best = { distance: d, xy: costXY(cost), facts: () => costFacts(title, cost) };
    }
    return best.xy ? best : null;
  }

  function showTooltip(xy, lines) {
    tooltip.show(...chart.convertToPixel({ gridIndex: 0 }, xy), lines);
  }

  function announce() {
    holder.setAttribute('aria-valuemax', count - 1);
    holder.setAttribute('aria-valuenow', count - 1 - state.chosen);
    const p = state.chosen;
    holder.setAttribute('aria-valuetext', `Point ${p}: ${seconds(points.time_s[p])}, ${joules(points.energy_j[p])}`);
  }

  function choose(p) {
    state.chosen = Math.min(count - 1, Math.max(0, p));
    chart.setOption({ series: [{}, {}, {}, {}, {}, { data: [pointXY(state.chosen)] }] });
    announce();
  }

  const zr = chart.getZr();
  zr.on('mousemove', (event) => {
    const found = nearest(event.offsetX, event.offsetY);
    if (found) showTooltip(found.xy, found.facts());
    else tooltip.hide();
  });
  zr.on('globalout', () => tooltip.hide());
  zr.on('click', (event) => {
    const found = nearest(event.offsetX, event.offsetY);
    if (found?.point !== undefined) onChoose(found.point);
  });
  zr.on('dblclick', () => chart.dispatchAction({ type: 'dataZoom', start: 0, end: 100 }));
  const page = Math.max(1, Math.round(count / 20));
  const steps = { ArrowRight: -1, ArrowUp: -1, ArrowLeft: 1, ArrowDown: 1, PageUp: -page, PageDown: page,
    Home: count, End: -count };
  holder.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') tooltip.hide();
    if (!(event.key in steps)) return;
    event.preventDefault();
    onChoose(Math.min(count - 1, Math.max(0, state.chosen + steps[event.key])));
    showTooltip(pointXY(state.chosen), facts(state.chosen));
  });
  holder.addEventListener('blur', () => tooltip.hide());

  draw();
  announce();
  const endTheme = onThemeChange(draw);
  return {
    choose,
    setPlan(plan) {
      state.plan = plan;
      draw();
    },
    dispose() {
      endTheme();
      chart.dispose();
      holder.remove();
    },
    setEffective(effective) {
      state.effective = effective;
      tooltip.hide();
      draw();
    },
  };
}

/** Returns the legend as HTML; `plan`, if given, is the label of the plan's ring. */
export function frontierLegend(plan) {
  const entry = (mark, text, kind) => element('li', { class: kind }, element('i', { class: `mark ${mark}` }), text);
  const entries = [entry('point', 'realized plan'), entry('waiting', 'pays only while waiting'), entry('bound', 'lower bound'),
    entry('max', 'everything at maximum clock'), entry('min', 'minimum effective energy (T*)', 'expert'), entry('chosen', 'chosen point')];
  if (plan) entries.push(entry('plan', plan));
  return element('ul', { class: 'legend' }, ...entries);
}
