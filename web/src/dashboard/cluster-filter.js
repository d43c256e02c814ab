// Choice of the jobs that the cluster page shows: by words, state, GPU, stragglers and labels; and how it groups them.
import { element } from '../dom.js';
import { count, jobState, matchesWords, wordsOf } from './words.js';

const mostLabels = 4; // facets of labels that are shown at once; the menu “More labels” adds others
const facetsOf = (labels) => [
  ['state', 'State', (job) => jobState(job)[0]],
  ['gpu', 'GPU', (job) => job.accelerator ?? 'not known'],
  ['straggler', 'Stragglers', (job) => (job.stragglers > 0 ? 'with stragglers' : 'none')],
  ...labels.map((label) => [`label-${label}`, label, (job) => (job.labels?.[label] === '' ? '(empty)' : job.labels?.[label] ?? 'none')]),
];

/** Returns the names of the labels that the jobs have, the most frequent ones first. */
function labelsOf(jobs) {
  const times = new Map();
  for (const { labels } of jobs) for (const name of Object.keys(labels ?? {})) times.set(name, (times.get(name) ?? 0) + 1);
  return [...times].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name]) => name);
}

/** Calls onChange() when the reader chooses. Returns { update(jobs), chosen(jobs), groupOf() }. */
export function createClusterFilter(parent, onChange) {
  const words = element('input', { type: 'search', id: 'cluster-filter', placeholder: 'Name, id or state', autocomplete: 'off',
    spellcheck: 'false', oninput: onChange });
  const group = element('select', { id: 'facet-group', onchange: onChange });
  const line = element('div', { class: 'facets', role: 'search', 'aria-label': 'Jobs to show' });
  const field = (control, name) => element('div', {}, element('label', { for: control.id, text: name }), control);
  parent.append(line);
  const more = element('select', { id: 'facet-more', onchange: () => {
    added.add(more.value);
    more.value = '';
    place();
    fill();
  } });
  const added = new Set(); // labels that the reader has chosen
  let facets = [], labels = [], known = [];
  const selects = new Map(); // facet -> its select

  function options(select, wanted) {
    const shown = JSON.stringify(wanted);
    if (select.dataset.shown === shown) return;
    select.dataset.shown = shown;
    const { value } = select;
    select.replaceChildren(...wanted.map(([key, text]) => element('option', { value: key, text })));
    select.value = wanted.some(([key]) => key === value) ? value : '';
  }

  function place() {
    const shown = labels.filter((label, k) => k < mostLabels || added.has(label));
    const hidden = labels.filter((label) => !shown.includes(label)).sort();
    options(more, [['', `${hidden.length} more`], ...hidden.map((label) => [label, label])]);
    const made = facetsOf(shown);
    const same = made.length === facets.length && made.every(([key], k) => key === facets[k][0]);
    if (same && more.isConnected === hidden.length > 0) return;
    facets = made;
    for (const [key] of facets) {
      if (!selects.has(key)) selects.set(key, element('select', { id: `facet-${key}`, onchange: onChange }));
    }
    line.replaceChildren(field(words, 'Filter'), ...facets.map(([key, name]) => field(selects.get(key), name)),
      ...(hidden.length > 0 ? [field(more, 'More labels')] : []), field(group, 'Group by'));
    options(group, [['', 'nothing'], ...facets.map(([key, name]) => [key, name])]);
  }

  function fill() {
    for (const [key, , valueOf] of facets) {
      const times = new Map();
      for (const job of known) times.set(valueOf(job), (times.get(valueOf(job)) ?? 0) + 1);
      const values = [...times].sort(([a], [b]) => (a < b ? -1 : 1));
      options(selects.get(key), [['', `all (${known.length.toLocaleString('en')})`],
        ...values.map(([value, n]) => [`=${value}`, `${value} (${n.toLocaleString('en')})`])]);
    }
  }

  return {
    update(jobs) {
      known = jobs;
      labels = labelsOf(jobs);
      place();
      fill();
    },
    chosen(jobs) {
      const wanted = wordsOf(words.value);
      const set = facets.filter(([key]) => selects.get(key).value !== '');
      return jobs.filter((job) => matchesWords(job, wanted) &&
        set.every(([key, , valueOf]) => `=${valueOf(job)}` === selects.get(key).value));
    },
    /** Returns the function from a job to its group, or null. */
    groupOf: () => facets.find(([key]) => key === group.value)?.[2] ?? null,
    describe: (shown, all) => (shown === all ? count(all, 'job') : `${shown.toLocaleString('en')} of ${count(all, 'job')}`),
  };
}
