// A tooltip with facts that follows the pointer or the focus and stays inside its parent.
import { element } from './dom.js';

export function createTooltip(parent) {
  const box = element('div', { class: 'tooltip', 'aria-hidden': 'true', hidden: true });
  parent.append(box);
  return {
    /** lines: [title, [name, value], ...] */
    show(x, y, [title, ...facts]) {
      box.replaceChildren(element('strong', { text: title }), ...facts.map(([name, value]) =>
        element('div', {}, element('span', { text: name }), element('b', { text: value }))));
      box.hidden = false;
      const left = x + 16 + box.offsetWidth > parent.clientWidth ? x - 16 - box.offsetWidth : x + 16;
      const top = Math.min(y + 12, parent.clientHeight - box.offsetHeight - 4);
      box.style.transform = `translate(${Math.max(4, Math.min(left, parent.clientWidth - box.offsetWidth - 4))}px, ${Math.max(4, top)}px)`;
    },
    hide() {
      box.hidden = true;
    },
  };
}
