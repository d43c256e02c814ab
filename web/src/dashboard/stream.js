// Server-sent events over fetch(), which unlike EventSource can carry a token.
//
// A browser keeps at most six HTTP/1.1 connections to a server, over all tabs, so a page holds only one stream, that of
// all jobs. It reads the log of one job up to the current end and then closes that connection.
import { ApiError, request } from './api.js';

const silence_ms = 45_000; // the server sends at least every 15 s
const patience_ms = 5_000; // limit for reading a log up to its end, which the server already has
const shortest_ms = 500;
const longest_ms = 15_000;

/** Splits a stream's text into events { id, event, data }; an empty line ends an event. */
export function createEventParser(onEvent) {
  let rest = '';
  let event = { id: null, event: 'message', data: [] };
  function line(text) {
    if (text === '') {
      if (event.data.length > 0) onEvent({ ...event, data: event.data.join('\n') });
      event = { id: event.id, event: 'message', data: [] };
      return;
    }
    const colon = text.indexOf(':');
    const name = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? '' : text.slice(colon + 1).replace(/^ /, '');
    if (name === 'id') event.id = value;
    else if (name === 'event') event.event = value;
    else if (name === 'data') event.data.push(value);
  }
  return (text) => {
    const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    lines.forEach(line);
  };
}

async function read(path, headers, { signal, onOpen, onChunk, onEvent }) {
  const response = await request(path, { headers: { accept: 'text/event-stream', ...headers }, signal });
  onOpen?.();
  const parse = createEventParser(onEvent);
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new ApiError(0, 'The server has ended the connection');
    onChunk?.();
    parse(decoder.decode(value, { stream: true }));
  }
}

/** Reads the events of a job's log after sequence `after` and up to `last`, oldest first. */
export async function readEvents(path, after, last, signal) {
  const controller = new AbortController();
  const enough = () => controller.abort();
  const timer = setTimeout(enough, patience_ms);
  signal.addEventListener('abort', enough);
  const events = [];
  try {
    await read(path, { 'last-event-id': String(after) }, { signal: controller.signal, onEvent({ data }) {
      const event = readEvent(data);
      if (event) events.push(event);
      if (event?.sequence >= last) enough();
    } });
  } catch (error) {
    if (!controller.signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', enough);
  }
  return events;
}

/** Parses the data of an event; null if it is not an event of the server. */
export function readEvent(data) {
  try {
    const event = JSON.parse(data);
    return Number.isFinite(event.at_s) ? event : null;
  } catch {
    return null;
  }
}

/**
 * Opens a stream that reconnects with the last id it received, after growing pauses while no server responds; a long silence
 * counts as a dead connection. Calls onOpen() after every (re)connect, onEvent({ id, event, data }), and
 * onLost(error, retryAt_ms) when the connection broke. Returns { retry(), close() }.
 */
export function openStream(path, { onOpen, onEvent, onLost }) {
  let lastId = null;
  let failures = 0;
  let timer = 0;
  let controller = null;

  async function connect() {
    clearTimeout(timer);
    const mine = new AbortController();
    controller = mine;
    let watchdog = 0;
    const watch = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => mine.abort(new ApiError(0, 'The server does not answer')), silence_ms);
    };
    try {
      watch();
      await read(path, lastId === null ? {} : { 'last-event-id': lastId }, {
        signal: mine.signal,
        onOpen() {
          failures = 0;
          onOpen();
        },
        onChunk: watch,
        onEvent(event) {
          lastId = event.id ?? lastId;
          onEvent(event);
        },
      });
    } catch (error) {
      if (controller !== mine) return; // the stream was closed, or another attempt runs
      const wait = Math.min(longest_ms, shortest_ms * 2 ** failures++) * (0.8 + 0.4 * Math.random());
      timer = setTimeout(connect, wait);
      onLost(error instanceof ApiError ? error : new ApiError(0, 'The connection to the server broke'), Date.now() + wait);
    } finally {
      clearTimeout(watchdog);
    }
  }
  connect();
  const end = () => {
    clearTimeout(timer);
    const old = controller;
    controller = null;
    old?.abort();
  };
  return {
    retry() {
      end();
      connect();
    },
    close: end,
  };
}
