// Tiles of a job's pipelines to choose from: the point that each runs, and which of them straggle.
import { element } from '../dom.js';
import { seconds } from '../format.js';
import { createRovingList } from './roving.js';

/** Returns { show(job, chosen) }; calls onChoose(pipeline) when the user chooses one. */
export function createPipelines(parent, onChoose) {
  const list = element('ul', { class: 'tiles', 'aria-label': 'Pipelines' });
  parent.append(list);
  const buttons = () => [...list.querySelectorAll('button')];
  const roving = createRovingList(list, buttons);
  list.addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (button) onChoose(Number(button.dataset.pipeline));
  });

  function fill(button, { pipeline, straggler, point, points, time_s }, chosen) {
    button.dataset.pipeline = pipeline;
    button.ariaPressed = String(pipeline === chosen);
    button.classList.toggle('straggler', Boolean(straggler));
    const lines = [`Pipeline ${pipeline}`, straggler ? 'straggler' : '',
      point == null ? 'maximum clock' : `point ${point}${points > 0 ? ` of ${points}` : ''}`, time_s > 0 ? seconds(time_s) : ''];
    const shown = lines.join('|');
    if (button.dataset.shown === shown) return;
    button.dataset.shown = shown;
    button.replaceChildren(element('b', { text: lines[0] }), element('span', { class: 'badge', text: lines[1], hidden: !straggler }),
      element('span', { text: lines[2] }), element('span', { text: lines[3] }));
  }

  return {
    show(pipelines, chosen) {
      while (list.children.length > pipelines.length) list.lastChild.remove();
      while (list.children.length < pipelines.length) list.append(element('li', {}, element('button', { type: 'button' })));
      buttons().forEach((button, k) => fill(button, pipelines[k], chosen));
      list.hidden = pipelines.length < 2;
      roving.refresh();
    },
  };
}
