// An episode: its picture round by round, and beside it what each agent was shown and replied.

import { get, watch, whatIf } from "./api.js";
import { h, loading, set } from "./dom.js";
import { conversation } from "./conversation.js";
import { drawLanes, markLanes } from "./lanes.js";
import { drawBars, drawFacts, drawSheets } from "./panels.js";
import { Picture } from "./picture.js";
import { link } from "./episodes.js";
import { back, listed } from "./places.js";
import { Playback } from "./playback.js";
import { drawHead, drawResult } from "./result.js";
import { whole } from "./scenes.js";
import { drawStory } from "./story.js";

export async function episodePage(main, { run, query, signal }) {
  const id = query.get("id") || "";
  const base = `runs/${encodeURIComponent(run)}/episode`;
  set(main, loading("Opening the episode …"));
  const list = listed(query);
  const [data, players] = await Promise.all([get(base, { ...list, episode: id }, { signal }), whatIf()]);
  const page = new EpisodePage(main, run, id, list, data, players);
  page.restore(query, true);
  const stop = watch(run, null, async (news, again) => {
    const other = again || news.start !== page.data.start; // it may have started again before the first look
    if (!other && page.data.finished) return true;
    const now = await get(base, { ...list, episode: id }, { signal }).catch(() => null);
    if (now && !signal.aborted) page.take(now, other);
    return now !== null;
  });
  return {
    leave: () => {
      stop();
      page.pause();
    },
    update: (now) => page.restore(now),
    keys: page.keys(),
  };
}

class EpisodePage {
  constructor(main, run, id, list, data, players) {
    this.players = players; // who may answer where an episode is played on; null: nobody
    this.run = run;
    this.id = id;
    this.list = list; // filters and order of the list that the reader came from
    this.round = 0;
    this.agent = null;
    this.turn = null;
    this.tab = "talk";
    this.picture = new Picture((agent) => this.pick(agent === this.agent ? null : agent, true));
    this.build(main);
    this.load(data);
  }

  build(main) {
    this.head = h("header", { class: "page-head episode-head" });
    this.caption = h("p", { class: "caption", "aria-live": "polite" });
    this.slider = h("input", {
      type: "range",
      min: 0,
      value: 0,
      step: 1,
      "aria-label": "Round",
      on: {
        input: () => {
          this.pause();
          this.go(Number(this.slider.value));
        },
      },
    });
    this.where = h("output", { class: "where" });
    this.playback = new Playback(
      () => this.round < this.last,
      (again) => (again ? this.go(0) : this.go(this.round + 1, true)),
    );
    const step = (by, label, sign) =>
      h(
        "button",
        {
          type: "button",
          "aria-label": label,
          title: label,
          on: {
            click: () => {
              this.pause();
              this.go(this.round + by, true);
            },
          },
        },
        sign,
      );
    this.lanes = h("div", {});
    this.facts = h("div", {});
    this.bars = h("div", { class: "all-bars" });
    this.sheets = h("div", { class: "all-sheets" });
    this.result = h("div", {});
    this.tabs = {
      talk: this.tabButton("talk", "Conversation"),
      story: this.tabButton("story", "Rounds"),
      result: this.tabButton("result", "Result"),
    };
    this.picker = h("select", {
      id: "agent",
      "aria-label": "Agent",
      on: { change: () => this.pick(this.picker.value) },
    });
    this.talk = h("div", { class: "pane", role: "tabpanel", id: "pane-talk", "aria-labelledby": "tab-talk" });
    this.story = h("ol", { class: "story" });
    this.panes = {
      talk: this.talk,
      story: h(
        "div",
        { class: "pane", role: "tabpanel", id: "pane-story", "aria-labelledby": "tab-story" },
        this.story,
      ),
      result: h(
        "div",
        { class: "pane", role: "tabpanel", id: "pane-result", "aria-labelledby": "tab-result" },
        this.result,
      ),
    };
    this.scroller = h("div", { class: "scroller", tabindex: -1 }, Object.values(this.panes));
    const pickers = h(
      "div",
      { class: "picker" },
      h("label", { for: "agent", class: "hidden" }, "Agent"),
      h(
        "button",
        {
          type: "button",
          "aria-label": "Previous agent",
          title: "Previous agent (p)",
          on: { click: () => this.nextAgent(-1) },
        },
        "‹",
      ),
      this.picker,
      h(
        "button",
        { type: "button", "aria-label": "Next agent", title: "Next agent (n)", on: { click: () => this.nextAgent(1) } },
        "›",
      ),
    );
    const stage = h(
      "section",
      { class: "stage card", "aria-label": "What happened" },
      this.caption,
      this.picture.element,
      h(
        "div",
        { class: "controls" },
        step(-1, "A round back (←)", "‹"),
        this.playback.button,
        step(1, "A round on (→)", "›"),
        this.slider,
        this.where,
        this.playback.speeds,
      ),
      this.lanes,
      this.facts,
      this.bars,
      this.sheets,
    );
    const side = h(
      "section",
      { class: "side card", "aria-label": "What was said" },
      h("div", { class: "side-head" }, h("div", { class: "tabs", role: "tablist" }, Object.values(this.tabs)), pickers),
      this.scroller,
    );
    set(main, h("div", { class: "page wide" }, this.head, h("div", { class: "episode" }, stage, side)));
    this.showTab("talk");
  }

