// Keeps data up to date: one request at a time, and one more if ask() was called meanwhile.

const together_ms = 80; // several events within this time cause one load

/**
 * load(signal) loads the data, show(loaded) receives it, fail(error) the error; spacing_ms: least time between two loads.
 * Returns { ask(), close() }.
 */
export function createRefresher(load, show, fail, spacing_ms = 0) {
  const controller = new AbortController();
  let timer = 0;
  let loading = false;
  let again = false;
  let last_ms = -Infinity;

  async function run() {
    timer = 0;
    loading = true;
    again = false;
    last_ms = performance.now();
    try {
      const loaded = await load(controller.signal);
      if (!controller.signal.aborted) show(loaded);
    } catch (error) {
      if (!controller.signal.aborted) fail(error);
    }
    loading = false;
    if (again) ask();
  }
  function ask() {
    if (controller.signal.aborted) return;
    if (loading) again = true;
    else if (!timer) timer = setTimeout(run, Math.max(together_ms, last_ms + spacing_ms - performance.now()));
  }
  return {
    ask,
    close() {
      clearTimeout(timer);
      controller.abort();
    },
  };
}
