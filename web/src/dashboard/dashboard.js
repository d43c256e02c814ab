// The dashboard: the cluster page, or a list of jobs beside the view of the chosen one. The page loads the list once and then
// applies changed rows; it loads the chosen job again when its row changes.
import { element } from '../dom.js';
import { chooseTheme, currentTheme, onThemeChange } from '../theme.js';
import { createAlertBanner, createAlertsView, loadAlerts } from './alerts.js';
import { getJson, jobPath, serverUrl, token } from './api.js';
import { createClusterView } from './cluster-view.js';
import { createConnectionSign } from './connection.js';
import { createEventsView, loadEvents } from './events.js';
import { createHostsView, loadHosts } from './hosts.js';
import { createJobList } from './job-list.js';
import { createJobView } from './job-view.js';
import { createJobs, loadJobs } from './jobs.js';
import { createRefresher } from './refresher.js';
import { createSiteLoader } from './site-data.js';
import { createSiteView } from './site.js';
import { openStream } from './stream.js';
import { createTokenDialog } from './token-dialog.js';

const part = (id) => document.getElementById(id);
const main = part('main');
const narrow = matchMedia('(max-width: 860px)'); // as in dashboard.css: there is no list beside the job there
const state = { jobs: null, factors: {}, page: 'cluster', id: null, view: null, job: null, cluster: null, alerts: null, hasSite: false };

const dialog = createTokenDialog(part('token-dialog'), reconnect);
part('token-button').addEventListener('click', () => dialog.open());
const sign = createConnectionSign(part('connection'), part('banner'), { onRetry: reconnect, onToken: () => dialog.open() });
const list = createJobList(part('jobs'));

// Theme
const themeButton = part('theme-button');
const themeKey = 'perseus-theme';
function showTheme() {
  const other = currentTheme() === 'dark' ? 'light' : 'dark';
  themeButton.textContent = other === 'dark' ? '☾' : '☀';
  themeButton.ariaLabel = themeButton.title = `Switch to ${other} colors`;
}
themeButton.addEventListener('click', () => {
  const chosen = chooseTheme(currentTheme() === 'dark' ? 'light' : 'dark');
  if (chosen) localStorage.setItem(themeKey, chosen);
  else localStorage.removeItem(themeKey);
});
onThemeChange(showTheme);
const kept = localStorage.getItem(themeKey);
if (kept && kept !== currentTheme()) chooseTheme(kept);
showTheme();

// Jobs
const retry_ms = 3000;
const listSpacing_ms = 1000; // the list may have thousands of jobs
const jobSpacing_ms = 250; // thousands of ranks may register at once
let stream = null;
let listening = false; // whether the event stream is open
let again = 0;
const known = createJobs();
let early = []; // changes that arrived while the list was loading
function showJobs() {
  state.jobs = known.rows();
  list.show(state.jobs);
  if (state.page === 'cluster') showCluster();
}
const jobs = createRefresher(loadJobs, ({ jobs: all, factors, hasSite }) => {
  known.replace(all);
  state.factors = factors;
  state.hasSite = hasSite;
  showSiteEntry();
  early?.forEach((change) => known.change(change));
  early = null;
  if (listening) sign.live();
  showJobs();
}, (error) => {
  if (error.needsToken) return refuse(error);
  sign.lost(error, Date.now() + retry_ms);
  clearTimeout(again);
  again = setTimeout(jobs.ask, retry_ms);
}, listSpacing_ms);

// Alerts
const alertSpacing_ms = 15_000;
const alertBanner = createAlertBanner(part('alert-banner'));
const alerts = createRefresher(loadAlerts, (loaded) => {
  state.alerts = loaded;
  showAlerts();
}, (error) => state.page === 'alerts' && state.view?.fail(error), 1000);
setInterval(() => listening && alerts.ask(), alertSpacing_ms);
function showAlerts() {
  if (state.alerts === null) return;
  const raised = state.alerts.alerts;
  alertBanner.show(raised, state.id);
  if (state.page === 'alerts') state.view?.show(state.alerts);
  const link = document.querySelector('.pages [data-page="alerts"]');
  link.replaceChildren('Alerts', ...(raised.length > 0 ? [element('span', { class: 'badge', text: raised.length.toLocaleString('en') })] : []));
}

// Events, while their page is open
const eventSpacing_ms = 15_000;
const events = createRefresher(loadEvents, (loaded) => state.page === 'events' && state.view?.show(loaded),
  (error) => state.page === 'events' && state.view?.fail(error), 1000);
setInterval(() => listening && state.page === 'events' && events.ask(), eventSpacing_ms);

// Hosts, while their page is open
const hostSpacing_ms = 30_000;
const hosts = createRefresher(loadHosts, (loaded) => state.page === 'hosts' && state.view?.show(loaded),
  (error) => state.page === 'hosts' && state.view?.fail(error), 1000);
setInterval(() => listening && state.page === 'hosts' && hosts.ask(), hostSpacing_ms);

