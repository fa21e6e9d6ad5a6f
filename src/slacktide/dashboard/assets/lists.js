// The lists: workloads with their slack, who waits and why, and what was decided at whose cost.

import { classVariable } from "./colours.js";
import { spark } from "./chart.js";
import { STATE_CLASS, STATE_WORD, byName, classChip, clockText, count, duration, element, fullName, isolated, lostText, lostTo, ofSlack, percent, plural, slackText, stateMark } from "./format.js";
import { VirtualList } from "./vlist.js";

const URGENCY = { Missed: 0, AtRisk: 1, Kept: 2, Unknown: 3 };
const slackOf = (one) => (one.slack === null ? Infinity : one.slack);
// Of equal ones who came first is first: a key of each name, as that order needs it, takes time.
const ORDERS = {
  urgent: (a, b) => Number(a.over) - Number(b.over) || URGENCY[a.stateName] - URGENCY[b.stateName] || Number(!a.waiting) - Number(!b.waiting) || slackOf(a) - slackOf(b) || a.number - b.number,
  slack: (a, b) => Number(a.over) - Number(b.over) || slackOf(a) - slackOf(b) || a.number - b.number,
  delivered: (a, b) => (a.delivered ?? 2) - (b.delivered ?? 2) || a.number - b.number,
  preempted: (a, b) => b.preempted - a.preempted || a.number - b.number,
  name: byName,
};

const put = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

export class WorkloadList {
  constructor(model, open, pastOf) {
    Object.assign(this, { model, pastOf });
    this.panel = document.getElementById("workloads");
    this.show = document.getElementById("show");
    this.sort = document.getElementById("sort");
    this.count = document.getElementById("count-workloads");
    this.wide = 0;
    const column = document.querySelector(".columns>:nth-child(7)");
    new ResizeObserver(() => {
      this.wide = column.clientWidth;
      this.list.again();
    }).observe(column);
    this.list = new VirtualList(document.getElementById("list-workloads"), 38, {
      make, fill: (row, one) => this.fill(row, one), keyOf: (one) => one.number, open,
      label: (one) => this.spoken(one), empty: () => (this.text ? noMatch(this.text) : "No workload here. Try another filter."),
    });

    function make() {
      const row = element("div", "workload-row");
      const state = element("span", "state");
      row.append(element("bdi"));
      for (let i = 1; i < 9; i += 1) row.append(element("span", i === 2 || i === 3 || i === 4 || i === 6 || i === 7 ? "n" : ""));
      row.prepend(state);
      row.children[6].append(document.createElement("canvas"));
      return row;
    }
  }

  spoken(one) {
    const parts = [fullName(one), `class ${this.model.classes.get(one.cls)?.name || "none"}`];
    if (one.promised !== null) parts.push(`promised ${percent(one.promised)}`);
    parts.push(`delivered ${one.delivered === null ? "not known" : percent(one.delivered)}`, STATE_WORD[one.stateName]);
    if (one.given_up) parts.push("given up by the plan");
    parts.push(one.over ? "ended" : ofSlack(one.slack).replace("-", "minus "));
    if (one.lost.length) parts.push(`lost ${lostText(one.lost, this.model.classes)}`);
    return parts.join(", ");
  }

  draw(text) {
    const { model } = this;
    this.text = text;
    const wanted = this.show.value;
    this.panel.classList.toggle("lost", [...model.classes.values()].some((one) => one.lost.length));
    if (this.workloadSet !== model.workloadSet) {
      this.workloadSet = model.workloadSet;
      this.ordered = [...model.workloads.values()];
    }
    this.ordered.sort(ORDERS[this.sort.value]); // what is nearly in order, as a moment ago, takes a tenth of the time
    const found = this.ordered.filter((one) => (!text || one.words.includes(text))
      && (wanted === "worst" ? one.stateName !== "Kept" && one.stateName !== "Unknown" : wanted === "all" || one.stateName === wanted));
    this.count.textContent = found.length === model.workloads.size ? count(found.length) : `${count(found.length)} of ${count(model.workloads.size)}`;
    this.list.set(found);
  }

  fill(row, one) {
    const [state, name, cls, promised, delivered, slack, past, pods, disrupted, lost] = row.children;
    const word = one.given_up ? "given up" : STATE_WORD[one.stateName];
    if (state.dataset.state !== one.stateName || state.dataset.word !== word) {
      state.dataset.state = one.stateName;
      state.dataset.word = word;
      state.title = one.given_up ? `${STATE_WORD[one.stateName]}; given up by the plan, takes free room` : "";
      state.replaceChildren(stateMark(one.stateName), element("span", "", word));
    }
    put(name, fullName(one));
    name.title = `${one.kind} ${fullName(one)}${one.over ? ", ended" : ""}`;
    name.classList.toggle("over", one.over);
    chipOf(cls, this.model, one.cls);
    put(promised, one.promised === null ? "–" : percent(one.promised));
    put(delivered, percent(one.delivered));
    put(slack, one.over ? "ended" : slackText(one.slack));
    slack.classList.toggle("ink-missed", one.slack !== null && one.slack < 0 && !one.over);
    put(pods, one.over ? "" : `${count(one.running)}/${count(one.running + one.waiting)}`);
    pods.title = `${one.running} of ${one.running + one.waiting} are ready`;
    put(disrupted, one.preempted ? count(one.preempted) : "–");
    put(lost, one.lost.length ? `${lostTo(one.lost[0][0], this.model.classes)} ${duration(one.lost[0][1])}` : "");
    lost.title = lostText(one.lost, this.model.classes);
    if (this.wide) spark(past.firstChild, this.pastOf(one), this.wide, 24);
  }
}

