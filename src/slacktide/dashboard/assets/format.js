// Numbers, times and names for people.

export const STATE_CLASS = { Kept: "kept", AtRisk: "at-risk", Missed: "missed", Unknown: "unknown" };
export const STATE_WORD = { Kept: "kept", AtRisk: "at risk", Missed: "missed", Unknown: "nothing owed yet" };

const WHOLE = new Intl.NumberFormat("en");

export const count = (value) => WHOLE.format(value);

export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

// A share as per cent; as many digits as tell it from 1, so that 0.99995 is not "100 %".
export function share(value) {
  if (value === null || value === undefined) return "–";
  const percent = value * 100;
  for (let digits = percent > 90 ? 2 : 1; digits < 6; digits += 1) {
    const text = percent.toFixed(digits);
    if (value >= 1 || Number(text) < 100) return `${trimmed(text)} %`;
  }
  return "> 99.99999 %";
}

const trimmed = (text) => (text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text);

// Seconds as a duration: 26.1 s, 4.2 min, 1.5 h, 3.1 d.
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const size = Math.abs(seconds);
  const sign = seconds < 0 ? "−" : "";
  if (size < 99.95) return `${sign}${size < 9.95 ? size.toFixed(1) : Math.round(size)} s`;
  for (const [unit, length, limit] of [["min", 60, 99.95 * 60], ["h", 3600, 48 * 3600], ["d", 86400, Infinity]]) {
    if (size < limit) return `${sign}${(size / length).toFixed(size / length < 9.95 ? 1 : 0)} ${unit}`;
  }
  return "";
}

// What is left of a promise: no limit where it cannot break.
export const slackText = (slack) => (slack === null ? "no limit" : duration(slack));

// An instant: the local time of day, or seconds of a simulation as h:mm:ss.
export function clockText(at, clock) {
  if (clock === "epoch") {
    const time = new Date(at * 1000);
    return [time.getHours(), time.getMinutes(), time.getSeconds()].map((one) => String(one).padStart(2, "0")).join(":");
  }
  const whole = Math.floor(at);
  const parts = [Math.floor(whole / 60) % 60, whole % 60].map((one) => String(one).padStart(2, "0"));
  return [Math.floor(whole / 3600), ...parts].join(":");
}

export const fullName = (one) => (one.namespace ? `${one.namespace}/${one.name}` : one.name);

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
