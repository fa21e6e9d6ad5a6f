// The page: connects to what it shows, and draws what has changed once a frame.

import { forget } from "./colours.js";
import { Detail } from "./detail.js";
import { clockText } from "./format.js";
import { DecisionList, WaitingList, WorkloadList } from "./lists.js";
import { Model } from "./model.js";
import { Nodes } from "./nodes.js";
import { Promises } from "./promises.js";
import { Slider } from "./slider.js";
import { askJson, connect, setToken } from "./source.js";

const $ = (id) => document.getElementById(id);
const FRAME = 8; // milliseconds of a frame in which views are taken in
const LISTS = 250; // milliseconds between two orderings of the lists
const SAMPLES = 40;

const model = new Model();
const queue = [];
let drawing = false;
let ordered = 0;
let dirty = false;

// -- slack over time: of a live source as seen since the page was opened, else asked for -----------------------------

const asked = new Map();
let askedAt = null;
let wanted = new Set();

function pastOf(one) {
  if (!model.head.span) return model.past(one);
  if (askedAt !== model.at) {
    asked.clear();
    askedAt = model.at;
  }
  if (!asked.has(one.number)) {
    if (!wanted.size) setTimeout(askPast, 60);
    wanted.add(one.number);
  }
  return asked.get(one.number) || [];
}

async function askPast() {
  const [numbers, at] = [[...wanted].slice(0, 60), model.at];
  wanted = new Set();
  if (model.head.span[0] === model.head.span[1]) return;
  const found = await askJson("history", { workloads: numbers.join(","), at, samples: SAMPLES });
  if (at !== model.at) return;
  for (const number of numbers) asked.set(number, found[number]?.points || []);
  workloads.list.again();
  detail.draw(true);
}

const detail = new Detail(model, pastOf);
const promises = new Promises(model);
const workloads = new WorkloadList(model, detail.workload, pastOf);
const waiting = new WaitingList(model, detail);
const nodes = new Nodes(model, detail.node);
const decisions = new DecisionList(model, detail.decision);
const slider = new Slider(model, (view) => take(view));

// -- drawing ---------------------------------------------------------------------------------------------------------

function take(view) {
  queue.push(view);
  soon();
}

function soon() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(frame);
}

function frame() {
  drawing = false;
  const began = performance.now();
  while (queue.length && performance.now() - began < FRAME) {
    model.apply(queue.shift());
    dirty = true;
  }
  if (queue.length) soon();
  else if (dirty) draw();
}

const typed = () => $("search").value.trim().toLowerCase();

// Tiles follow every change; lists are put in order a few times a second.
function draw(now = false) {
  if (!model.head) return;
  $("main").hidden = false;
  nodes.draw(typed());
  const passed = performance.now() - ordered;
  if (!now && passed < LISTS) {
    setTimeout(soon, LISTS - passed);
    return;
  }
  ordered = performance.now();
  dirty = false;
  const text = typed();
  promises.draw();
  workloads.draw(text);
  waiting.draw(text);
  decisions.draw(text);
  detail.draw();
  if (!model.head.span) $("status").textContent = `live, ${clockText(model.at, model.head.clock)} UTC`;
  Object.assign(document.documentElement.dataset, { at: model.at, pods: model.pods.size });
}

function headline() {
  const { head } = model;
  $("title").textContent = head.title;
  $("policy").textContent = `policy ${head.policy}`;
  const words = { simulation: "simulation", record: "recorded session" };
  if (head.span) $("status").textContent = words[head.source];
}

// -- where it comes from ---------------------------------------------------------------------------------------------

const told = {
  view(view) {
    const fresh = Boolean(view.head);
    take(view);
    if (fresh) {
      model.head = view.head;
      headline();
    }
  },
  state(word, text) {
    $("pulse").className = `pulse ${word}`;
    $("status").textContent = text;
  },
  timeline(view) {
    model.head = view.head;
    headline();
    $("pulse").className = "pulse";
    take(view);
    slider.begin(view.head);
  },
  refused(error) {
    $("gate").hidden = false;
    $("main").hidden = true;
    $("status").textContent = "not let in";
    $("pulse").className = "pulse lost";
    $("gate-said").textContent = `The scheduler tells this only to whom the API server knows and lets: ${error.message}.`;
    $("token").focus();
  },
};

$("gate-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken($("token").value.trim());
  $("token").value = "";
  $("gate").hidden = true;
  connect(told);
});

// -- tools and keys --------------------------------------------------------------------------------------------------

const dark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

function repaint() {
  forget();
  $("theme").textContent = dark() ? "Light" : "Dark";
  model.touched.all = true;
  slider.mark();
  draw(true);
}

// Paper is light, canvases on it, too.
let onScreen;
addEventListener("beforeprint", () => {
  onScreen = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  repaint();
});
addEventListener("afterprint", () => {
  if (onScreen) document.documentElement.dataset.theme = onScreen;
  else delete document.documentElement.dataset.theme;
  repaint();
});

function turn() {
  document.documentElement.dataset.theme = dark() ? "light" : "dark";
  try {
    localStorage.setItem("slacktide-theme", document.documentElement.dataset.theme);
  } catch { /* it is asked for again next time */ }
  repaint();
}

try {
  const kept = localStorage.getItem("slacktide-theme");
  if (kept) document.documentElement.dataset.theme = kept;
} catch { /* as the system has it */ }
$("theme").textContent = dark() ? "Light" : "Dark";
for (const asks of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) matchMedia(asks).addEventListener("change", repaint);
$("theme").addEventListener("click", turn);
$("help").addEventListener("click", () => $("keys").showModal());
$("keys-close").addEventListener("click", () => $("keys").close());
for (const id of ["show", "sort", "costly"]) $(id).addEventListener("change", () => draw(true));
$("search").addEventListener("input", () => draw(true));

const TABS = ["workloads", "waiting", "nodes", "decisions"];

function show(name, focus = false) {
  for (const one of TABS) {
    $(one).classList.toggle("shown", one === name);
    $(`tab-${one}`).setAttribute("aria-selected", String(one === name));
    $(`tab-${one}`).tabIndex = one === name ? 0 : -1;
  }
  draw(true);
  nodes.all();
  if (focus) $(name).querySelector("[tabindex='0']").focus();
}

TABS.forEach((name, place) => {
  $(`tab-${name}`).addEventListener("click", () => show(name));
  $(`tab-${name}`).addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = TABS[(place + step + TABS.length) % TABS.length];
    show(next);
    $(`tab-${next}`).focus();
  });
});

document.addEventListener("keydown", (event) => {
  const writing = event.target.closest?.("input:not([type=range]):not([type=radio]):not([type=checkbox]), select, textarea");
  if (event.key === "Escape" && event.target === $("search")) {
    $("search").value = "";
    $("search").blur();
    draw(true);
  }
  if (writing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const acts = {
    "/": () => $("search").focus(),
    "?": () => $("keys").showModal(),
    t: turn,
    1: () => show("workloads", true), 2: () => show("waiting", true), 3: () => show("nodes", true), 4: () => show("decisions", true),
  };
  if (event.key === " " && !event.target.closest?.("button, input")) acts[" "] = () => slider.toggle();
  if (event.key in acts) {
    acts[event.key]();
    event.preventDefault();
  }
});

globalThis.slacktide = model; // for who is curious, and for tests

setInterval(() => {
  if (model.head && !model.head.span && !document.hidden) {
    dirty = true;
    soon();
  }
}, 1000);

connect(told);
