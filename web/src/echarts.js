// The parts of Apache ECharts that the charts use; the bundle has no other parts.
import * as echarts from 'echarts/core';
import { CustomChart, LineChart, ScatterChart } from 'echarts/charts';
import { AriaComponent, DataZoomComponent, GridComponent, MarkLineComponent } from 'echarts/components';
import { CanvasRenderer } from 'echarts/renderers';

echarts.use([
  AriaComponent, CanvasRenderer, CustomChart, DataZoomComponent, GridComponent, LineChart, MarkLineComponent,
  ScatterChart,
]);

const printedWidth = 690; // px: A4 and letter, less their margins

/** Creates a chart that follows its element's size until dispose(), and fits the page when it is printed. */
export function createChart(element) {
  const chart = echarts.init(element, null, { renderer: 'canvas' });
  const observer = new ResizeObserver(() => chart.resize());
  observer.observe(element);
  const print = () => chart.resize({ width: Math.min(printedWidth, element.clientWidth) });
  const printed = () => chart.resize({ width: 'auto' });
  addEventListener('beforeprint', print);
  addEventListener('afterprint', printed);
  const dispose = chart.dispose.bind(chart);
  chart.dispose = () => {
    observer.disconnect();
    removeEventListener('beforeprint', print);
    removeEventListener('afterprint', printed);
    dispose();
  };
  return chart;
}
