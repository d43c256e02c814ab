// Builds dist/ from src/: ECharts once, what the two pages are of, and the licenses. usage: node build.mjs [DIR]
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const web = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(web, 'dist');

/** echarts.js becomes a script of its own, which every page loads first; to the others it is this global. */
const chartsGlobal = 'perseusCharts';
const chartsFromGlobal = {
  name: 'charts-from-global',
  setup(builder) {
    builder.onResolve({ filter: /\/echarts\.js$/ }, () => ({ path: 'charts', namespace: 'global' }));
    builder.onLoad({ filter: /.*/, namespace: 'global' }, () => ({
      contents: `export const createChart = ${chartsGlobal}.createChart;`,
    }));
  },
};

async function bundle(source, options = {}) {
  const { outputFiles } = await build({
    absWorkingDir: web,
    entryPoints: [`src/${source}`],
    bundle: true,
    minify: true,
    write: false,
    charset: 'utf8',
    format: 'iife',
    target: ['es2020'],
    legalComments: 'none', // gathered in LICENSES instead
    ...options,
  });
  return outputFiles[0].text;
}
const page = (source) => bundle(source, { plugins: [chartsFromGlobal] });

const charts = await bundle('echarts.js', { globalName: chartsGlobal });
const dashboardScript = await page('dashboard/dashboard.js');
const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const fill = (text, values) => text.replace(/\{\{(\w+)\}\}/g, (_, name) => values[name]);
const dashboard = fill(readFileSync(join(web, 'src/dashboard/dashboard.html'), 'utf8'), {
  scripts: `${hash(charts)} ${hash(dashboardScript)}`,
  style: await bundle('dashboard/dashboard.css'),
  charts: '{{charts}}', // put in by the program, which has it once for both pages
  script: dashboardScript,
});

const bundled = [
  ['echarts', ['LICENSE', 'NOTICE', 'licenses/LICENSE-d3']],
  ['zrender', ['LICENSE']],
  ['tslib', ['LICENSE.txt']],
];
const read = (name, file) => readFileSync(join(web, 'node_modules', name, file), 'utf8').trim();
const licenses = bundled.flatMap(([name, files]) => {
  const { version, license } = JSON.parse(read(name, 'package.json'));
  return files.map((file) => `==== ${name} ${version} (${license}): ${file}\n\n${read(name, file)}\n`);
});

const files = {
  'charts.js': charts,
  'report.js': await page('report.js'),
  'report.css': await bundle('report.css'),
  'dashboard.html': dashboard,
  LICENSES: `Bundled into charts.js, each under its own license.\n\n${licenses.join('\n')}`,
};
mkdirSync(out, { recursive: true });
for (const [name, text] of Object.entries(files)) writeFileSync(join(out, name), text);
