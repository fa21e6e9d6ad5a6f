// Nodes as tiles, their pods as cells, on one canvas: what runs where, and who could make room.

import { classInk, classVariable, colour, fitted } from "./colours.js";
import { STATE_CLASS, STATE_WORD, byName, count, element, percent, plural } from "./format.js";

const LEAST = 9;
const MOST = 96;
const GAP = 2;
const WORST = ["missed", "at-risk-fill", "unknown", "kept-fill"];
const FILL = { kept: "kept-fill", "at-risk": "at-risk-fill" };
const CELLS_FROM = 15; // tiles at least so wide show each pod

const fillOf = (state) => FILL[STATE_CLASS[state]] || STATE_CLASS[state];

export class Nodes {
  constructor(model, open) {
    Object.assign(this, { model, open });
    this.box = document.getElementById("tiles");
    this.canvas = document.getElementById("canvas");
    this.said = document.getElementById("tile-said");
    this.legend = document.getElementById("legend");
    this.count = document.getElementById("count-nodes");
    this.mode = "state";
    this.order = [];
    this.place = new Map();
    this.chosen = -1;
    this.text = "";
    for (const input of document.querySelectorAll("#paint input")) {
      input.addEventListener("change", () => {
        this.mode = input.value;
        this.all();
      });
    }
    new ResizeObserver(() => this.all()).observe(this.box);
    this.canvas.addEventListener("pointermove", (event) => this.point(event, false));
    this.canvas.addEventListener("click", (event) => this.point(event, true));
    this.box.addEventListener("keydown", (event) => this.key(event));
  }

  all() {
    this.model.touched.all = true;
    if (this.model.head) this.draw(this.text);
  }

  draw(text) {
    const { model } = this;
    if (text !== this.text) model.touched.all = true;
    this.text = text;
    this.inOrder();
    const { touched } = model;
    const legendOf = `${this.mode} ${model.classes.size} ${model.asks}`;
    if (this.legendOf !== legendOf) {
      this.legendOf = legendOf;
      this.explain();
    }
    const found = text ? this.order.filter((number) => model.nodes.get(number).name.toLowerCase().includes(text)).length : this.order.length;
    this.count.textContent = text ? `${count(found)} of ${count(this.order.length)}` : count(found);
    if (touched.all) this.layout();
    else for (const number of touched.nodes) this.tile(number);
    touched.nodes.clear();
    touched.all = false;
  }

  // Thousands of names take a while to be put in order: only where other nodes are there.
  inOrder() {
    const { model } = this;
    if (this.nodeSet === model.nodeSet) return;
    this.nodeSet = model.nodeSet;
    this.order = [...model.nodes.values()].sort(byName).map((one) => one.number);
    this.place = new Map(this.order.map((number, place) => [number, place]));
  }

