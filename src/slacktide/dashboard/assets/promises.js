// The answer first: how many promises are kept, by class, and what is left of each class's budget.

import { classVariable } from "./colours.js";
import { NO_BREAK, STATE_CLASS, STATE_WORD, count, element, lostText, percent, plural, stateMark } from "./format.js";

const SHOWN = ["Missed", "AtRisk", "Kept", "Unknown"]; // the worst first

export class Promises {
  constructor(model) {
    this.model = model;
    this.verdict = document.getElementById("verdict");
    this.facts = document.getElementById("facts");
    this.list = document.getElementById("classes");
    this.remarks = document.getElementById("remarks");
    this.cards = new Map();
    this.said = "";
  }

  draw() {
    const { model } = this;
    const sums = model.head.states.map((_, place) => [...model.classes.values()].reduce((sum, one) => sum + (one.counts[place] || 0), 0));
    const of = (state) => sums[model.head.states.indexOf(state)];
    this.speak(of);
    const classes = [...model.classes.values()].sort((a, b) => a.rank - b.rank || a.number - b.number);
    const wanted = classes.filter((one) => one.counts.some((value) => value) || classes.length <= 6);
    for (const [number, card] of this.cards) {
      if (!wanted.some((one) => one.number === number)) {
        card.box.remove();
        this.cards.delete(number);
      }
    }
    wanted.forEach((one, place) => {
      if (!this.cards.has(one.number)) this.cards.set(one.number, this.card());
      const { box } = this.cards.get(one.number);
      if (this.list.children[place] !== box) this.list.insertBefore(box, this.list.children[place] || null);
      this.fill(this.cards.get(one.number), one);
    });
    this.remark();
  }

  speak(of) {
    const { model } = this;
    const [kept, risk, missed] = [of("Kept"), of("AtRisk"), of("Missed")];
    const owed = kept + risk + missed;
    const parts = [];
    if (!owed) parts.push(["", "Nothing is owed to anybody yet"]);
    else if (!missed && !risk) parts.push(["good", owed === 1 ? "The one promise is kept" : `All ${count(owed)} promises are kept`]);
    else {
      parts.push(missed ? ["bad", `${count(missed)} of ${plural(owed, "promise")} missed`] : ["", `All ${count(owed)} promises are kept`]);
      if (risk) parts.push(["warn", `${count(risk)} at risk`]);
    }
    const text = parts.map((one) => one[1]).join(", ");
    if (text !== this.said) {
      this.said = text;
      this.verdict.replaceChildren(...parts.flatMap(([name, words], place) => [place ? ", " : "", element("span", name, words)]));
      document.title = `${text} – slacktide`;
    }
    const [running, waiting, preempted] = ["running", "waiting", "preempted"].map((key) => [...model.classes.values()].reduce((sum, one) => sum + one[key], 0));
    this.facts.textContent = `${plural(running, "pod")} run, ${count(waiting)} ${waiting === 1 ? "waits" : "wait"}, ${plural(model.nodes.size, "node")}; ${plural(preempted, "preemption")} so far`;
  }

  card() {
    const box = element("li", "card");
    const bar = element("div", "bar");
    bar.setAttribute("aria-hidden", "true");
    const parts = SHOWN.map((state) => element("i", `fill-${STATE_CLASS[state]}`));
    bar.append(...parts);
    const tallies = SHOWN.map((state) => element("span", "", "", stateMark(state), element("span")));
    const fill = element("i");
    const made = {
      box, parts, tallies, fill,
      name: element("strong"), promise: element("span", "muted"), left: element("span", "n"), waits: element("p", "muted"), lost: element("p", "ink-missed"),
    };
    const meter = element("div", "meter", "", fill);
    meter.setAttribute("aria-hidden", "true");
    box.append(
      element("div", "line", "", made.name, made.promise), bar, element("div", "tally", "", ...tallies),
      element("div", "budget", "", meter, made.left), made.waits, made.lost,
    );
    return made;
  }

  fill(card, one) {
    const { states } = this.model.head;
    const total = one.counts.reduce((sum, value) => sum + value, 0);
    card.box.style.setProperty("--ink", classVariable(this.model.place(one.number)));
    card.name.textContent = one.name;
    card.promise.textContent = `promised ${percent(one.promised)}`;
    SHOWN.forEach((state, place) => {
      const value = one.counts[states.indexOf(state)] || 0;
      card.parts[place].style.flex = `${value} 0 ${value ? "3px" : "0"}`;
      card.tallies[place].lastChild.textContent = `${count(value)} ${STATE_WORD[state]}`;
      card.tallies[place].classList.toggle("zero", !value);
      card.tallies[place].hidden = state === "Unknown" && !value;
    });
    const known = one.left !== null && total > 0;
    const left = known ? Math.max(0, Math.min(1, one.left)) : 0;
    const overdrawn = known && one.left < 0;
    card.fill.style.width = `${overdrawn ? 100 : left * 100}%`;
    card.fill.className = left > 0.5 ? "fill-kept" : left > 0.1 ? "fill-at-risk" : "fill-missed";
    card.left.classList.toggle("ink-missed", overdrawn);
    card.left.textContent = known ? budget(one) : "no budget used yet";
    const said = [];
    if (one.waiting) said.push(`${plural(one.waiting, "pod")} ${one.waiting === 1 ? "waits" : "wait"}`);
    if (one.preempted) said.push(`disrupted ${plural(one.preempted, "time")}`);
    card.waits.textContent = said.join(", ") || "nobody waits";
    card.lost.textContent = one.lost.length ? `those who missed lost ${lostText(one.lost, this.model.classes)}` : "";
  }

  remark() {
    const { model } = this;
    const hidden = model.hidden ? [`${plural(model.hidden, "workload")} more are counted above and not listed: those that stand worst are.`] : [];
    const said = [...model.sentences.map((text) => ["remark alarm", text]), ...[...(model.head.remarks || []), ...hidden].map((text) => ["remark", text])];
    const key = JSON.stringify(said);
    if (key === this.remarked) return;
    this.remarked = key;
    this.remarks.replaceChildren(...said.map(([name, text]) => element("p", name, text)));
  }
}

function budget(one) {
  if (one.promised >= 1) return one.left >= 1 ? "nothing lost" : "no loss allowed, and some lost";
  if (one.left >= 0) return `${percent(one.left)} of the budget left`;
  const used = 1 - one.left;
  return used < 1.995 ? `budget overdrawn by ${Math.round((used - 1) * 100)}${NO_BREAK}%` : `${count(Math.round(used))} times the budget lost`;
}
