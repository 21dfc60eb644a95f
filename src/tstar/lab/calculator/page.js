"use strict";
// From what is typed to what is shown. Every text goes in as text, never as HTML.

const known = JSON.parse(document.getElementById("facts").textContent);
const by = (id) => document.getElementById(id);
const make = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
const NAMES = { base: "variant base", csg: "variant csg", cn: "variant cn", csgcn: "variant csg + cn", law: "for your training" };
const AXIS = [0.1, 512];
const TRAINING = ["lr", "steps", "momentum", "batch"];
let picked = null; // the variant that the reader chose, if any
let drawn = null;

function fillLists() {
  for (const group of known.models) {
    const box = make("optgroup", { label: group.library });
    for (const model of group.models) {
      box.append(make("option", { value: `${group.library}/${model.name}`, "data-features": model.features }, `${model.label}  (M = ${model.features})`));
    }
    by("model").append(box);
  }
  const box = make("optgroup", { label: "of the paper" });
  for (const task of known.tasks) {
    const mark = task.printed ? "" : ", csg measured by us";
    const name = task.key.startsWith("CIFAR100-") ? `${task.name}, csg ${task.key.split("-")[1]}` : task.name;
    box.append(make("option", { value: task.key }, `${name}  (K = ${task.classes}${mark})`));
  }
  by("task").append(box);
}

/** The four fields, their errors shown beside them. */
function readInputs() {
  const fields = {
    num_features: ["features", "M", { whole: true, least: 1 }],
    num_classes: ["classes", "K", { whole: true, least: 2 }],
    csg: ["csg", "csg", { least: 0 }],
    base: ["base", "The base width", { whole: true, least: 1 }],
    lr: ["lr", "The learning rate", { above: 0 }],
    steps: ["steps", "The number of steps", { whole: true, least: 1 }],
    momentum: ["momentum", "The momentum", { least: 0, below: 1 }],
    batch: ["batch", "The batch size", { whole: true, least: 1 }],
  };
  const facts = { valid: true };
  for (const [name, [id, label, rule]] of Object.entries(fields)) {
    const { value, error } = readNumber(by(id).value, label, rule);
    facts[name] = value;
    const missing = name === "num_features" && value === null && !error;
    showError(id, missing ? "Type M, or pick a model." : error);
    if (missing || error) facts.valid = false;
  }
  return facts;
}

const FAMILIES = { sgd: "sgd", adamw: "adam", lion: "other" };

/** How one trains, as far as it is given. */
function readTraining({ lr, steps, momentum, batch }) {
  const family = FAMILIES[by("optimizer").value] ?? null;
  return { family, lr, steps, momentum, batch, scenario: by("scenario").value || null };
}

/** Where the training is whole and the classes are not given, say so: the law needs K. */
function showMissing(training, { num_classes: K }) {
  by("training-missing").textContent = isMeasured(training) && K === null ? "For a T that fits your training, give K too." : "";
}

function showError(id, text) {
  by(`${id}-error`).textContent = text;
  by(id).toggleAttribute("aria-invalid", text !== "");
  if (text) by(id).setAttribute("aria-invalid", "true");
}

function showAnswer(result) {
  const headline = by("headline");
  headline.dataset.temperature = result.temperature;
  headline.dataset.variant = result.name;
  headline.replaceChildren("Train at ", make("strong", {}, `T = ${general(result.temperature, 4)}`), " with a BatchNorm before the output layer ",
    make("span", { class: "tag" }, NAMES[result.name]));
  by("reason").textContent = result.reads ? `${result.reason} ${result.reads}` : result.reason;
  by("notices").replaceChildren(...result.notes.map((note) => make("li", {}, note)));
  const table = make("table", { class: "terms" });
  for (const term of result.terms) {
    table.append(make("tr", {}, make("td", {}, term.expression), make("td", { class: "n" }, signed(term.value))));
  }
  if (result.terms.length) table.append(make("tr", { class: "sum" }, make("td", {}, "sum"), make("td", { class: "n" }, signed(result.unclipped))));
  by("terms").replaceChildren(...(result.terms.length ? [table] : []));
  by("flags").replaceChildren(...result.flags.map((flag) => make("li", { class: "extrapolation" }, flag)));
}

function showVariants(facts, name) {
  const focused = document.activeElement && document.activeElement.name === "variant" ? document.activeElement.value : null;
  const rows = Object.entries(known.sets).map(([key, set]) => {
    const result = explainSet(set, facts);
    const radio = make("input", { type: "radio", name: "variant", value: key, id: `variant-${key}` });
    radio.checked = key === name;
    radio.disabled = result === null;
    const label = make("label", { for: radio.id }, radio, NAMES[key].replace("variant ", ""));
    const parts = result ? result.terms.map((term) => signed(term.value)).join(" ") : `needs ${lacking(set, facts).join(" and ")}`;
    const worst = result && result.flags.length ? "extrapolation" : "";
    const row = make("tr", { "data-variant": key, "data-temperature": result ? result.temperature : "" },
      make("td", {}, label), make("td", { class: "n" }, result ? result.temperature.toFixed(2) : "–"),
      make("td", { class: "parts" }, parts, worst ? make("span", { class: "tag warn" }, worst) : ""));
    return row;
  });
  by("variants").tBodies[0].replaceChildren(...rows);
  if (focused) by(`variant-${focused}`).focus();
}