// Pods that wait, those of one workload in one row: that with the longest wait says why.
export class WaitingList {
  constructor(model, { workload, pod }) {
    this.model = model;
    this.count = document.getElementById("count-waiting");
    this.list = new VirtualList(document.getElementById("list-waiting"), 94, {
      make: () => two("why"), fill: (row, one) => this.fill(row, one), keyOf: (one) => one.key,
      open: (one) => (one.owner ? workload(one.owner) : pod(one.pod)),
      label: (one) => `${this.title(one)}: ${one.pod.reason || "waits"}`, empty: () => (this.text ? noMatch(this.text) : "No pending pods."),
    });
  }

  title = (one) => (one.owner && one.many > 1 ? `${fullName(one.owner)}, ${one.many} pods` : fullName(one.pod));

  draw(text) {
    const { model } = this;
    this.text = text;
    const groups = new Map();
    let many = 0;
    for (const pod of model.waiting.values()) {
      const owner = model.workloads.get(pod.workload) || null;
      if (text && !pod.words.includes(text) && !owner?.words.includes(text)) continue;
      many += 1;
      const key = owner ? owner.number : `pod ${pod.number}`;
      const known = groups.get(key);
      if (!known) groups.set(key, { key, owner, pod, many: 1 });
      else {
        known.many += 1;
        const longer = (pod.since ?? Infinity) < (known.pod.since ?? Infinity);
        if (Number(Boolean(pod.reason)) - Number(Boolean(known.pod.reason)) > 0 || (longer && (pod.reason || !known.pod.reason))) known.pod = pod;
      }
    }
    const found = [...groups.values()];
    const urgency = (one) => (one.owner ? slackOf(one.owner) : -Infinity); // who has no promise is told what is wrong first
    found.sort((a, b) => urgency(a) - urgency(b) || (a.pod.since ?? 0) - (b.pod.since ?? 0) || byName(a.pod, b.pod));
    this.count.textContent = many === found.length ? plural(many, "pod") : `${plural(many, "pod")} of ${plural(found.length, "workload")}`;
    this.list.set(found);
  }

  fill(row, one) {
    const { model } = this;
    const { owner, pod } = one;
    const [mark, name, chip, right] = row.firstChild.children;
    mark.className = `dot ${owner ? STATE_CLASS[owner.stateName] : "unknown"}`;
    put(name, this.title(one));
    chipOf(chip, model, owner ? owner.cls : -1);
    const waited = pod.since === null ? "" : `waits ${duration(Math.max(0, model.at - pod.since))}`;
    put(right, owner && owner.slack !== null ? `slack ${slackText(owner.slack)}, ${waited}` : waited);
    put(row.children[1], pod.reason || (owner ? `a pod of ${owner.kind} ${isolated(fullName(owner))}` : ""));
    row.children[1].title = pod.reason;
  }
}

export class DecisionList {
  constructor(model, open) {
    this.model = model;
    this.costly = document.getElementById("costly");
    this.count = document.getElementById("count-decisions");
    this.list = new VirtualList(document.getElementById("list-decisions"), 56, {
      make: () => two(), fill: (row, one) => this.fill(row, one), keyOf: (one) => one.number, open,
      label: (one) => `${one.pod} placed on ${one.node}${one.victims.length ? `, preempting ${one.victims.length}` : ""}`,
      empty: () => (this.text ? noMatch(this.text) : this.costly.checked ? "Nobody made room." : "Nothing was decided yet."),
    });
  }

  draw(text) {
    const wanted = this.costly.checked;
    this.text = text;
    const found = this.model.decisions.filter((one) => (!wanted || one.victims.length)
      && (!text || `${one.pod} ${one.node} ${one.victims.map((victim) => victim.pod).join(" ")}`.toLowerCase().includes(text)));
    this.count.textContent = count(found.length);
    this.list.set(found);
  }

  fill(row, one) {
    const { model } = this;
    const [mark, name, chip, right] = row.firstChild.children;
    mark.className = "sr";
    put(name, one.pod);
    chipOf(chip, model, one.cls);
    put(right, `${clockText(one.at, model.head.clock)}  ${isolated(one.node)}`);
    const below = row.children[1];
    if (!one.victims.length) {
      below.classList.remove("cost");
      put(below, `the node had room; ${ofSlack(one.slack)}`);
      return;
    }
    const who = one.victims.slice(0, 3).map((victim) => `${isolated(victim.pod)} (${model.classes.get(victim.cls)?.name || "no class"}, ${slackText(victim.slack)})`);
    const more = one.victims.length > 3 ? ` and ${one.victims.length - 3} more` : "";
    put(below, `had ${ofSlack(one.slack)}; preempted: ${who.join(", ")}${more}`);
    below.title = below.textContent;
  }
}

const noMatch = (text) => `Nothing here matches “${text}”.`;

function two(below = "") {
  const top = element("div", "a", "", element("span", "dot"), element("bdi", "name"), element("span"), element("span", "right"));
  return element("div", "two", "", top, element("span", `b ${below}`.trim()));
}

function chipOf(box, model, cls) {
  const key = `${cls} ${model.place(cls)}`;
  if (box.dataset.cls === key) return;
  box.dataset.cls = key;
  const known = model.classes.get(cls);
  box.replaceChildren(...(known ? [classChip(known.name, classVariable(model.place(cls)))] : []));
}