// The site, while its page is open; the entry is shown where the server has a site
const siteSpacing_ms = 2000;
const site = createRefresher(createSiteLoader(), (loaded) => state.page === 'site' && state.view?.show(loaded),
  (error) => state.page === 'site' && state.view?.fail(error), 500);
setInterval(() => listening && state.page === 'site' && site.ask(), siteSpacing_ms);
function showSiteEntry() {
  document.querySelector('.pages [data-page="site"]').hidden = !state.hasSite && state.page !== 'site';
}

function refuse(error) {
  sign.refused(token.get() ? error.message : '');
  if (state.jobs === null) dialog.open();
}

function connect() {
  stream = openStream('/v1/job_changes', {
    onOpen() {
      listening = true;
      early = [];
      jobs.ask(); // the page is live once the jobs are loaded
      alerts.ask();
      if (state.page === 'events') events.ask();
      if (state.page === 'hosts') hosts.ask();
      if (state.page === 'site') site.ask();
      state.job?.ask();
    },
    onEvent({ data }) {
      const change = JSON.parse(data);
      if (early) {
        early.push(change);
      } else {
        known.change(change);
        showJobs();
      }
      const ids = [...(change.jobs ?? []).map((job) => job.id), ...(change.removed ?? [])];
      if (ids.includes(state.id)) state.job?.ask();
    },
    onLost(error, retryAt_ms) {
      listening = false;
      if (error.needsToken) stop(error);
      else sign.lost(error, retryAt_ms);
    },
  });
}
/** Closes the stream and does not retry: without a valid token, every attempt fails. */
function stop(error) {
  pause();
  refuse(error);
}
function pause() {
  stream?.close();
  stream = null;
  listening = false;
}
function reconnect() {
  pause();
  connect();
}
addEventListener('online', reconnect);

// A hidden page holds no connection: a browser limits the connections of all its tabs together.
const unseen_ms = 20_000;
let unseen = 0;
document.addEventListener('visibilitychange', () => {
  clearTimeout(unseen);
  if (document.hidden) unseen = setTimeout(pause, unseen_ms);
  else if (!listening) reconnect();
});
addEventListener('pagehide', pause);
addEventListener('pageshow', ({ persisted }) => persisted && reconnect());

// Pages: by the URL's hash; a job's is #/jobs/ID
const views = { alerts: createAlertsView, events: createEventsView, hosts: createHostsView, site: createSiteView };
const wanted = () => {
  const [, page, id] = /^#\/(\w+)(?:\/([^/]+))?/.exec(location.hash) ?? [];
  if (page === 'jobs' && id !== undefined) return { page: 'job', id: decodeURIComponent(id) };
  return { page: page in views ? page : 'cluster', id: null };
};

function route() {
  const { page, id } = wanted();
  document.documentElement.dataset.view = page;
  for (const link of document.querySelectorAll('.pages a')) link.ariaCurrent = link.dataset.page === page ? 'page' : null;
  if (page === state.page && id === state.id && state.view) return;
  closeView();
  state.page = page;
  state.id = id;
  list.choose(id);
  showSiteEntry();
  if (page === 'cluster') showCluster();
  else if (page === 'job') openJob(id);
  else openPage(page);
  showAlerts();
}

function closeCluster() {
  state.cluster?.close();
  state.cluster = null;
}

function openJob(id) {
  closeCluster();
  const view = createJobView(main, id, (text) => {
    part('news').textContent = text;
  });
  state.view = view;
  state.job = createRefresher((signal) => getJson(jobPath(id), signal), (job) => view.show(job), (error) => {
    if (error.needsToken) refuse(error);
    else if (!error.isUnreachable) view.fail(error);
  }, jobSpacing_ms);
  state.job.ask();
}

function openPage(page) {
  closeCluster();
  state.view = views[page](main);
  if (page === 'alerts') alerts.ask();
  if (page === 'events') events.ask();
  if (page === 'hosts') hosts.ask();
  if (page === 'site') site.ask();
}

function closeView() {
  state.job?.close();
  state.view?.close();
  state.job = state.view = null;
}

function showCluster() {
  if (state.jobs?.length > 0) {
    state.cluster ??= createClusterView(main);
    state.cluster.show(state.jobs, state.factors);
    return;
  }
  closeCluster();
  document.title = 'Perseus';
  if (state.jobs === null) {
    main.replaceChildren(element('p', { class: 'empty-line', text: 'Connecting to the server …' }));
    return;
  }
  const code = (text) => element('code', { text });
  main.replaceChildren(element('div', { class: 'empty' }, element('h2', { text: 'No jobs yet' }),
    element('p', {}, 'A job appears here as soon as a training run registers. Point its client at this server, ', code(serverUrl()), ', or try:'),
    element('pre', {}, code(`perseus job --help\nperseus profile --help`))));
}

part('skip').addEventListener('click', (event) => {
  event.preventDefault(); // the URL's hash names the chosen job
  main.focus();
});
addEventListener('hashchange', () => {
  route();
  main.focus({ preventScroll: !narrow.matches });
  if (narrow.matches) scrollTo(0, 0);
});

route();
connect();
document.documentElement.dataset.ready = 'true';
