// The time slider of a simulation or a recorded session.

import { colour, fitted } from "./colours.js";
import { clockText } from "./format.js";
import { askJson } from "./source.js";

const STEPS = 1000;
const TICK = 250; // milliseconds between two instants while it plays

export class Slider {
  constructor(model, show) {
    Object.assign(this, { model, show });
    this.box = document.getElementById("time");
    this.input = document.getElementById("slider");
    this.now = document.getElementById("now");
    this.button = document.getElementById("play");
    this.speed = document.getElementById("speed");
    this.marks = document.getElementById("marks");
    this.input.addEventListener("input", () => this.jump(this.from + (this.input.value / STEPS) * (this.to - this.from)));
    this.button.addEventListener("click", () => this.toggle());
    new ResizeObserver(() => this.mark()).observe(this.box);
  }

  begin(head) {
    [this.from, this.to] = head.span;
    this.box.hidden = this.to <= this.from;
    this.at = this.to;
    this.input.value = STEPS;
    this.say();
    this.mark();
  }

  say() {
    this.now.textContent = clockText(this.at, this.model.head.clock);
    this.input.setAttribute("aria-valuetext", this.now.textContent);
  }

  // By hand: what plays goes on from there.
  jump(at) {
    this.go(at);
    this.since = performance.now();
    this.begun = this.at;
  }

  // Where it is by the clock on the wall, however long answers take.
  tick() {
    if (this.asking) return;
    const now = performance.now();
    this.begun += ((now - this.since) / 1000) * Number(this.speed.value);
    this.since = now;
    this.go(this.begun);
    if (this.at >= this.to) this.toggle();
  }

  async go(at) {
    this.at = Math.max(this.from, Math.min(this.to, at));
    this.input.value = Math.round(((this.at - this.from) / Math.max(this.to - this.from, 1e-9)) * STEPS);
    this.say();
    if (this.asking) return; // the answer to the last question comes first, then the newest instant is asked for
    this.asking = true;
    try {
      for (let asked = null; asked !== this.at;) {
        asked = this.at;
        this.show(await askJson("view", { at: asked }));
      }
    } finally {
      this.asking = false;
    }
  }

  toggle() {
    if (this.box.hidden) return;
    if (this.playing) {
      clearInterval(this.playing);
      this.playing = null;
    } else {
      this.begun = this.at >= this.to ? this.from : this.at;
      this.since = performance.now();
      this.playing = setInterval(() => this.tick(), TICK);
    }
    this.button.textContent = this.playing ? "❚❚" : "▶";
    this.button.setAttribute("aria-label", this.playing ? "Stop" : "Play");
  }

  // Preemptions over time, so that one sees where to look.
  mark() {
    if (this.box.hidden || !this.model.head) return;
    const { marks } = this.model.head;
    const { width, height } = this.marks.getBoundingClientRect();
    const drawn = fitted(this.marks, width, height);
    const most = Math.max(1, ...marks);
    drawn.fillStyle = colour("at-risk");
    const inset = 8; // the slider's thumb is half as wide
    marks.forEach((many, place) => {
      if (!many) return;
      const high = Math.max(1.5, (many / most) * (height - 4));
      drawn.fillRect(inset + (place / marks.length) * (width - 2 * inset), height - high, Math.max(1, (width - 2 * inset) / marks.length - 1), high);
    });
  }
}