  tabButton(name, title) {
    const turn = (event) => {
      const all = Object.keys(this.tabs);
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      const next = all[(all.indexOf(name) + by + all.length) % all.length];
      this.showTab(next);
      this.tabs[next].focus();
    };
    return h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${name}`,
        "aria-controls": `pane-${name}`,
        on: { click: () => this.showTab(name), keydown: turn },
      },
      title,
    );
  }

  showTab(name) {
    this.tab = name;
    for (const [key, button] of Object.entries(this.tabs)) {
      button.setAttribute("aria-selected", String(key === name));
      button.tabIndex = key === name ? 0 : -1;
      this.panes[key].hidden = key !== name;
    }
    this.scroller.scrollTop = 0;
    if (name === "story" && this.data) this.drawStory(true);
    if (name === "talk" && this.data) this.reveal(this.talk.querySelector(".turn.now"), false);
  }

  // ------------------------------------------------------------------ the data

  load(data) {
    this.data = data;
    this.scenes = whole(data.scenes);
    this.last = Math.max(
      this.scenes.length - 1,
      data.turns.reduce((most, turn) => Math.max(most, turn.round + 1), 0),
      0,
    );
    this.byRound = new Map();
    for (const turn of data.turns) this.byRound.set(turn.round, [...(this.byRound.get(turn.round) ?? []), turn]);
    this.agents = new Set(data.agents);
    this.slider.max = String(this.last);
    const chosen = this.agent;
    set(
      this.picker,
      data.agents.map((agent) => h("option", { value: agent }, agent)),
    );
    this.agent = this.agents.has(chosen) ? chosen : (data.agents[0] ?? null);
    this.picker.value = this.agent ?? "";
    drawHead(this.head, data, this.run, this.list);
    drawResult(this.result, data);
    drawLanes(this.lanes, data, (turn) => this.open(turn));
  }

  /** News of an episode that goes on: nothing moves for a reader who looks at an earlier round. */
  take(data, again) {
    const following = this.round === this.last;
    const scrolled = this.scroller.scrollTop;
    const more = data.turns.length !== this.data.turns.length || data.finished !== this.data.finished;
    const pending = this.data.turns.some((turn) => !turn.answered);
    if (!again && !more && !pending && data.problem === this.data.problem) return;
    this.load(data);
    this.talked = null;
    this.picture.scene = null;
    this.go(following ? this.last : this.round, following && more, true);
    this.scroller.scrollTop = scrolled;
  }

  restore(query, first = false) {
    const turn = query.has("turn") ? this.data.turns.find((one) => one.number === Number(query.get("turn"))) : null;
    const agent = turn?.agent ?? query.get("agent");
    if (agent && this.agents.has(agent)) this.agent = agent;
    this.picker.value = this.agent ?? "";
    const round = turn
      ? turn.round + 1
      : query.has("round")
        ? Number(query.get("round"))
        : first
          ? this.last // where it was decided, or where it goes on
          : this.round;
    this.go(Number.isFinite(round) ? round : 0, false, false, turn);
  }

  address() {
    const more = {
      ...this.list,
      round: this.round === this.last ? null : this.round,
      agent: this.agent !== this.data.agents[0] ? this.agent : null,
      turn: this.turn,
    };
    history.replaceState(null, "", link(this.run, this.id, more));
  }

  // ------------------------------------------------------------------ moving

  go(round, moving = false, quietly = false, turn = null) {
    this.round = Math.max(0, Math.min(this.last, round));
    this.turn = turn ? turn.number : null;
    const scene = this.scenes[Math.min(this.round, this.scenes.length - 1)];
    this.slider.value = String(this.round);
    const words = this.round === 0 ? "start" : `round ${this.round} of ${this.last}`;
    this.slider.setAttribute("aria-valuetext", words);
    set(this.where, words);
    if (scene) {
      set(this.caption, scene.caption);
      this.picture.draw(scene, {
        topology: this.data.topology,
        selected: this.picked ?? null,
        moving: moving ? 0.6 * this.playback.beat : 0,
      });
      drawFacts(this.facts, scene.facts);
      drawBars(this.bars, scene.bars);
      drawSheets(this.sheets, scene.sheets, this.agents, this.picked ?? null, (agent) => this.pick(agent, true));
    } else set(this.caption, "There is no picture of this episode; its conversations are beside.");
    markLanes(this.lanes, this.round - 1);
    this.drawTalk(turn, quietly);
    if (this.tab === "story") this.drawStory(!quietly);
    this.address();
  }

  pause() {
    this.playback.pause();
  }

  pick(agent, mark = false) {
    this.picked = mark ? agent : this.picked;
    if (agent) this.agent = agent;
    this.picker.value = this.agent ?? "";
    if (agent) this.showTab("talk");
    const scene = this.scenes[Math.min(this.round, this.scenes.length - 1)];
    this.picture.select(this.picked ?? null);
    if (scene) drawSheets(this.sheets, scene.sheets, this.agents, this.picked ?? null, (name) => this.pick(name, true));
    this.drawTalk(null, false);
    this.address();
  }

  /** Show a turn in the conversation of its agent. */
  open(turn) {
    this.pause();
    this.agent = turn.agent;
    this.picker.value = turn.agent;
    this.showTab("talk");
    this.go(turn.round + 1, false, false, turn);
  }

  nextAgent(by) {
    const at = this.data.agents.indexOf(this.agent);
    this.pick(this.data.agents[(at + by + this.data.agents.length) % this.data.agents.length], true);
  }

  nextTurn(by) {
    const own = this.data.turns.filter((turn) => turn.agent === this.agent);
    const at =
      this.turn === null
        ? own.findIndex((turn) => turn.round + 1 >= this.round) - (by > 0 ? 1 : 0)
        : own.findIndex((turn) => turn.number === this.turn);
    const next = own[Math.max(0, Math.min(own.length - 1, at + by))];
    if (next) {
      this.pause();
      this.showTab("talk");
      this.go(next.round + 1, false, false, next);
    }
  }

  keys() {
    const move = (to) => () => {
      this.pause();
      this.go(to(), true);
    };
    const other = (id) => () => {
      if (id()) location.hash = link(this.run, id(), this.list).slice(1);
    };
    return {
      ArrowLeft: move(() => this.round - 1),
      ArrowRight: move(() => this.round + 1),
      Home: move(() => 0),
      End: move(() => this.last),
      " ": () => this.playback.toggle(),
      j: () => this.nextTurn(1),
      k: () => this.nextTurn(-1),
      n: () => this.nextAgent(1),
      p: () => this.nextAgent(-1),
      "[": other(() => this.data.previous),
      "]": other(() => this.data.next),
      u: () => {
        location.hash = back(`#/runs/${encodeURIComponent(this.run)}`, this.list);
      },
    };
  }

  // ------------------------------------------------------------------ drawing

  drawStory(scroll) {
    const go = (round) => {
      this.pause();
      this.go(round, true);
    };
    drawStory(this.story, this, go, (turn) => this.open(turn));
    if (scroll) this.reveal(this.story.querySelector(".now"), false);
  }

  drawTalk(turn, quietly) {
    const here = `${this.agent} ${this.data.turns.length}`;
    if (this.talked !== here) {
      this.talked = here;
      const context = {
        run: this.run,
        data: this.data,
        link: (one) => link(this.run, this.id, { ...this.list, turn: one.number }),
        onLink: (event, one) => this.copy(event, one),
        players: this.data.finished && !this.data.error && this.data.parent === null ? this.players : null,
        length: (one, part, text) => one.cuts[part] ?? text.length,
      };
      set(
        this.talk,
        this.agent === null
          ? h("p", { class: "muted" }, "The episode has no agents yet.")
          : conversation(this.agent, context),
      );
    }
    const current = turn ?? this.data.turns.filter((one) => one.agent === this.agent && one.round < this.round).at(-1);
    for (const element of this.talk.querySelectorAll(".turn")) {
      const number_ = Number(element.id.slice(5));
      element.classList.toggle("now", number_ === current?.number);
      element.classList.toggle(
        "later",
        this.data.turns[number_] ? this.data.turns[number_].round >= Math.max(this.round, 1) : false,
      );
    }
    if (quietly || !current || this.round === 0) return;
    this.reveal(this.talk.querySelector(`#turn-${current.number}`), turn !== null);
  }

  /** Scroll the side panel, and only that, to an element; on a small screen the page only where a link asks for it. */
  reveal(element, asked) {
    if (!element) return;
    const own = getComputedStyle(this.scroller).overflowY !== "visible";
    if (own)
      this.scroller.scrollTop += element.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top - 8;
    else if (asked) element.scrollIntoView({ block: "start" });
    if (asked) element.focus({ preventScroll: true });
  }

  copy(event, turn) {
    event.preventDefault();
    this.go(turn.round + 1, false, true, turn);
    const note = (text) => set(document.getElementById("live"), text);
    navigator.clipboard?.writeText(location.href).then(
      () => {
        set(event.target, "copied");
        note("Link copied");
      },
      () => note("The address bar has the link"),
    );
  }
}
