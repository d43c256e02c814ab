// Rows of a table of which only the visible ones exist as elements: thousands of rows cost as much as one screen of them.
import { element } from './dom.js';

const spare = 8; // rows drawn beyond the visible ones

/**
 * The rows of `body`, all `height` pixels high, within `scroller`. count() is their number, row(k) makes or updates row k;
 * placed() is called when all visible ones are in place.
 * Returns { draw(), show(k), drawAll(most), drawOnly(rows), close() }: show() scrolls to a row; drawAll() draws up to `most`
 * rows, and drawOnly() those, without the others' space, until the next draw(): for print.
 */
export function createVirtualRows(scroller, body, height, { count, row, placed = () => {} }) {
  const gap = (rows) => element('tr', { 'aria-hidden': 'true', class: 'gap', style: `height:${rows * height}px` });

  let drawn = [0, 0];
  let held = false; // whether drawOnly() was the last one

  function place(first, last) {
    const rows = [];
    for (let k = first; k < last; ++k) rows.push(row(k));
    if (first > 0) rows.unshift(gap(first));
    if (last < count()) rows.push(gap(count() - last));
    const focused = body.contains(document.activeElement) ? document.activeElement : null;
    const top = scroller.scrollTop;
    body.replaceChildren(...rows);
    if (scroller.scrollTop !== top) scroller.scrollTop = top; // moving the focused row lays out a half-empty table
    drawn = [first, last];
    placed();
    if (focused) (body.contains(focused) ? focused : scroller).focus({ preventScroll: true });
  }
  function visible() {
    const first = Math.min(count(), Math.max(0, Math.floor(scroller.scrollTop / height) - spare));
    return [first, Math.min(count(), Math.ceil((scroller.scrollTop + scroller.clientHeight) / height) + spare)];
  }
  const draw = () => {
    held = false;
    place(...visible());
  };
  function follow() {
    if (held) return;
    const [first, last] = visible();
    if (first !== drawn[0] || last !== drawn[1]) place(first, last);
  }
  scroller.addEventListener('scroll', follow, { passive: true });
  const observer = new ResizeObserver(follow);
  observer.observe(scroller);
  return {
    draw,
    show(k) {
      const top = k * height;
      const room = scroller.clientHeight - 2 * height; // less the header and one row
      if (top < scroller.scrollTop) scroller.scrollTop = top;
      else if (top > scroller.scrollTop + room) scroller.scrollTop = top - room;
    },
    drawOnly(rows) {
      held = true;
      body.replaceChildren(...rows.map(row));
    },
    drawAll: (most) => place(0, Math.min(most, count())),
    close: () => observer.disconnect(),
  };
}
