// One episode on a page without a server. Its address says what is shown, as in the viewer: #…?round=&agent=&turn=

import { data } from "./api.js";
import { listen } from "./help.js";
import { episodePage } from "./episode.js";

const main = document.getElementById("main");
const asked = () => new URLSearchParams(location.hash.split("?")[1] ?? "");

const query = asked();
query.set("id", data.id);
const page = await_(episodePage(main, { run: data.run, query, signal: new AbortController().signal }));

function await_(made) {
  const here = { keys: {} };
  made.then((done) => Object.assign(here, done));
  return here;
}

window.addEventListener("hashchange", () => {
  if (location.hash === "#main") return main.focus();
  const now = asked();
  if (!now.has("id")) location.href = data.up;
  else if (now.get("id") !== data.id) location.href = data.pages[now.get("id")] ?? data.up;
  else page.update?.(now);
});
listen((key) => page.keys[key]);
