// What is shown, as tables by number: kept up to date from views (see view.py), and asked by every part of the page.

export const HISTORY = 240; // samples of slack kept for each workload
const SAMPLE_SECONDS = 1;
const MOST_DECISIONS = 400;

export class Model {
  constructor() {
    this.listeners = [];
    this.head = null;
    this.nodeSet = 0; // another number where other nodes are there; likewise
    this.workloadSet = 0;
    this.clear();
  }

  clear() {
    this.at = 0;
    this.hidden = 0;
    this.asks = "";
    this.free = new Set();
    this.sentences = [];
    this.classes = new Map();
    this.inks = new Map();
    this.workloads = new Map();
    this.workloadSet += 1;
    this.nodes = new Map();
    this.nodeSet += 1;
    this.pods = new Map();
    this.decisions = [];
    this.podsOfNode = new Map();
    this.podsOfWorkload = new Map();
    this.waiting = new Map();
    this.touched = { nodes: new Set(), all: true };
    this.times = new Float64Array(HISTORY);
    this.samples = 0;
  }

  // Slacks are sampled once a second, all at once, so that memory does not grow while the page is open.
  sample() {
    const last = this.samples ? this.times[(this.samples - 1) % HISTORY] : -Infinity;
    if (this.at - last < SAMPLE_SECONDS) return;
    const place = this.samples % HISTORY;
    this.times[place] = this.at;
    for (const one of this.workloads.values()) {
      if (!one.past) one.past = new Float32Array(HISTORY).fill(NaN);
      one.past[place] = one.slack === null ? Infinity : one.slack;
    }
    this.samples += 1;
  }

  // The sampled slack of a workload, as pairs of instant and seconds.
  past(workload) {
    const found = [];
    if (!workload.past) return found;
    for (let i = Math.max(0, this.samples - HISTORY); i < this.samples; i += 1) {
      const slack = workload.past[i % HISTORY];
      if (!Number.isNaN(slack)) found.push([this.times[i % HISTORY], slack === Infinity ? null : slack]);
    }
    return found;
  }

  apply(view) {
    if (view.head) this.head = view.head;
    if (view.whole) {
      const { classes, inks } = this;
      const kept = this.head.span ? null : { workloads: this.workloads, times: this.times, samples: this.samples };
      this.clear();
      this.classes = classes;
      this.inks = inks;
      if (kept) this.keepPast(view, kept);
    }
    this.at = view.at;
    if (view.whole || view.hidden) this.hidden = view.hidden || 0;
    if (view.sentences) this.sentences = view.sentences;
    const { columns } = this.head;
    if (view.classes?.length) {
      this.classes.clear();
      for (const row of view.classes) this.classes.set(row[0], record(columns.classes, row));
      this.rankClasses();
    }
    for (const row of view.nodes || []) this.node(record(columns.nodes, row));
    for (const row of view.workloads || []) this.workload(record(columns.workloads, row));
    for (const row of view.pods || []) this.pod(record(columns.pods, row));
    if (view.free || view.whole) this.ask(view.asks || "", view.free || []);
    for (const number of view.gone?.pods || []) this.podGone(number);
    for (const number of view.gone?.workloads || []) {
      this.workloads.delete(number);
      this.workloadSet += 1;
    }
    for (const number of view.gone?.nodes || []) {
      this.nodes.delete(number);
      this.nodeSet += 1;
      this.touched.all = true;
    }
    if (view.decisions?.length) this.decide(view.decisions.map((row) => record(columns.decisions, row)), columns.victims);
    if (!this.head.span) this.sample();
  }

  // Colours go by importance, as in the report.
  rankClasses() {
    const before = this.inks;
    this.inks = new Map();
    const ordered = [...this.classes.values()].sort((a, b) => a.rank - b.rank || a.number - b.number);
    ordered.forEach((one, place) => this.inks.set(one.number, place));
    if (JSON.stringify([...this.inks]) !== JSON.stringify([...(before || [])])) this.touched.all = true;
  }

  // The place of a class among all, most important first.
  place(cls) {
    return this.inks.get(cls) ?? 0;
  }

  // A stream that begins anew numbers workloads anew: their past goes on under their names.
  keepPast(view, kept) {
    const named = new Map();
    for (const one of kept.workloads.values()) named.set(`${one.kind}/${one.namespace}/${one.name}`, one.past);
    this.times = kept.times;
    this.samples = kept.samples;
    this.remembered = named;
  }

  node(one) {
    const known = this.nodes.get(one.number);
    if (known) Object.assign(known, one);
    else {
      this.nodes.set(one.number, one);
      this.nodeSet += 1;
      this.touched.all = true;
    }
    this.touched.nodes.add(one.number);
  }

  workload(one) {
    one.stateName = this.head.states[one.state];
    const known = this.workloads.get(one.number);
    if (known) {
      if (known.state !== one.state) this.touchPods(one.number);
      Object.assign(known, one);
      return;
    }
    const key = `${one.kind}/${one.namespace}/${one.name}`;
    one.past = this.remembered?.get(key) || null;
    one.words = `${one.namespace}/${one.name}`.toLowerCase();
    this.workloads.set(one.number, one);
    this.workloadSet += 1;
  }

  touchPods(workload) {
    for (const pod of this.podsOfWorkload.get(workload) || []) this.touched.nodes.add(this.pods.get(pod).node);
  }

  pod(one) {
    const known = this.pods.get(one.number);
    if (known) this.unlink(known);
    one.words = `${one.namespace}/${one.name}`.toLowerCase();
    this.pods.set(one.number, one);
    if (one.node >= 0) link(this.podsOfNode, one.node, one.number);
    if (one.workload >= 0) link(this.podsOfWorkload, one.workload, one.number);
    if (one.state === 0) this.waiting.set(one.number, one);
    this.touched.nodes.add(one.node);
  }

  // Who could make room for the pod that waits most urgently.
  ask(asks, free) {
    const now = new Set(free);
    for (const number of now) if (!this.free.has(number)) this.touched.nodes.add(this.pods.get(number)?.node);
    for (const number of this.free) if (!now.has(number)) this.touched.nodes.add(this.pods.get(number)?.node);
    this.asks = asks;
    this.free = now;
  }

  podGone(number) {
    const known = this.pods.get(number);
    if (!known) return;
    this.unlink(known);
    this.pods.delete(number);
  }

  unlink(pod) {
    this.touched.nodes.add(pod.node);
    this.podsOfNode.get(pod.node)?.delete(pod.number);
    this.podsOfWorkload.get(pod.workload)?.delete(pod.number);
    this.waiting.delete(pod.number);
  }

  decide(rows, columns) {
    for (const one of rows) one.victims = one.victims.map((row) => record(columns, row));
    const known = new Set(rows.map((one) => one.number));
    this.decisions = rows.concat(this.decisions.filter((one) => !known.has(one.number)));
    this.decisions.sort((a, b) => b.at - a.at || b.number - a.number);
    this.decisions.length = Math.min(this.decisions.length, MOST_DECISIONS);
  }
}

function record(columns, row) {
  const made = {};
  for (let i = 0; i < columns.length; i += 1) made[columns[i]] = row[i];
  return made;
}

function link(table, key, value) {
  const known = table.get(key);
  if (known) known.add(value);
  else table.set(key, new Set([value]));
}
