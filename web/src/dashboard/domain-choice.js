// The choice of a domain of the site: a select with the tree of domains.
import { element } from '../dom.js';
import { treeOf } from './site-data.js';

const shown = new WeakMap(); // by element: the names in it
/** Fills a select with the domains as a tree, below `first`; keeps what is chosen, or chooses the first one. Whether they have changed. */
export function updateDomains(select, domains, first = []) {
  const names = domains.map(({ name, parent }) => `${name}\n${parent ?? ''}`).join('\n\n');
  if (names === shown.get(select)) return false;
  shown.set(select, names);
  const before = select.value;
  select.replaceChildren(...first, ...treeOf(domains).map(({ name, depth }) => element('option', { value: name, text: `${'\u2007'.repeat(depth)}${name}` })));
  select.value = before;
  if (select.selectedIndex < 0) select.selectedIndex = 0;
  return true;
}
