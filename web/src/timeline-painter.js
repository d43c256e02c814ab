// Paints the bars of one timeline into a canvas. Bars narrower than a few pixels are merged into pixel columns with their
// mean power, so the cost of 65,536 bars depends on the number of pixels.
import { letter } from './format.js';

const narrow = 3; // device pixels: narrower bars are merged
const leastBusy = 0.02; // a column that is busy for a smaller fraction is not painted

export function paintTimeline(canvas, timeline, view) {
  const { width, height, pixelRatio, from, to, ramp, range, colors, font } = view;
  canvas.width = Math.max(1, Math.round(width * pixelRatio));
  canvas.height = Math.max(1, Math.round(height * pixelRatio));
  const paint = canvas.getContext('2d');
  const scale = canvas.width / (to - from);
  const rowHeight = canvas.height / Math.max(1, timeline.rows.length);
  const gap = rowHeight >= 10 * pixelRatio ? 2 * pixelRatio : rowHeight >= 4 ? Math.max(1, rowHeight * 0.12) : 0;
  const last = ramp.colors.length - 1;
  const level = (power) => {
    const span = range.high - range.low;
    return span > 0 ? Math.round(Math.min(1, Math.max(0, (power - range.low) / span)) * last) : 0;
  };
  const geometry = { paint, canvas, scale, rowHeight, gap, from, to, level, ramp, pixelRatio, colors, font };
  paint.fillStyle = colors.wait;
  for (let r = 0; r < timeline.rows.length; ++r) {
    paint.fillRect(-from * scale, r * rowHeight, timeline.makespan * scale, rowHeight - gap);
  }
  for (let r = 0; r < timeline.rows.length; ++r) paintRow(timeline, r, geometry);
  paintSlowTransfers(timeline, geometry);
  paintCriticalPath(timeline, geometry);
}

function firstEndingAfter(timeline, row, time) {
  let low = 0;
  let high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (timeline.end[row[middle]] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function paintRow(timeline, rank, g) {
  const row = timeline.rows[rank];
  const top = rank * g.rowHeight;
  const tall = g.rowHeight - g.gap;
  const columns = g.canvas.width;
  let busy = null;
  let energy = null;
  g.paint.font = `${Math.round(Math.min(11, (tall / g.pixelRatio) * 0.7) * g.pixelRatio)}px ${g.font}`;
  g.paint.textAlign = 'center';
  g.paint.textBaseline = 'middle';
  for (let k = firstEndingAfter(timeline, row, g.from); k < row.length && timeline.start[row[k]] < g.to; ++k) {
    const i = row[k];
    const x = (timeline.start[i] - g.from) * g.scale;
    const end = (timeline.end[i] - g.from) * g.scale;
    if (end - x >= narrow) {
      const color = g.level(timeline.power[i]);
      const air = end - x > 8 * g.pixelRatio ? g.pixelRatio : Math.min(g.pixelRatio, 0.2 * (end - x));
      g.paint.fillStyle = g.ramp.colors[color];
      g.paint.fillRect(x, top, end - x - air, tall);
      paintLabel(timeline, i, x, end, top + tall / 2, color, g);
      continue;
    }
    busy ??= new Float32Array(columns);
    energy ??= new Float32Array(columns);
    for (let c = Math.max(0, Math.floor(x)); c < columns && c < end; ++c) {
      const share = Math.min(end, c + 1) - Math.max(x, c);
      busy[c] += share;
      energy[c] += share * timeline.power[i];
    }
  }
  if (busy) paintColumns(busy, energy, top, tall, g);
}

/** Paints neighboring columns of one color as one rectangle; a half-busy column is half transparent. */
function paintColumns(busy, energy, top, tall, g) {
  const look = (c) => (busy[c] < leastBusy ? -1 : g.level(energy[c] / busy[c]) * 8 + Math.min(7, Math.floor(busy[c] * 8)));
  for (let c = 0; c < busy.length; ) {
    const from = c;
    const is = look(c);
    while (c < busy.length && look(c) === is) ++c;
    if (is < 0) continue;
    g.paint.globalAlpha = ((is & 7) + 1) / 8;
    g.paint.fillStyle = g.ramp.colors[is >> 3];
    g.paint.fillRect(from, top, c - from, tall);
  }
  g.paint.globalAlpha = 1;
}

function paintLabel(timeline, i, x, end, y, color, g) {
  const { type, types, microbatch } = timeline.iteration;
  const text = letter(types[type[i]].instruction) + (microbatch[i] < 0 ? '' : microbatch[i]);
  if (g.rowHeight < 13 * g.pixelRatio || end - x < g.paint.measureText(text).width + 3 * g.pixelRatio) return;
  g.paint.fillStyle = g.ramp.texts[color];
  g.paint.fillText(text, (x + end) / 2, y);
}

/** Paints the transfers over slow links as lines from the sender's row to the receiver's. */
function paintSlowTransfers(timeline, g) {
  const middle = (i) => (timeline.iteration.rank[i] + 0.5) * g.rowHeight - g.gap / 2;
  g.paint.beginPath();
  for (const [before, after, latency] of timeline.iteration.slow) {
    const sent = timeline.end[before];
    if (sent + latency < g.from || sent > g.to) continue;
    g.paint.moveTo((sent - g.from) * g.scale, middle(before));
    g.paint.lineTo((sent + latency - g.from) * g.scale, middle(after));
  }
  g.paint.strokeStyle = g.colors.slow;
  g.paint.lineWidth = 1.3 * g.pixelRatio;
  g.paint.stroke();
}

/** Paints the critical path along the bottom of its bars and between ranks; leaves out parts closer than a pixel. */
function paintCriticalPath(timeline, g) {
  const { paint } = g;
  const bottom = (i) => timeline.iteration.rank[i] * g.rowHeight + g.rowHeight - g.gap - g.pixelRatio;
  paint.beginPath();
  let lastX = -Infinity;
  let lastRank = -1;
  let drawing = false;
  for (const i of timeline.critical) {
    if (timeline.end[i] < g.from || timeline.start[i] > g.to) continue;
    const x = (timeline.start[i] - g.from) * g.scale;
    const end = (timeline.end[i] - g.from) * g.scale;
    const rank = timeline.iteration.rank[i];
    if (rank === lastRank && end - lastX < 1) continue;
    if (drawing) paint.lineTo(x, bottom(i));
    else paint.moveTo(x, bottom(i));
    paint.lineTo(end, bottom(i));
    drawing = true;
    lastX = end;
    lastRank = rank;
  }
  const width = g.rowHeight >= 10 * g.pixelRatio ? 2.5 : 1.5;
  paint.lineJoin = 'round';
  for (const [ink, wide] of [[g.colors.halo, width + 1.5], [g.colors.critical, width]]) {
    paint.strokeStyle = ink;
    paint.lineWidth = wide * g.pixelRatio;
    paint.stroke();
  }
}