  layout() {
    const { box } = this;
    const style = getComputedStyle(box);
    const width = box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const height = box.clientHeight - 16;
    if (width < 20 || height < 20) return;
    let size = MOST;
    const fits = (side) => Math.floor(width / side) * Math.floor(height / side) >= this.order.length;
    while (size > LEAST && !fits(size)) size -= 1;
    this.size = size;
    this.columns = Math.max(1, Math.floor(width / size));
    const rows = Math.ceil(this.order.length / this.columns);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${Math.max(1, rows * size)}px`;
    this.drawn = fitted(this.canvas, width, Math.max(1, rows * size));
    for (const number of this.order) this.tile(number);
    if (this.chosen < 0) this.said.textContent = `Each tile is a node, ${size >= CELLS_FROM ? "each cell in it a pod" : this.mode === "state" ? "in the colour of its worst pod" : "each stripe in it pods of a colour"}.`;
  }

  // Colours of the pods of a node, in an order that stays while they stay.
  paints(number) {
    const { model } = this;
    const found = [];
    for (const one of model.podsOfNode.get(number) || []) {
      const pod = model.pods.get(one);
      const owner = model.workloads.get(pod.workload);
      found.push(this.paint(pod, owner));
    }
    return found.sort();
  }

  paint(pod, owner) {
    if (this.mode === "class") return owner ? classInk(this.model.place(owner.cls)) : "unknown";
    if (this.mode === "goes") return this.model.free.has(pod.number) ? "policy-2" : "grid";
    return owner ? fillOf(owner.stateName) : "unknown";
  }

  tile(number) {
    const place = this.place.get(number);
    const node = this.model.nodes.get(number);
    if (place === undefined || !node || !this.drawn) return;
    const { drawn, size } = this;
    const [x, y] = [(place % this.columns) * size, Math.floor(place / this.columns) * size];
    const side = size - GAP;
    drawn.clearRect(x, y, size, size);
    const seen = !this.text || node.name.toLowerCase().includes(this.text);
    drawn.globalAlpha = seen ? 1 : 0.2;
    drawn.fillStyle = colour("panel");
    drawn.fillRect(x, y, side, side);
    const paints = this.paints(number);
    if (size >= CELLS_FROM) this.cells(x, y, side, paints);
    else this.stripes(x, y, side, this.mode === "state" ? [WORST.find((one) => paints.includes(one)) || "panel"] : paints);
    drawn.strokeStyle = colour(node.up ? "axis" : "missed");
    drawn.lineWidth = place === this.chosen ? 3 : 1;
    if (place === this.chosen) drawn.strokeStyle = colour("link");
    if (size >= CELLS_FROM || !node.up || place === this.chosen) drawn.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
    drawn.globalAlpha = 1;
  }

  cells(x, y, side, paints) {
    const { drawn } = this;
    const across = Math.max(2, Math.ceil(Math.sqrt(paints.length)));
    const cell = (side - 3) / across;
    paints.forEach((name, place) => {
      drawn.fillStyle = colour(name);
      const [left, top] = [x + 2 + (place % across) * cell, y + 2 + Math.floor(place / across) * cell];
      drawn.fillRect(left, top, Math.max(1, cell - 1), Math.max(1, cell - 1));
    });
  }

  // Too small for cells: stripes as high as the share of pods that have the colour; of promises the worst alone.
  stripes(x, y, side, paints) {
    const { drawn } = this;
    let from = 0;
    while (from < paints.length) {
      let to = from;
      while (to < paints.length && paints[to] === paints[from]) to += 1;
      drawn.fillStyle = colour(paints[from]);
      drawn.fillRect(x, y + (from / paints.length) * side, side, ((to - from) / paints.length) * side);
      from = to;
    }
  }

  explain() {
    const { model } = this;
    const entry = (variable, text) => {
      const mark = element("i");
      mark.style.setProperty("--ink", variable);
      return element("li", "", "", mark, element("span", "", text));
    };
    if (this.mode === "class") {
      const classes = [...model.classes.values()].sort((a, b) => a.rank - b.rank);
      this.legend.replaceChildren(...classes.map((one) => entry(classVariable(model.place(one.number)), one.name)));
    } else if (this.mode === "goes") {
      const whom = model.asks ? `for ${model.asks}, who waits most urgently` : "";
      const words = model.asks ? [entry("var(--policy-2)", `could make room ${whom}`), entry("var(--grid)", "stays: its promise, its protection or its rank says so")] : [element("li", "", model.head.source === "simulation" ? "A simulation does not write down who could make room." : "By now nobody waits for whom others would have to make room.")];
      this.legend.replaceChildren(...words);
    } else {
      this.legend.replaceChildren(...model.head.states.map((state) => entry(`var(--${fillOf(state)})`, STATE_WORD[state])));
    }
  }

  describe(number) {
    const { model } = this;
    const node = model.nodes.get(number);
    const tally = new Map();
    for (const one of model.podsOfNode.get(number) || []) {
      const owner = model.workloads.get(model.pods.get(one).workload);
      const name = owner ? `${model.classes.get(owner.cls)?.name || "no class"}` : "no class";
      tally.set(name, (tally.get(name) || 0) + 1);
    }
    const what = [...tally].map(([name, many]) => `${many} ${name}`).join(", ") || "no pods of this scheduler";
    const used = node.used === null ? "" : `, ${percent(node.used)} taken`;
    const others = node.others ? `, ${plural(node.others, "pod")} of others` : "";
    return `${node.name}: ${what}${others}${used}${node.up ? "" : ", takes no pods"}`;
  }

  point(event, opens) {
    const frame = this.canvas.getBoundingClientRect();
    const [column, row] = [event.clientX - frame.left, event.clientY - frame.top].map((one) => Math.floor(one / this.size));
    const place = row * this.columns + column;
    if (column >= this.columns || place < 0 || place >= this.order.length) return;
    if (opens) {
      this.choose(place);
      this.open(this.model.nodes.get(this.order[place]));
    } else this.said.textContent = this.describe(this.order[place]);
  }

  choose(place) {
    const before = this.chosen;
    this.chosen = Math.max(0, Math.min(this.order.length - 1, place));
    if (before >= 0 && before < this.order.length) this.tile(this.order[before]);
    this.tile(this.order[this.chosen]);
    this.said.textContent = this.describe(this.order[this.chosen]);
    const top = Math.floor(this.chosen / this.columns) * this.size;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + this.size > this.box.scrollTop + this.box.clientHeight - 16) this.box.scrollTop = top + this.size - this.box.clientHeight + 16;
  }

  key(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns, Home: -Infinity, End: Infinity };
    if (!this.order.length) return;
    if (event.key in steps) {
      this.choose(this.chosen < 0 ? 0 : this.chosen + steps[event.key]);
      event.preventDefault();
    } else if (event.key === "Enter" && this.chosen >= 0) {
      this.open(this.model.nodes.get(this.order[this.chosen]));
      event.preventDefault();
    }
  }
}
