// Play, pause, speed.

import { h, set } from "./dom.js";

const SPEEDS = [0.5, 1, 2, 4];
const ROUND = 1400; // milliseconds

/** Steps again and again. `more()` says whether there is another round, `step(again)` goes on, or back to the start. */
export class Playback {
  constructor(more, step) {
    this.more = more;
    this.step = step;
    this.beat = ROUND;
    this.timer = null;
    this.button = h("button", { type: "button", class: "play", on: { click: () => this.toggle() } });
    this.speeds = h(
      "select",
      { "aria-label": "Speed", on: { change: () => (this.beat = ROUND / Number(this.speeds.value)) } },
      SPEEDS.map((value) => h("option", { value, selected: value === 1 }, `${value}×`)),
    );
    this.draw();
  }

  toggle() {
    if (this.timer) return this.pause();
    if (!this.more()) this.step(true);
    const next = () => {
      if (!this.more()) return this.pause();
      this.step(false);
      this.timer = setTimeout(next, this.more() ? this.beat : 0);
    };
    this.timer = setTimeout(next, 250);
    this.draw();
  }

  pause() {
    clearTimeout(this.timer);
    this.timer = null;
    this.draw();
  }

  draw() {
    const title = this.timer ? "Pause (space)" : "Play (space)";
    set(this.button, this.timer ? "❚❚" : "▶");
    this.button.setAttribute("aria-label", title);
    this.button.title = title;
  }
}
