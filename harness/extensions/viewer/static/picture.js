// A scene as SVG: agents, things, edges, and messages on their way.

import { h, s, set, visible } from "./dom.js";

const WIDTH = 1000;
const HEIGHT = 800;
const SIGNS = { leader: "★", conflict: "!", right: "✓", wrong: "✗", byzantine: "⚑", eating: "●" };
const WORDS = {
  leader: "leader",
  conflict: "in conflict",
  waiting: "waiting",
  active: "acts now",
  eating: "eats",
  byzantine: "byzantine",
  right: "right",
  wrong: "wrong",
};
const TIPS = { chosen: "tip-chosen", held: "tip-held" };
const SIZES = { brief: 0.72, short: 0.72, middle: 0.5, long: 0.42 }; // of a value, in radii
const COLORS = 8; // groups beyond them have a ring, too
const DOTS = 240;
const ARROWS = 160;

/** Draws scenes into an element. `choose(agent)` is called when a reader picks an agent. */
export class Picture {
  constructor(choose) {
    this.choose = choose;
    this.nodes = new Map();
    this.places = new Map();
    this.scene = null;
    this.frame = 0;
    this.back = s("g", { "aria-hidden": "true" });
    this.edges = s("g", { class: "edges" });
    this.arrows = s("g", { class: "arrows" });
    this.layer = s("g", { class: "nodes" });
    this.dots = s("g", { class: "dots", "aria-hidden": "true" });
    const tip = (id, name) =>
      s(
        "marker",
        {
          id,
          viewBox: "0 0 10 10",
          refX: 9,
          refY: 5,
          markerWidth: 15,
          markerHeight: 15,
          markerUnits: "userSpaceOnUse",
          orient: "auto-start-reverse",
          class: name,
        },
        s("path", { d: "M0 1 10 5 0 9z" }),
      );
    this.svg = s(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "picture", role: "group", "aria-label": "The agents" },
      s("defs", {}, tip("tip", "tip"), tip("tip-chosen", "tip chosen"), tip("tip-held", "tip held")),
      this.back,
      this.edges,
      this.arrows,
      this.layer,
      this.dots,
    );
    this.legend = h("ul", { class: "legend", "aria-label": "Legend" });
    this.element = h("div", { class: "drawing" }, this.svg, this.legend);
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
  }

  draw(scene, { topology, selected, moving = 0 }) {
    cancelAnimationFrame(this.frame);
    set(this.dots);
    this.element.hidden = !scene.nodes.length; // boards of games say more
    this.topology = topology;
    const agents = scene.nodes.filter((node) => node.kind === "agent").length;
    this.radius = agents <= 6 ? 44 : agents <= 12 ? 36 : agents <= 25 ? 27 : agents <= 50 ? 17 : 13;
    this.svg.classList.toggle("dense", agents > 30);
    // All agents have their values inside, in one size, or all have them below.
    const texts = scene.nodes.filter((node) => node.kind === "agent").map((node) => node.text.length);
    const longest = Math.max(0, ...texts);
    const room = this.radius >= 36 ? 6 : this.radius >= 27 ? 4 : this.radius >= 19 ? 3 : 2;
    this.values = longest <= room ? (longest > 5 ? "long" : longest > 3 ? "middle" : longest > 2 ? "short" : "brief") : "below";
    if (this.scene?.nodes !== scene.nodes) this.drawNodes(scene.nodes, agents);
    if (this.scene?.edges !== scene.edges || this.moved) this.drawEdges(scene.edges);
    this.drawArrows(scene);
    this.drawLegend(scene);
    this.scene = scene;
    this.select(selected);
    if (moving > 0 && !this.calm.matches) this.fly(scene, moving);
  }

  select(agent) {
    this.selected = agent;
    for (const [id, element] of this.nodes) {
      element.classList.toggle("selected", id === agent);
      if (element.hasAttribute("role")) element.setAttribute("aria-pressed", String(id === agent));
    }
    this.arrows.classList.toggle("some", Boolean(agent));
    for (const arrow of this.arrows.children)
      arrow.classList.toggle("own", arrow.dataset.from === agent || arrow.dataset.to === agent);
  }

  place(node, i, all) {
    const angle = (2 * Math.PI * i) / Math.max(all, 1);
    const x = node.x ?? 0.5 + 0.42 * Math.sin(angle);
    const y = node.y ?? 0.5 - 0.42 * Math.cos(angle);
    return [70 + x * (WIDTH - 140), 62 + y * (HEIGHT - 150)];
  }

  drawNodes(nodes, agents) {
    const there = new Set();
    this.moved = false;
    nodes.forEach((node, i) => {
      there.add(node.id);
      const before = this.nodes.get(node.id);
      const [x, y] = this.place(node, i, nodes.length);
      const old = this.places.get(node.id);
      if (!old || old[0] !== x || old[1] !== y) this.moved = true;
      this.places.set(node.id, [x, y]);
      if (before?.drawn === node && before.radius === this.radius && before.values === this.values) return;
      const element = before ?? this.fresh(node, agents);
      element.style.transform = `translate(${x}px, ${y}px)`;
      this.fillNode(element, node);
      element.drawn = node;
      element.radius = this.radius;
      element.values = this.values;
    });
    for (const [id, element] of this.nodes)
      if (!there.has(id)) {
        element.remove();
        this.nodes.delete(id);
        this.places.delete(id);
        this.moved = true;
      }
  }

  fresh(node, agents) {
    const isAgent = node.kind === "agent";
    const pick = () => isAgent && this.choose(node.id);
    const keys = (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        event.stopPropagation();
        pick();
      }
    };
    const element = s("g", {
      class: `node ${node.kind}`,
      role: isAgent ? "button" : null,
      tabindex: isAgent ? (agents > 30 ? -1 : 0) : null,
      on: isAgent ? { click: pick, keydown: keys } : {},
    });
    (node.kind === "surface" ? this.back : this.layer).append(element);
    this.nodes.set(node.id, element);
    return element;
  }

  fillNode(element, node) {
    const r = this.radius;
    const label = node.label || node.id;
    const marks = new Set(node.marks);
    const others = node.marks.filter((mark) => !(mark in WORDS));
    const inside = this.values !== "below";
    const kind = `node ${node.kind}${node.color === null ? "" : ` c${node.color % COLORS}`}${[...marks]
      .filter((mark) => mark in WORDS)
      .map((mark) => ` is-${mark}`)
      .join("")}${element.classList.contains("selected") ? " selected" : ""}`;
    element.setAttribute("class", kind);
    const what = [label, node.text, ...node.marks.map((mark) => WORDS[mark] ?? mark)].filter(Boolean).join(", ");
    element.setAttribute("aria-label", visible(what));
    if (node.kind === "surface")
      return set(element, s("ellipse", { rx: (WIDTH - 140) * 0.3, ry: (HEIGHT - 150) * 0.3 }));
    if (node.kind !== "agent") {
      const side = Math.max(r * 0.42, 9);
      const many = node.text.length > 1 || /\d/.test(node.text);
      return set(
        element,
        s("title", {}, label),
        s("rect", { class: "body", x: -side, y: -side, width: 2 * side, height: 2 * side, rx: side * 0.35 }),
        node.text && s("text", { class: "value" }, node.text),
        many && s("text", { class: "name", y: side + 20 }, label),
      );
    }
    const sign = Object.keys(SIGNS).find((mark) => marks.has(mark));
    const below = [...(inside ? [] : [node.text]), ...others].join(" · ");
    set(
      element,
      s("title", {}, what),
      s("circle", { class: "halo", r: r + 7 }),
      marks.has("byzantine")
        ? s("rect", {
            class: "body",
            x: -r * 0.86,
            y: -r * 0.86,
            width: r * 1.72,
            height: r * 1.72,
            rx: 4,
            transform: "rotate(45)",
          })
        : s("circle", { class: "body", r }),
      node.color >= COLORS && s("circle", { class: `ring ring${Math.floor(node.color / COLORS) % 4}`, r: r - 1 }),
      inside &&
        node.text &&
        s("text", { class: `value ${this.values}`, "font-size": Math.max(SIZES[this.values] > 0.5 ? 15 : 12, r * SIZES[this.values]) }, node.text),
      sign &&
        s(
          "g",
          { class: `sign is-${sign}`, transform: `translate(${r * 0.78} ${-r * 0.78})` },
          s("circle", { r: Math.max(9, r * 0.34) }),
          s("text", { y: 0, "font-size": Math.max(12, r * 0.44) }, SIGNS[sign]),
        ),
      s("text", { class: "name", y: r + 22 }, short(label, 16)),
      below && s("text", { class: "below", y: r + 42 }, short(below, 20)),
    );
    return element;
  }

  drawEdges(edges) {
    set(
      this.edges,
      edges.map((edge) => {
        const from = this.places.get(edge.source);
        const to = this.places.get(edge.target);
        if (!from || !to) return null;
        const [x2, y2] = edge.directed ? shorten(from, to, this.radius + 6) : to;
        return s("line", {
          class: `edge ${edge.state}`,
          x1: from[0],
          y1: from[1],
          x2,
          y2,
          "marker-end": edge.directed ? `url(#${TIPS[edge.state] ?? "tip"})` : null,
        });
      }),
    );
    this.moved = false;
  }

  /** Sender and receiver of every message; one to all others is one a receiver. */
  routes(scene) {
    const agents = scene.nodes.filter((node) => node.kind === "agent").map((node) => node.id);
    return scene.messages.flatMap((message) =>
      message.receiver === "*"
        ? (this.topology?.[message.sender] ?? agents)
            .filter((agent) => agent !== message.sender)
            .map((agent) => [message.sender, agent, message.text])
        : [[message.sender, message.receiver, message.text]],
    );
  }

  drawArrows(scene) {
    const routes = this.routes(scene);
    set(
      this.arrows,
      routes.length <= ARROWS &&
        routes.map(([from, to, text]) => {
          const path = this.curve(from, to);
          return (
            path &&
            s(
              "path",
              { class: "arrow", d: path, "marker-end": "url(#tip)", data: { from, to } },
              s("title", {}, `${from} → ${to}${text ? `: ${text}` : ""}`),
            )
          );
        }),
    );
  }

  curve(from, to) {
    const a = this.places.get(from);
    const b = this.places.get(to);
    if (!a || !b) return null;
    const [cx, cy] = bend(a, b);
    const [sx, sy] = shorten([cx, cy], a, this.radius + 3);
    const [ex, ey] = shorten([cx, cy], b, this.radius + 8);
    return `M${fixed(sx)} ${fixed(sy)} Q${fixed(cx)} ${fixed(cy)} ${fixed(ex)} ${fixed(ey)}`;
  }

  /** Let messages travel, for so many milliseconds. */
  fly(scene, milliseconds) {
    const routes = this.routes(scene);
    const kept = routes.length <= DOTS ? routes : routes.filter((_, i) => i % Math.ceil(routes.length / DOTS) === 0);
    const dots = kept
      .map(([from, to]) => {
        const a = this.places.get(from);
        const b = this.places.get(to);
        if (!a || !b) return null;
        const dot = s("circle", { class: "dot", r: Math.max(5, this.radius * 0.2) });
        return { dot, a, b, c: bend(a, b) };
      })
      .filter(Boolean);
    set(
      this.dots,
      dots.map(({ dot }) => dot),
    );
    const start = performance.now();
    const step = (now) => {
      const share = Math.min(1, (now - start) / milliseconds);
      const t = share < 0.5 ? 2 * share * share : 1 - (2 - 2 * share) ** 2 / 2;
      for (const { dot, a, b, c } of dots) {
        dot.setAttribute("cx", (1 - t) ** 2 * a[0] + 2 * t * (1 - t) * c[0] + t * t * b[0]);
        dot.setAttribute("cy", (1 - t) ** 2 * a[1] + 2 * t * (1 - t) * c[1] + t * t * b[1]);
      }
      if (share < 1) this.frame = requestAnimationFrame(step);
      else set(this.dots);
    };
    this.frame = requestAnimationFrame(step);
  }

  drawLegend(scene) {
    const marks = [...new Set(scene.nodes.flatMap((node) => node.marks))].filter((mark) => mark in WORDS);
    const states = [...new Set(scene.edges.map((edge) => edge.state))].filter((state) =>
      ["conflict", "chosen", "held", "wanted"].includes(state),
    );
    const words = { conflict: "conflict", chosen: "chosen", held: "holds or uses", wanted: "wants" };
    const key = JSON.stringify([marks, states, scene.messages.length]);
    if (key === this.key) return;
    this.key = key;
    const many = this.routes(scene).length;
    set(
      this.legend,
      marks.map((mark) =>
        h("li", {}, h("span", { class: `swatch is-${mark}`, "aria-hidden": "true" }, SIGNS[mark] ?? ""), WORDS[mark]),
      ),
      states.map((state) => h("li", {}, h("span", { class: `stroke ${state}`, "aria-hidden": "true" }), words[state])),
      many > 0 &&
        h(
          "li",
          {},
          h("span", { class: "stroke message", "aria-hidden": "true" }),
          many > ARROWS ? `${many} messages (arrows are hidden)` : "message",
        ),
    );
  }
}

function short(text, length) {
  const clean = visible(text);
  return clean.length <= length ? clean : `${clean.slice(0, length - 1)}…`;
}

function bend([ax, ay], [bx, by]) {
  const distance = Math.hypot(bx - ax, by - ay) || 1;
  const lift = Math.min(46, distance * 0.14);
  return [(ax + bx) / 2 + ((by - ay) / distance) * lift, (ay + by) / 2 - ((bx - ax) / distance) * lift];
}

/** The point before `to` on the way from `from`. */
function shorten([ax, ay], [bx, by], by_) {
  const distance = Math.hypot(bx - ax, by - ay) || 1;
  const share = Math.max(0, 1 - by_ / distance);
  return [ax + (bx - ax) * share, ay + (by - ay) * share];
}

const fixed = (value) => Math.round(value * 10) / 10;
