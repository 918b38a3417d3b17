// The data. See harness/extensions/viewer/_app.py for what each route gives.

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

const KEY = "harness-key"; // of the address that the command printed; other users of this machine do not have it

/** Take the key out of the address bar. */
export function keepKey() {
  const asked = new URLSearchParams(location.search);
  if (!asked.has("key")) return;
  localStorage.setItem(KEY, asked.get("key"));
  history.replaceState(null, "", location.pathname + location.hash);
}

const keyed = () => ({ "X-Harness-Key": localStorage.getItem(KEY) ?? "" });
let players = null;

/** Who may answer prompts where an episode is played on, as {model}; null where this viewer only reads. */
export function whatIf() {
  const none = !localStorage.getItem(KEY);
  players ??= none ? Promise.resolve(null) : get("what_if", {}, { headers: keyed() }).catch(() => null);
  return players;
}

/** What may take the place of a turn's reply. */
export const replies = (run, episode, turn) =>
  get(`runs/${encodeURIComponent(run)}/what_if`, { episode, turn }, { headers: keyed() });

/** Play an episode on: {episode, turn, text, player} → {run, turns}. */
export async function playOn(run, asked) {
  const answer = await fetch(`/api/runs/${encodeURIComponent(run)}/what_if`, {
    method: "POST",
    headers: { ...keyed(), "Content-Type": "application/json" },
    body: JSON.stringify(asked),
  }).catch(() => {
    throw new Failure("The viewer does not answer. Start `harness view --what_if` again, then reload this page.", 0);
  });
  const body = await answer.json().catch(() => ({ error: `The viewer answered ${answer.status}.` }));
  if (!answer.ok) throw new Failure(body.error || `status ${answer.status}`, answer.status);
  return body;
}

/** JSON of a route. While a run is being indexed it asks again and calls `onIndexing` with the share that is done. */
export async function get(path, query = {}, { signal, onIndexing, headers } = {}) {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== "" && value !== null && value !== undefined) asked.set(name, value);
  const url = `/api/${path}${asked.size ? `?${asked}` : ""}`;
  for (;;) {
    let answer;
    try {
      answer = await fetch(url, { signal, headers });
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

/** The same of what the server computes in the background: asks again until it is there. */
export async function computed(path, query, { signal }) {
  for (;;) {
    const found = await get(path, query, { signal });
    if (found.problem !== undefined) throw new Failure(found.problem, 400);
    if (!found.pending) return found;
    await waiting(300, signal);
  }
}

/** Inner calls of a turn, from one on: {total, calls, cuts}. */
export const inner = (run, episode, turn, offset) =>
  get(`runs/${encodeURIComponent(run)}/inner`, { episode, turn, offset });

/** One text of a turn, whole. */
export async function text(run, episode, turn, part) {
  const asked = new URLSearchParams({ episode, turn, part });
  const answer = await fetch(`/api/runs/${encodeURIComponent(run)}/text?${asked}`);
  if (!answer.ok) throw new Failure("This text cannot be loaded; reload the page.", answer.status);
  return answer.text();
}

const LOOK = 2000; // milliseconds between two looks at a run; a page that cannot be seen does not look

/**
 * Calls `onNews(state, again)` when a run has come further, ended, or started `again`; at once where `seen` is null.
 * One call ends before the next begins; what it could not show yet (false) is news once more.
 * Returns what stops it. It asks again and again: a stream a page would use up the few connections of a browser.
 */
export function watch(run, seen, onNews) {
  const leaving = new AbortController();
  const { signal } = leaving;
  let before = seen;
  let timer = null;
  let busy = false;
  const look = async () => {
    clearTimeout(timer);
    if (document.hidden || busy) return;
    busy = true;
    try {
      const now = await get(`runs/${encodeURIComponent(run)}/state`, {}, { signal }).catch(() => null);
      if (signal.aborted || !now) return;
      const news = !before || Object.entries(before).some(([name, value]) => value !== now[name]);
      const again = before !== null && now.start !== before.start;
      if (!news || (await onNews(now, again)) !== false) before = now;
    } finally {
      busy = false;
      if (!signal.aborted) timer = setTimeout(look, LOOK);
    }
  };
  document.addEventListener("visibilitychange", look, { signal });
  timer = setTimeout(look, seen ? LOOK : 0);
  return () => {
    leaving.abort();
    clearTimeout(timer);
  };
}
