// The cluster page: figures and a table of all jobs, or of those that the reader chooses.
import { element } from '../dom.js';
import { createClusterFigures } from './cluster-figures.js';
import { createClusterFilter } from './cluster-filter.js';
import { createClusterHistory } from './cluster-history.js';
import { createClusterTable } from './cluster-table.js';

/** Returns { show(jobs, factors), close() }. */
export function createClusterView(parent) {
  let jobs = [];
  let factors = {};
  const shown = element('p', { class: 'list-summary', role: 'status' });
  const root = element('article', { 'aria-labelledby': 'cluster-title', class: 'cluster' },
    element('div', { class: 'heading' }, element('h2', { id: 'cluster-title', text: 'Cluster' }), shown));
  const figures = createClusterFigures(root, draw);
  const filter = createClusterFilter(root, draw);
  const table = createClusterTable(root);
  root.append(element('p', { class: 'note', text: '“est.”: estimated from a job’s profile; everything else is measured by the ranks. ' +
    '“Saved” is against everything at maximum clock, since the job began. Ended jobs count as long as the server keeps them.' }));
  const past = element('section', { id: 'cluster-history', 'aria-labelledby': 'cluster-history-title' });
  const pastHeading = element('div', { class: 'heading' }, element('h3', { id: 'cluster-history-title', text: 'Measured against planned, all jobs' }));
  past.append(pastHeading);
  root.append(past);
  const history = createClusterHistory(past, pastHeading, () => {
    past.hidden = true;
  });
  history.show({});
  parent.replaceChildren(root);
  document.title = 'Cluster - Perseus';

  function draw() {
    const chosen = filter.chosen(jobs);
    figures.show(chosen, factors);
    table.show(chosen, filter.groupOf());
    const words = filter.describe(chosen.length, jobs.length);
    if (shown.textContent !== words) shown.textContent = words;
  }
  return {
    show(all, servers) {
      jobs = all;
      factors = servers;
      filter.update(jobs);
      draw();
    },
    close() {
      table.close();
      history.close();
      root.remove();
    },
  };
}
