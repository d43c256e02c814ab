// The clock of one rank during changes, by the rules of src/planning/checker/clock_line.h: a GPU makes one change at a time,
// each takes `latency`, and of several requests that wait, the newest counts.

export function clockLine(clock, latency) {
  let requested = clock;
  let changes = []; // { begins, arrives, clock }

  /** Requests a clock; `when` never falls. */
  function request(next, when) {
    if (next === requested) return;
    requested = next;
    while (changes.length && changes.at(-1).begins > when) changes.pop();
    if (next === (changes.at(-1)?.clock ?? clock)) return;
    const begins = Math.max(when, changes.at(-1)?.arrives ?? when);
    changes.push({ begins, arrives: begins + latency, clock: next });
  }

  /** Returns time and energy of a computation that starts at `now`; each clock stands for the highest measured one below. */
  function run({ clock_mhz, time_s, energy_j }, now) {
    const [start, from] = [now, { left: 1, energy: 0 }];
    for (;;) {
      while (changes.length && changes[0].arrives <= now) ({ clock } = changes.shift());
      const found = clock_mhz.findIndex((c) => c <= clock);
      const option = found < 0 ? clock_mhz.length - 1 : found;
      const end = now + time_s[option] * from.left;
      if (!changes.length || end <= changes[0].arrives) {
        return { time: end - start, energy: from.energy + energy_j[option] * from.left };
      }
      const work = (changes[0].arrives - now) / time_s[option];
      from.energy += energy_j[option] * work;
      from.left -= work;
      now = changes[0].arrives;
    }
  }

  /** Moves the origin of time: the next iteration begins. */
  function restart(origin) {
    changes = changes.map((c) => ({ ...c, begins: c.begins - origin, arrives: c.arrives - origin }));
  }
  return { request, run, restart };
}
