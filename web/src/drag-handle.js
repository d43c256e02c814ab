// A handle on a vertical line of a chart, dragged along the time axis. A slider beside the chart serves the keyboard.
import { element } from './dom.js';

/**
 * chart: of echarts.js, within `parent`. Calls onDrag(time) while the reader drags.
 * Returns { place(time) }; place(null) hides the handle.
 */
export function createDragHandle(parent, chart, onDrag) {
  const handle = element('div', { class: 'drag-handle', 'aria-hidden': 'true', title: 'Drag T′, the iteration time of a straggler', hidden: true }, 'T′');
  parent.append(handle);
  let at = null;
  let grip = 0; // from the handle's middle to the pointer

  const xOf = (time) => chart.convertToPixel({ xAxisIndex: 0 }, time);
  function draw() {
    handle.hidden = at === null;
    if (at !== null) handle.style.left = `${xOf(at)}px`;
  }
  handle.addEventListener('pointerdown', (event) => {
    grip = event.clientX - parent.getBoundingClientRect().left - xOf(at);
    handle.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  handle.addEventListener('pointermove', (event) => {
    if (!handle.hasPointerCapture(event.pointerId)) return;
    onDrag(chart.convertFromPixel({ xAxisIndex: 0 }, event.clientX - parent.getBoundingClientRect().left - grip));
  });
  chart.on('finished', draw); // also after a change of size, zoom or data
  return {
    place(time) {
      at = time;
      draw();
    },
  };
}
