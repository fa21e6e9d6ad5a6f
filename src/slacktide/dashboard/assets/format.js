// Numbers, times and names for people: what for_people.py is in Python.

export const STATE_CLASS = { Kept: "kept", AtRisk: "at-risk", Missed: "missed", Unknown: "unknown" };
export const STATE_WORD = { Kept: "kept", AtRisk: "at risk", Missed: "missed", Unknown: "nothing owed yet" };

const WHOLE = new Intl.NumberFormat("en");
const TENTHS = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
export const NO_BREAK = "\u00a0";
const NINES = [0.9999, 0.99999, 0.999999, 0.9999999];
const two = (value) => String(value).padStart(2, "0");

export const count = (value) => (value >= 1e7 ? `${TENTHS.format(value / 1e6)}${NO_BREAK}M` : WHOLE.format(value));

export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

// A share as per cent, cut and not rounded up, so that 100 % means all.
export function percent(value) {
  if (value === null || value === undefined) return "-";
  if (value > 0 && value < 0.0001) return `<${NO_BREAK}0.01${NO_BREAK}%`;
  const scale = 10 ** (2 + (value < 1 ? NINES.filter((one) => value >= one).length : 0));
  return `${Math.floor(100 * value * scale + 1e-7) / scale}${NO_BREAK}%`;
}

// Seconds as a length of time: 12.3s, 1h2m3s, from a day on 4d1h.
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "-";
  const size = Math.abs(seconds);
  const sign = seconds < 0 && size >= 0.05 ? "-" : "";
  if (size < 99.95) return `${sign}${(Math.floor(10 * size + 0.5) / 10).toFixed(1)}s`;
  const nearest = Math.floor(size + 0.5);
  const whole = nearest >= 86400 ? Math.floor(size / 3600 + 0.5) * 3600 : nearest;
  const parts = [[Math.floor(whole / 86400), "d"], [Math.floor(whole / 3600) % 24, "h"], [Math.floor(whole / 60) % 60, "m"], [whole % 60, "s"]];
  return sign + parts.map(([number, unit]) => (number ? `${number}${unit}` : "")).join("");
}

// What is left of a promise in a cell, and in a sentence: null where it cannot break.
export const slackText = (slack) => (slack === null ? "unlimited" : duration(slack));
export const ofSlack = (slack) => (slack === null ? "unlimited slack" : `${duration(slack)} of slack`);

// An instant: the time of day (UTC, as in what the scheduler says), or hours, minutes and seconds of a simulation.
export function clockText(at, clock) {
  const whole = Math.floor(clock === "epoch" ? at % 86400 : at);
  return [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60].map(two).join(":");
}

// Time lost and by whose doing, the most first.
export const lostTo = (whom, classes) => classes.get(whom)?.name || (whom === -1 ? "no place yet" : "failed hosts");
export const lostText = (lost, classes) => lost.map(([whom, seconds]) => `${duration(seconds)} ${
  whom === -1 ? "before the first place" : `to ${lostTo(whom, classes)}`}`).join(", ");

export const fullName = (one) => (one.namespace ? `${one.namespace}/${one.name}` : one.name);

// By name as people count: web-9 before web-10. The key is made once.
const keyOf = (one) => (one.key ??= (one.words ?? one.name.toLowerCase()).replace(/\d+/g, (digits) => digits.padStart(16, "0")));
export const byName = (a, b) => (keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : 0);

// A name within a sentence: one that is written in another direction turns nothing around it.
export const isolated = (name) => (/[^ -~]/.test(name) ? `\u2068${name}\u2069` : name);

// An element with a class, a text and children; nothing is ever parsed as HTML.
export function element(tag, className = "", text = "", ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== "") made.textContent = text;
  made.append(...children);
  return made;
}

export function stateMark(state) {
  const made = element("span", `dot ${STATE_CLASS[state]}`);
  made.setAttribute("aria-hidden", "true");
  return made;
}

export function classChip(name, ink) {
  const made = element("span", "chip", name);
  made.style.setProperty("--ink", ink);
  return made;
}
