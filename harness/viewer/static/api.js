// The data. See harness/viewer/_app.py for what each route gives.

export class Failure extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const waiting = (milliseconds, signal) =>
  new Promise((done, stop) => {
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      stop(new DOMException("left", "AbortError"));
    });
  });

/** JSON of a route. While a run is being indexed it asks again and calls `onIndexing` with the share that is done. */
export async function get(path, query = {}, { signal, onIndexing } = {}) {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== "" && value !== null && value !== undefined) asked.set(name, value);
  const url = `/api/${path}${asked.size ? `?${asked}` : ""}`;
  for (;;) {
    let answer;
    try {
      answer = await fetch(url, { signal });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Failure("The viewer does not answer. Start `harness view` again, then reload this page.", 0);
    }
    const body = await answer.json().catch(() => ({ error: `The viewer answered ${answer.status} without data.` }));
    if (answer.status === 503 && body.indexing !== undefined) {
      onIndexing?.(body.indexing);
      await waiting(700, signal);
      continue;
    }
    if (!answer.ok) throw new Failure(body.error || `status ${answer.status}`, answer.status);
    return body;
  }
}

/** One text of a turn, whole. */
export async function text(run, episode, turn, part) {
  const asked = new URLSearchParams({ episode, turn, part });
  const answer = await fetch(`/api/runs/${encodeURIComponent(run)}/text?${asked}`);
  if (!answer.ok) throw new Failure("This text cannot be loaded; reload the page.", answer.status);
  return answer.text();
}

/** Calls `onState` whenever a run has come further, and `onEnd` when it ends. Returns what stops it. */
export function watch(run, onState, onEnd) {
  const source = new EventSource(`/api/runs/${encodeURIComponent(run)}/events`);
  source.addEventListener("message", (event) => onState(JSON.parse(event.data)));
  source.addEventListener("end", () => {
    source.close();
    onEnd?.();
  });
  return () => source.close();
}
