// List of the jobs as links, newest first as the server sends them, with a filter.
import { element } from '../dom.js';
import { percent, seconds } from '../format.js';
import { createRovingList } from './roving.js';
import { clockTime, count, estimate, isOver, jobState, matchesWords, wordsOf, would } from './words.js';

const mostShown = 200; // links; the filter finds the other jobs

export const jobLink = (id) => `#/jobs/${encodeURIComponent(id)}`;

/** Returns { show(jobs), choose(id), fail(message) }. */
export function createJobList(parent) {
  const state = { jobs: null, chosen: null };
  const summary = element('p', { class: 'list-summary' });
  const filter = element('input', { type: 'search', id: 'filter', placeholder: 'Filter by name, id or state', autocomplete: 'off',
    spellcheck: 'false', 'aria-controls': 'job-list', oninput: draw });
  const list = element('ul', { id: 'job-list', class: 'job-list' });
  const more = element('p', { class: 'note', hidden: true });
  const filterLine = element('div', { class: 'filter', hidden: true },
    element('label', { for: 'filter', class: 'visually-hidden', text: 'Filter jobs' }), filter);
  parent.append(element('div', { class: 'heading' }, element('h2', { text: 'Jobs' }), summary), filterLine, list, more);
  const links = () => [...list.querySelectorAll('a')];
  const roving = createRovingList(list, links);
  filter.addEventListener('keydown', (event) => {
    if (event.key !== 'ArrowDown') return;
    event.preventDefault();
    links().find((link) => link.tabIndex === 0)?.focus();
  });

  function draw() {
    if (!state.jobs) return;
    const words = wordsOf(filter.value);
    const found = state.jobs.filter((job) => matchesWords(job, words));
    const shown = found.slice(0, mostShown);
    const made = new Map([...list.children].map((item) => [item.dataset.job, item]));
    const items = shown.map((job) => {
      const item = made.get(job.id) ?? newItem(job.id); // reuses the link, which keeps the focus
      fill(item, job);
      return item;
    });
    if (items.length !== list.children.length || items.some((item, k) => item !== list.children[k])) place(items);
    more.hidden = found.length === shown.length && found.length > 0;
    more.textContent = found.length === 0 ? (state.jobs.length ? 'No job matches.' : '')
      : `${count(found.length - shown.length, 'job')} more: the filter finds them.`;
    roving.refresh();
  }

  function place(items) {
    const focused = document.activeElement;
    list.replaceChildren(...items);
    if (focused?.isConnected && list.contains(focused)) focused.focus({ preventScroll: true });
  }

  const newItem = (id) => element('li', { 'data-job': id }, element('a', { href: jobLink(id) }));

  function fill(item, job) {
    const [text, kind] = jobState(job);
    const few = job.ranks_registered < job.ranks && !isOver(job.state) ? `${job.ranks_registered} of ` : '';
    const facts = [job.ranks > 0 && few + count(job.ranks, 'rank'), job.iteration_time_s > 0 && seconds(job.iteration_time_s),
      job.possible_saving_pct != null ? `would save ${would(percent(job.possible_saving_pct), job.possible_saving_modeled)}`
        : job.saved_pct != null && `plan saves ${estimate(percent(job.saved_pct))}`].filter(Boolean);
    if (facts.length === 0 && job.created_at_s > 0) facts.push(`since ${clockTime(job.created_at_s)}`);
    const link = item.firstChild;
    const shown = JSON.stringify([job.name, text, kind, facts, job.stragglers]);
    if (link.dataset.shown !== shown) {
      link.dataset.shown = shown;
      link.replaceChildren(
        element('span', { class: 'job-name', text: job.name || job.id }),
        element('span', { class: `state ${kind}`, text }),
        element('span', { class: 'job-facts', text: facts.join(' · ') }),
        ...(job.stragglers > 0 ? [element('span', { class: 'badge', text: count(job.stragglers, 'straggler') })] : []));
    }
    link.toggleAttribute('data-over', isOver(job.state));
    link.ariaCurrent = job.id === state.chosen ? 'true' : null;
  }

  return {
    show(jobs) {
      state.jobs = jobs;
      const stragglers = jobs.reduce((sum, job) => sum + (job.stragglers ?? 0), 0);
      summary.textContent = jobs.length === 0 ? '' : count(jobs.length, 'job') +
        (stragglers > 0 ? `, ${count(stragglers, 'straggler')}` : '');
      filterLine.hidden = jobs.length < 2;
      draw();
    },
    choose(id) {
      state.chosen = id;
      for (const link of links()) link.ariaCurrent = link.parentElement.dataset.job === id ? 'true' : null;
    },
  };
}
