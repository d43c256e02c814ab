// Chart of iterations below each other on one time axis: a row per rank, bars colored by power, critical path marked.
// ECharts provides axes, zoom and pan; timeline-painter.js paints the bars into one image per iteration.
// Keyboard: arrows move between the computations, + and - zoom, 0 shows all, c selects the next critical computation.
import { element } from './dom.js';
import { createChart } from './echarts.js';
import { joules, megahertz, seconds, watts } from './format.js';
import { powerRamp, rampGradient } from './power-ramp.js';
import { color, currentTheme, onThemeChange, pageFont } from './theme.js';
import { computationAt, powerRange } from './timeline.js';
import { paintTimeline } from './timeline-painter.js';
import { createTooltip } from './tooltip.js';

const head = 30; // pixels above each iteration, for its name
const foot = 30; // and below it, for its time axis
const slider = 44;
const left = 40;
const right = 14;

/** panels: [{ name, timeline }], all of one pipeline. Returns { setPanel(index, panel), dispose() }. */
export function createTimelineChart(parent, panels) {
  const state = { panels: [...panels], focus: null, byPointer: false };
  const ranks = panels[0].timeline.rows.length;
  const rowHeight = Math.min(26, Math.max(5, 300 / Math.max(1, ranks)));
  const labelEvery = 2 ** Math.max(0, Math.ceil(Math.log2(14 / rowHeight)));
  const gridHeight = Math.round(rowHeight * ranks);
  const top = (k) => k * (head + gridHeight + foot) + head;

  const surface = element('div', { class: 'chart-surface' });
  const live = element('p', { class: 'visually-hidden', 'aria-live': 'polite' });
  const outline = element('div', { class: 'focus-bar', hidden: true });
  const titles = panels.map((_, k) => element('p', { class: 'panel-title', style: `top:${top(k) - head}px` }));
  const holder = element('div', { class: 'chart timeline-chart', tabindex: '0', role: 'application',
    'aria-label': 'Timeline. Arrow keys walk over the computations, plus and minus zoom, 0 shows everything, ' +
      'c goes to the next critical computation.',
    style: `height:${top(panels.length) - head + slider}px` }, surface, ...titles, outline, live);
  const scale = legend(panels[0].timeline.iteration.slow.length > 0);
  parent.append(scale.root, holder);
  const chart = createChart(surface);
  const tooltip = createTooltip(holder);
  const canvases = panels.map(() => document.createElement('canvas'));

  const span = () => Math.max(...state.panels.map((p) => p.timeline.makespan));
  const range = () => powerRange(state.panels.map((p) => p.timeline));

  /** Returns the renderer of iteration k's series, whose only item is an image of the visible part of the axis. */
  function renderer(k) {
    return (params, api) => {
      const box = params.coordSys;
      const [zero] = api.coord([0, 0]);
      const [one] = api.coord([1, 0]);
      paintTimeline(canvases[k], state.panels[k].timeline, {
        width: box.width, height: box.height, pixelRatio: devicePixelRatio,
        from: (box.x - zero) / (one - zero), to: (box.x + box.width - zero) / (one - zero),
        ramp: state.ramp, range: state.range, font: pageFont(),
        colors: { wait: color('wait'), critical: color('critical'), halo: color('page'), slow: color('max') },
      });
      return { type: 'image', silent: true,
        style: { image: canvases[k], x: box.x, y: box.y, width: box.width, height: box.height } };
    };
  }

  function draw() {
    state.ramp = powerRamp(currentTheme());
    state.range = range();
    scale.update(state.range);
    const end = span();
    titles.forEach((title, k) => {
      const { name, timeline } = state.panels[k];
      title.replaceChildren(element('b', { text: name }), ` ${seconds(timeline.makespan)}, ${joules(timeline.energy)}`);
    });
    const axisText = { color: color('dim'), fontSize: 11 };
    chart.setOption({
      animation: false,
      textStyle: { fontFamily: pageFont() },
      grid: state.panels.map((_, k) => ({ left, right, top: top(k), height: gridHeight })),
      xAxis: state.panels.map((_, k) => ({ type: 'value', gridIndex: k, min: 0, max: end, axisLine: { show: false },
        axisTick: { show: false }, splitLine: { show: false },
        axisLabel: { ...axisText, showMaxLabel: false, hideOverlap: true, formatter: (v) => axisSeconds(v) } })),
      yAxis: state.panels.map((_, k) => ({ type: 'category', gridIndex: k, inverse: true, axisLine: { show: false },
        data: Array.from({ length: ranks }, (__, r) => String(r)), axisTick: { show: false },
        axisLabel: { ...axisText, interval: (r) => r % labelEvery === 0 } })),
      dataZoom: [
        { type: 'inside', xAxisIndex: state.panels.map((_, k) => k), filterMode: 'none', zoomOnMouseWheel: 'ctrl',
          moveOnMouseMove: matchMedia('(pointer: fine)').matches, throttle: 16 },
        { type: 'slider', xAxisIndex: state.panels.map((_, k) => k), filterMode: 'none', height: 22, bottom: 8, left, right,
          showDataShadow: false, brushSelect: false, labelFormatter: sliderSeconds, textStyle: axisText,
          borderColor: color('grid'), fillerColor: color('filler'), backgroundColor: 'transparent',
          handleStyle: { color: color('page'), borderColor: color('dim') },
          moveHandleStyle: { color: color('dim'), opacity: 0.5 } },
      ],
      series: state.panels.map((_, k) => ({ type: 'custom', xAxisIndex: k, yAxisIndex: k, data: [[0, 0]], silent: true,
        clip: false, renderItem: renderer(k), encode: { x: -1, y: -1 } })),
    });
    placeOutline();
  }

  function facts({ panel, index }) {
    const t = state.panels[panel].timeline;
    const { type, types, microbatch, rank } = t.iteration;
    const { stage, instruction, clock_mhz } = types[type[index]];
    const name = instruction.replaceAll('_', ' ') + (microbatch[index] < 0 ? '' : ` ${microbatch[index]}`);
    return [
      name,
      ['rank', `${rank[index]}${stage < 0 || stage === rank[index] ? '' : `, stage ${stage}`}`],
      ['clock', megahertz(clock_mhz[t.plan[index]])],
      ['time', seconds(t.end[index] - t.start[index])],
      ['energy', joules(t.energyOf[index])],
      ['power', watts(t.power[index])],
      ['starts', seconds(t.start[index])],
      ...(t.onPath[index] ? [['critical', 'yes']] : []),
    ];
  }

  /** Returns the bar under a pixel of the chart. */
  function barAt(x, y) {
    for (let k = 0; k < state.panels.length; ++k) {
      if (!chart.containPixel({ gridIndex: k }, [x, y])) continue;
      const time = chart.convertFromPixel({ xAxisIndex: k }, x);
      const rank = Math.min(ranks - 1, Math.max(0, Math.floor((y - top(k)) / (gridHeight / ranks))));
      const index = computationAt(state.panels[k].timeline, rank, time);
      return { panel: k, rank, time, index };
    }
    return null;
  }

  function place({ panel, index }) {
    const t = state.panels[panel].timeline;
    const x = (time) => chart.convertToPixel({ xAxisIndex: panel }, time);
    const from = Math.max(left, x(t.start[index]));
    const to = Math.min(surface.clientWidth - right, x(t.end[index]));
    const y = top(panel) + (t.iteration.rank[index] * gridHeight) / ranks;
    return { from, to, y, height: gridHeight / ranks };
  }

  function placeOutline() {
    outline.hidden = !state.focus;
    if (!state.focus) return;
    const { from, to, y, height } = place(state.focus);
    outline.hidden = to < from;
    Object.assign(outline.style, { left: `${from - 2}px`, top: `${y - 2}px`, width: `${Math.max(3, to - from) + 3}px`,
      height: `${height + 2}px` });
  }

  function setFocus(focus, aloud) {
    state.focus = focus && focus.index >= 0 ? focus : null;
    state.byPointer = false;
    placeOutline();
    if (!state.focus) return tooltip.hide();
    const lines = facts(state.focus);
    const { from, to, y, height } = place(state.focus);
    tooltip.show((from + to) / 2, y + height, lines);
    if (aloud) {
      live.textContent = `${state.panels[state.focus.panel].name}, ${lines[0]}, ` +
        lines.slice(1).map((fact) => fact.join(' ')).join(', ');
    }
  }

  const window_ = () => {
    const { startValue, endValue } = chart.getOption().dataZoom[0];
    return [startValue ?? 0, endValue ?? span()];
  };
  function setWindow(from, to) {
    const width = Math.min(span(), to - from);
    const start = Math.min(Math.max(0, from), span() - width);
    chart.dispatchAction({ type: 'dataZoom', startValue: start, endValue: start + width });
    placeOutline();
  }
  function zoom(factor) {
    const [from, to] = window_();
    const focus = state.focus && state.panels[state.focus.panel].timeline.start[state.focus.index];
    const middle = focus !== null && focus >= from && focus <= to ? focus : (from + to) / 2;
    setWindow(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }
  function bringIntoView({ panel, index }) {
    const t = state.panels[panel].timeline;
    const [from, to] = window_();
    if (t.start[index] >= from && t.end[index] <= to) return;
    const middle = (t.start[index] + t.end[index]) / 2;
    setWindow(middle - (to - from) / 2, middle + (to - from) / 2);
  }

  function walk(key) {
    const focus = state.focus ?? { panel: state.panels.length - 1, index: -1 };
    const t = state.panels[focus.panel].timeline;
    if (focus.index < 0) return { ...focus, index: t.critical[0] ?? t.rows[0][0] };
    const rank = t.iteration.rank[focus.index];
    const row = t.rows[rank];
    const at = row.indexOf(focus.index);
    const middle = (t.start[focus.index] + t.end[focus.index]) / 2;
    if (key === 'ArrowLeft') return { ...focus, index: row[Math.max(0, at - 1)] };
    if (key === 'ArrowRight') return { ...focus, index: row[Math.min(row.length - 1, at + 1)] };
    if (key === 'Home') return { ...focus, index: row[0] };
    if (key === 'End') return { ...focus, index: row.at(-1) };
    if (key === 'c') {
      const next = t.critical.find((i) => t.start[i] > t.start[focus.index]);
      return { ...focus, index: next ?? t.critical[0] };
    }
    const flat = focus.panel * ranks + rank + (key === 'ArrowUp' ? -1 : 1); // may move to the iteration above or below
    if (flat < 0 || flat >= ranks * state.panels.length) return focus;
    const panel = Math.floor(flat / ranks);
    const index = computationAt(state.panels[panel].timeline, flat % ranks, middle, true);
    return index < 0 ? focus : { panel, index };
  }

  const zooms = { '+': 0.5, '=': 0.5, '-': 2, '0': Infinity };
  const walks = ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End', 'c'];
  function zoomBy(factor) {
    if (factor === Infinity) setWindow(0, span());
    else zoom(factor);
    if (state.focus) setFocus(state.focus, false);
  }
  holder.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape') setFocus(null, false);
    else if (event.key in zooms) zoomBy(zooms[event.key]);
    else if (walks.includes(event.key)) {
      const focus = walk(event.key);
      bringIntoView(focus);
      setFocus(focus, true);
    } else return;
    event.preventDefault();
  });
  holder.addEventListener('blur', () => setFocus(null, false));
  const zr = chart.getZr();
  function point(bar) {
    const found = bar !== null && bar.index >= 0;
    if (!found && !state.byPointer) return; // a choice by keyboard stays
    setFocus(bar, false);
    state.byPointer = found;
  }
  for (const name of ['mousemove', 'click']) zr.on(name, ({ offsetX, offsetY }) => point(barAt(offsetX, offsetY))); // touch sends no mousemove
  zr.on('globalout', () => point(null));
  chart.on('datazoom', placeOutline);
  scale.onZoom(zoomBy);
  const observer = new ResizeObserver(() => setFocus(null, false));
  observer.observe(surface);
  draw();
  const endTheme = onThemeChange(draw);
  return {
    setPanel(index, panel) {
      state.panels[index] = panel;
      setFocus(null, false);
      draw();
    },
    dispose() {
      endTheme();
      observer.disconnect();
      chart.dispose();
      scale.root.remove();
      holder.remove();
    },
  };
}

