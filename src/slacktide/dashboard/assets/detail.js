// The drawer: one workload, pod or node, and a pod's story.

import { chart } from "./chart.js";
import { classVariable } from "./colours.js";
import { STATE_WORD, classChip, clockText, count, duration, element, fullName, isolated, lostText, ofSlack, percent, slackText, stateMark } from "./format.js";
import { askJson } from "./source.js";

const MOST_LINKS = 100;
const REFRESH = 1000;

export class Detail {
  constructor(model, pastOf, until) {
    Object.assign(this, { model, pastOf, until });
    this.dialog = document.getElementById("detail");
    this.head = document.getElementById("detail-head");
    this.body = document.getElementById("detail-body");
    document.getElementById("close").addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    this.dialog.addEventListener("close", () => { this.shown = null; });
    this.shown = null;
    this.drawn = 0;
  }

  open(shown) {
    this.shown = shown;
    this.asked = 0;
    this.parts = null;
    if (!this.dialog.open) this.dialog.showModal();
    this.dialog.scrollTop = 0;
    this.draw(true);
    this.head.focus({ preventScroll: true });
  }

  workload = (one) => this.open({ kind: "workload", number: one.number });

  pod = (one) => this.open({ kind: "pod", number: one.number, namespace: one.namespace, name: one.name });

  node = (one) => this.open({ kind: "node", number: one.number });

  // A decision is the story of the pod that gained by it; where that is gone, its name still tells.
  decision = (one) => {
    const [name, namespace] = one.pod.split("/").reverse();
    const known = [...this.model.pods.values()].find((pod) => pod.name === name && pod.namespace === (namespace || ""));
    this.open({ kind: "pod", number: known ? known.number : -1, namespace: namespace || "", name });
  };

  draw(now = false) {
    if (!this.shown || (!now && performance.now() - this.drawn < REFRESH)) return;
    this.drawn = performance.now();
    this[`draw_${this.shown.kind}`]();
  }

  frame(title, ...parts) {
    const key = parts.join(" ");
    if (this.parts?.key !== key || this.parts.title !== title) {
      this.head.textContent = title;
      const made = { key, title };
      this.body.replaceChildren();
      for (const name of parts) {
        made[name] = name === "chart" ? element("canvas", "chart") : element("div", name === "story" ? "story" : "");
        if (HEADS[name]) this.body.append(element("h3", "", HEADS[name]));
        this.body.append(made[name]);
      }
      this.parts = made;
    }
    return this.parts;
  }

  draw_workload() {
    const { model } = this;
    const one = model.workloads.get(this.shown.number);
    if (!one) {
      this.gone();
      return;
    }
    const parts = this.frame(isolated(fullName(one)), "facts", "chart", "happened", "pods");
    const cls = model.classes.get(one.cls);
    const state = element("span", "state", "", stateMark(one.stateName), element("span", `ink-${stateMark(one.stateName).className.slice(4)}`, STATE_WORD[one.stateName]));
    pairs(parts.facts, [
      ["promise", state], ["kind", one.kind + (one.over ? ", ended" : "")],
      ["class", cls ? classChip(cls.name, classVariable(model.place(one.cls))) : "none"],
      ["promised", one.promised === null ? "–" : percent(one.promised)], ["delivered", percent(one.delivered)],
      ["slack", one.slack === null ? "no limit: as things stand the promise cannot break" : one.slack < 0 ? `${duration(-one.slack)} are to be made up` : `${duration(one.slack)} until the promise breaks if it stops now`],
      ["pods", `${one.running} running, ${one.waiting} waiting${one.late ? `, ${one.late} of these too late` : ""}`],
      ...(one.lost.length ? [["time lost", lostText(one.lost, model.classes)]] : []),
      ...(one.given_up ? [["plan", `given up by the plan of ${clockText(one.given_up, model.head.clock)}: it takes free room`]] : []),
      ["disrupted", one.preempted === 1 ? "once" : `${count(one.preempted)} times`],
    ]);
    this.chartOf(parts.chart, one);
    const pods = [...(model.podsOfWorkload.get(one.number) || [])].map((number) => model.pods.get(number));
    links(parts.pods, pods, (pod) => `${fullName(pod)} – ${this.where(pod)}`, this.pod, "no pods now");
    this.happened(parts.happened, one);
  }