function showRules(facts, advised) {
  const place = (t) => Math.min(100, Math.max(0, (100 * Math.log(t / AXIS[0])) / Math.log(AXIS[1] / AXIS[0])));
  const rows = [{ name: "advice", label: "for what you gave" }, ...known.rules].map(({ name, label }) => {
    const { temperature, reason } = name === "advice" ? advised : applyRule(known, name, facts, facts.base);
    const has = temperature !== undefined;
    const axis = has
      ? make("span", { class: "track" }, make("span", { class: name === "advice" || name.startsWith("ours-") ? "pin ours" : "pin", style: `left:${place(temperature).toFixed(2)}%` }))
      : make("span", { class: "small" }, reason);
    return make("tr", { "data-rule": name, "data-temperature": has ? temperature : "" },
      make("td", {}, label), make("td", { class: "n" }, has ? temperature.toFixed(2) : "–"), make("td", { class: "axis" }, axis));
  });
  by("rules").tBodies[0].replaceChildren(...rows);
}

function readoutAt(facts, training, M) {
  const values = drawn.lines.map((line) => `${line.label.split(",")[0]} ${general(heightAt(known, line.name, facts, training, M), 3)}`);
  by("readout").textContent = `At M = ${M}: ${values.join(" · ")}`;
}

function blank(facts) {
  const headline = by("headline");
  delete headline.dataset.temperature;
  delete headline.dataset.variant;
  headline.textContent = facts.num_features === null ? "T needs M, the width of the output layer’s input." : "Correct the field marked in red.";
  for (const id of ["reason", "code", "readout", "training-missing"]) by(id).textContent = "";
  for (const id of ["terms", "flags", "notices", "chart", "legend"]) by(id).replaceChildren();
  for (const id of ["variants", "rules"]) by(id).tBodies[0].replaceChildren();
  drawn = null;
}

function update() {
  // An address that was just entered counts, though its event has not come yet: it must not be written over.
  if (written && location.hash !== written) { readAddress(); matchLists(); }
  const facts = readInputs();
  document.querySelector("main").classList.toggle("empty", !facts.valid);
  writeAddress();
  if (!facts.valid) { blank(facts); return; }
  const named = picked && lacking(known.sets[picked], facts).length === 0 ? picked : null;
  const training = readTraining(facts);
  const advised = decide(known, facts, training);
  const answer = named ? decide(known, facts, training, named) : advised;
  showMissing(training, facts);
  showAnswer(answer);
  by("code").textContent = codeFor(answer);
  showVariants(facts, answer.name);
  showRules(facts, advised);
  drawn = drawChart(by("chart"), known, facts, training, named ?? "advice", answer.temperature);
  drawLegend(by("legend"), drawn.lines);
  readoutAt(facts, training, facts.num_features);
  by("chart").onpointermove = (event) => {
    const M = Math.round(drawn.widthAt(event.clientX));
    if (M >= drawn.range[0] && M <= drawn.range[1]) readoutAt(facts, training, M);
  };
  by("chart").onpointerleave = () => readoutAt(facts, training, facts.num_features);
}

// The state lives in the address, so that a case can be shared: #features=512&classes=10&optimizer=sgd…
const FIELDS = ["features", "classes", "csg", "scenario", "optimizer", "lr", "steps", "momentum", "batch", "base"];
let written = "";

function writeAddress() {
  const state = new URLSearchParams();
  for (const id of FIELDS) if (by(id).value !== "") state.set(id, by(id).value);
  if (picked) state.set("variant", picked);
  history.replaceState(null, "", `#${state}`);
  written = location.hash;
}

function readAddress() {
  const state = new URLSearchParams(location.hash.slice(1));
  if (![...state.keys()].some((key) => FIELDS.includes(key))) return;
  for (const id of FIELDS) {
    const options = by(id).options && [...by(id).options].map((option) => option.value);
    const value = state.get(id) ?? "";
    by(id).value = options && !options.includes(value) ? "" : value;
  }
  const variant = state.get("variant");
  picked = Object.hasOwn(known.sets, variant) ? variant : null;
}

function matchLists() {
  const option = by("model").selectedOptions[0];
  if (option.value && option.dataset.features !== by("features").value.trim()) by("model").value = "";
  const task = known.tasks.find((entry) => entry.key === by("task").value);
  if (task && (String(task.classes) !== by("classes").value.trim() || String(task.csg) !== by("csg").value.trim())) by("task").value = "";
}

by("model").addEventListener("change", () => {
  const { features } = by("model").selectedOptions[0].dataset;
  if (features) by("features").value = features;
  else by("features").focus();
  update();
});
by("task").addEventListener("change", () => {
  const task = known.tasks.find((entry) => entry.key === by("task").value);
  if (task) { by("classes").value = task.classes; by("csg").value = task.csg; }
  update();
});
by("inputs").addEventListener("input", (event) => {
  if (TRAINING.includes(event.target.id)) picked = null;
  if (event.target.tagName === "INPUT") { matchLists(); update(); }
});
for (const id of ["scenario", "optimizer"]) by(id).addEventListener("change", () => { picked = null; update(); });
window.addEventListener("hashchange", () => { if (location.hash !== written) update(); });
by("inputs").addEventListener("submit", (event) => event.preventDefault());
by("variants").addEventListener("change", (event) => { picked = event.target.value; update(); });
by("copy").addEventListener("click", async () => {
  const text = by("code").textContent;
  try { await navigator.clipboard.writeText(text); } catch {
    const area = make("textarea", { class: "unseen" }, text); // without a secure context
    document.body.append(area); area.select(); document.execCommand("copy"); area.remove();
  }
  by("copy").textContent = "Copied";
  setTimeout(() => { by("copy").textContent = "Copy"; }, 1500);
});
let before = 0;
new ResizeObserver(([entry]) => {
  if (Math.abs(entry.contentRect.width - before) > 1) { before = entry.contentRect.width; update(); }
}).observe(by("chart"));

fillLists();
by("source").textContent = known.sets.base.provenance.source;
by("model").value = "torchvision/resnet50";
readAddress();
matchLists();
update();