/** Returns a tick's label; none for the uneven value at which a zoomed axis begins. */
function axisSeconds(v) {
  const round = Number(Number(v).toPrecision(7));
  return Math.abs(round - v) > 1e-12 * Math.abs(v) ? '' : `${round.toLocaleString('en', { maximumSignificantDigits: 7 })} s`;
}
const sliderSeconds = (v) => seconds(Number(v));


/** Makes the color scale, marks, and zoom buttons. */
function legend(slowTransfers) {
  const ramp = element('i', { class: 'ramp' });
  const low = element('span');
  const high = element('span');
  const button = (text, label, factor) =>
    element('button', { type: 'button', 'aria-label': label, title: label, 'data-factor': factor, text });
  const zoom = element('div', { class: 'zoom', role: 'group', 'aria-label': 'Zoom' }, button('−', 'Zoom out', 2),
    button('+', 'Zoom in', 0.5), button('All', 'Show the whole iteration', Infinity));
  const root = element('div', { class: 'timeline-legend' },
    element('span', { class: 'scale' }, 'power of a rank ', low, ramp, high),
    element('span', {}, element('i', { class: 'mark wait' }), 'waits'),
    ...(slowTransfers ? [element('span', {}, element('i', { class: 'mark slow' }), 'slow transfer')] : []),
    element('span', {}, element('i', { class: 'mark critical' }), 'critical path'), zoom);
  return {
    root,
    update(range) {
      low.textContent = watts(range.low);
      high.textContent = watts(range.high);
      ramp.style.background = rampGradient(currentTheme());
    },
    onZoom(act) {
      zoom.addEventListener('click', (event) => {
        const factor = event.target.dataset?.factor;
        if (factor) act(Number(factor));
      });
    },
  };
}