  async chartOf(canvas, one) {
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Slack of ${fullName(one)} over time; now ${slackText(one.slack)}`);
    const past = this.pastOf(one, true);
    chart(canvas, past, this.model.decisions.flatMap((decision) => (decision.victims.some((victim) => victim.workload === one.number) ? [decision.at] : [])), this.model.head.clock);
  }

  async happened(box, one) {
    const { model } = this;
    if (!model.head.span) {
      const lines = [];
      for (const decision of model.decisions) {
        for (const victim of decision.victims) if (victim.workload === one.number) lines.push([decision.at, `${victim.pod}: preempted on ${decision.node}`, decision.workload]);
        if (decision.workload === one.number) lines.push([decision.at, `${decision.pod}: placed on ${decision.node}${decision.victims.length ? `, preempting ${decision.victims.length}` : ""}`, -1]);
      }
      this.tell(box, lines, "nothing since this page was opened");
      return;
    }
    if (this.asked === model.at) return;
    this.asked = model.at;
    const found = await askJson("history", { workloads: one.number, at: model.at, told: 1 });
    if (this.shown?.number !== one.number) return;
    this.tell(box, (found[one.number]?.told || []).reverse(), "nothing");
  }

  draw_pod() {
    const { model, shown } = this;
    const pod = model.pods.get(shown.number);
    const title = shown.namespace ? `${shown.namespace}/${shown.name}` : shown.name;
    const parts = this.frame(`Pod ${isolated(title)}`, "facts", "story", "owner");
    const owner = pod && model.workloads.get(pod.workload);
    const facts = pod ? [["now", this.where(pod)]] : [["now", "deleted"]];
    if (pod?.reason) facts.push(["why it waits", pod.reason]);
    const cost = model.head.span ? null : model.decisions.find((one) => one.victims.some((victim) => victim.pod === title));
    const whose = cost && model.workloads.get(cost.workload);
    if (whose) facts.push(["made room for", link(this.naming(whose), () => this.workload(whose))]);
    if (pod && model.asks && pod.node >= 0) facts.push([`for ${model.asks}`, model.free.has(pod.number) ? "could make room" : "stays"]);
    pairs(parts.facts, facts);
    links(parts.owner, owner ? [owner] : [], (one) => `${one.kind} ${fullName(one)} – ${STATE_WORD[one.stateName]}, ${ofSlack(one.slack)}`, this.workload, "not known");
    this.story(parts.story);
  }

  async story(box) {
    const { shown, model } = this;
    const at = model.head.span ? model.at : Math.floor(performance.now() / 2000);
    if (this.asked === at) return;
    this.asked = at;
    let found;
    try {
      const query = { namespace: shown.namespace, name: shown.name };
      if (model.head.span) query.at = model.at;
      found = await askJson("explain", query);
    } catch (error) {
      found = { text: error.message };
    }
    if (this.shown !== shown) return;
    if (found.told) this.tell(box, found.told.reverse(), "nothing yet");
    else box.textContent = found.text;
  }

  // What happened, the latest first: a line each, with a link to the workload for whose sake it was.
  tell(box, told, none) {
    const { model } = this;
    box.className = "story";
    const key = JSON.stringify(told);
    if (box.dataset.key === key) return;
    box.dataset.key = key;
    box.replaceChildren(...told.slice(0, MOST_LINKS).map(([at, text, by]) => {
      const line = element("p", "", `${clockText(at, model.head.clock)}  ${text}`);
      const whose = model.workloads.get(by);
      if (whose) line.append(", for ", link(this.naming(whose), () => this.workload(whose)));
      return line;
    }));
    if (!told.length) box.textContent = none;
    if (told.length > MOST_LINKS) box.append(element("p", "muted", `and ${count(told.length - MOST_LINKS)} more before`));
  }

  naming = (one) => `${isolated(fullName(one))} (${this.model.classes.get(one.cls)?.name || "no class"})`;

  draw_node() {
    const { model } = this;
    const node = model.nodes.get(this.shown.number);
    if (!node) {
      this.gone();
      return;
    }
    const parts = this.frame(`Node ${isolated(node.name)}`, "facts", "pods");
    pairs(parts.facts, [
      ["taken", node.used === null ? "not known" : percent(node.used)], ["takes pods", node.up ? "yes" : "no"],
      ["pods of others", count(node.others)],
    ]);
    const slack = (pod) => model.workloads.get(pod.workload)?.slack ?? Infinity;
    const pods = [...(model.podsOfNode.get(node.number) || [])].map((number) => model.pods.get(number)).sort((a, b) => slack(b) - slack(a));
    links(parts.pods, pods, (pod) => {
      const owner = model.workloads.get(pod.workload);
      const goes = model.asks ? (model.free.has(pod.number) ? ", could make room" : ", stays") : "";
      return `${fullName(pod)} – ${owner ? `${model.classes.get(owner.cls)?.name}, ${ofSlack(owner.slack)}` : "no class"}${goes}`;
    }, this.pod, "no pods of this scheduler");
  }

  where(pod) {
    const { model } = this;
    const state = model.head.pod_states[pod.state];
    const node = pod.node >= 0 ? ` on ${model.nodes.get(pod.node)?.name}` : "";
    const since = pod.since === null ? "" : ` since ${clockText(pod.since, model.head.clock)}`;
    return `${state}${node}${since}`;
  }

  gone() {
    const parts = this.frame(this.head.textContent || "Gone", "facts");
    pairs(parts.facts, [["now", "deleted"]]);
  }
}

const HEADS = { chart: "Slack over time", happened: "History, the latest first", pods: "Pods", story: "History, the latest first", owner: "Workload" };

function pairs(box, list) {
  const made = element("dl", "pairs");
  for (const [name, value] of list) made.append(element("dt", "", name), element("dd", "", "", value));
  const key = made.textContent;
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  box.replaceChildren(made);
}

function links(box, items, text, open, none) {
  const words = items.slice(0, MOST_LINKS).map(text);
  const key = words.join("\n");
  if (box.dataset.key === key && key) return;
  box.dataset.key = key;
  const made = element("div", "links");
  words.forEach((line, place) => {
    made.append(link(line, () => open(items[place])));
  });
  if (!items.length) made.append(element("p", "muted", none));
  if (items.length > MOST_LINKS) made.append(element("p", "muted", `and ${count(items.length - MOST_LINKS)} more`));
  box.replaceChildren(made);
}

function link(text, open) {
  const button = element("button", "link", text);
  button.type = "button";
  button.addEventListener("click", open);
  return button;
}
