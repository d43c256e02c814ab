// The parts of Apache ECharts that the charts use; the bundle has no other parts.
import * as echarts from 'echarts/core';
import { CustomChart, LineChart, ScatterChart } from 'echarts/charts';
import { AriaComponent, DataZoomComponent, GridComponent, MarkLineComponent } from 'echarts/components';
import { CanvasRenderer } from 'echarts/renderers';

echarts.use([
  AriaComponent, CanvasRenderer, CustomChart, DataZoomComponent, GridComponent, LineChart, MarkLineComponent,
  ScatterChart,
]);

/** Creates a chart that follows its element's size until dispose(). */
export function createChart(element) {
  const chart = echarts.init(element, null, { renderer: 'canvas' });
  const observer = new ResizeObserver(() => chart.resize());
  observer.observe(element);
  const dispose = chart.dispose.bind(chart);
  chart.dispose = () => {
    observer.disconnect();
    dispose();
  };
  return chart;
}
