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
const NAMES = { base: "variant base", csg: "variant csg", cn: "variant cn", csgcn: "variant csg + cn", budget: "for your training" };
const AXIS = [0.1, 512];
const AWARE = "The paper’s T* (cn), no hotter than your optimiser, learning rate and steps allow, as measured on our "
  + "atlas of training runs; csg is no part of it.";
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
  };
  const facts = {};
  for (const [name, [id, label, rule]] of Object.entries(fields)) {
    const { value, error } = readNumber(by(id).value, label, rule);
    facts[name] = value;
    const missing = name === "num_features" && value === null && !error;
    showError(id, missing ? "Type M, or pick a model." : error);
  }
  return facts;
}

/** Optimiser, learning rate and steps; the family decides which bound holds. */
function readTraining(facts) {
  const name = by("optimizer").value;
  return { name, family: name === "sgd" ? "sgd" : name ? "adam" : null, lr: facts.lr, steps: facts.steps };
}

/** Of the training either nothing counts or all of it: say what is still missing. */
function showMissing({ family, lr, steps }, { num_classes: K }) {
  const given = [family, lr, steps].some((part) => part !== null);
  const missing = Object.entries({ "the optimiser": family, "the learning rate": lr, "the steps": steps, K })
    .filter(([, part]) => part === null).map(([word]) => word);
  by("training-missing").textContent = given && missing.length
    ? `For a T that fits your training, give ${missing.join(" and ")} too.` : "";
}

function showError(id, text) {
  by(`${id}-error`).textContent = text;
  by(id).toggleAttribute("aria-invalid", text !== "");
  if (text) by(id).setAttribute("aria-invalid", "true");
}

function showAnswer(name, reason, result) {
  const headline = by("headline");
  headline.dataset.temperature = result.temperature;
  headline.dataset.variant = name;
  headline.replaceChildren("Train at ", make("strong", {}, `T = ${general(result.temperature, 4)}`), ` `, make("span", { class: "tag" }, NAMES[name]));
  by("reason").textContent = reason;
  const table = make("table", { class: "terms" });
  for (const term of result.terms) {
    table.append(make("tr", {}, make("td", {}, term.expression), make("td", { class: "n" }, signed(term.value))));
  }
  const row = make("tr", { class: "sum" }, make("td", {}, "sum"), make("td", { class: "n" }, signed(result.unclipped)));
  table.append(row);
  by("terms").replaceChildren(table);
  const flags = result.flags.map((flag) => make("li", { class: flag.level }, make("b", {}, flag.level), `: ${flag.message}`));
  if (result.limit) {
    by("terms").append(make("p", { id: "limit", class: "small" }, `Your training allows ${result.limit}.`));
  }
  if (result.clipped) {
    const text = `: ${general(result.unclipped, 4)} was clipped to the ${result.clipped}, ${general(result.bound ?? result.temperature)}`;
    flags.unshift(make("li", { class: "extrapolation" }, make("b", {}, "clipped"), text));
  }
  by("flags").replaceChildren(...flags);
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
    const worst = result && (result.clipped ? "clipped" : result.flags.some((flag) => flag.level === "extrapolation") ? "extrapolation" : "");
    const row = make("tr", { "data-variant": key, "data-temperature": result ? result.temperature : "" },
      make("td", {}, label), make("td", { class: "n" }, result ? general(result.temperature, 4) : "–"),
      make("td", { class: "parts" }, parts, worst ? make("span", { class: "tag warn" }, worst) : ""));
    if (result) row.dataset.flags = JSON.stringify(result.flags.map((flag) => `${flag.level}: ${flag.message}`));
    return row;
  });
  by("variants").tBodies[0].replaceChildren(...rows);
  if (focused) by(`variant-${focused}`).focus();
}

function showRules(facts) {
  const place = (t) => Math.min(100, Math.max(0, (100 * Math.log(t / AXIS[0])) / Math.log(AXIS[1] / AXIS[0])));
  const rows = known.rules.map(({ name, label }) => {
    const { temperature, reason } = applyRule(known, name, facts, facts.base);
    const has = temperature !== undefined;
    const axis = has
      ? make("span", { class: "track" }, make("span", { class: name.startsWith("ours-") ? "pin ours" : "pin", style: `left:${place(temperature).toFixed(2)}%` }))
      : make("span", { class: "small" }, reason);
    return make("tr", { "data-rule": name, "data-temperature": has ? temperature : "" },
      make("td", {}, label), make("td", { class: "n" }, has ? general(temperature, 4) : "–"), make("td", { class: "axis" }, axis));
  });
  by("rules").tBodies[0].replaceChildren(...rows);
}

function readoutAt(facts, M) {
  const values = drawn.lines.map((line) => `${line.label.split(",")[0]} ${general(heightAt(known, line.name, facts, M), 3)}`);
  by("readout").textContent = `At M = ${M}: ${values.join(" · ")}`;
}

function update() {
  const facts = readInputs();
  const ready = facts.num_features !== null;
  document.querySelector("main").classList.toggle("empty", !ready);
  if (!ready) {
    const headline = by("headline");
    delete headline.dataset.temperature;
    headline.textContent = "T needs M, the width of the output layer’s input.";
    for (const id of ["reason", "code", "readout"]) by(id).textContent = "";
    for (const id of ["terms", "flags", "chart", "legend"]) by(id).replaceChildren();
    for (const id of ["variants", "rules"]) by(id).tBodies[0].replaceChildren();
    drawn = null;
    return;
  }
  const usable = picked && lacking(known.sets[picked], facts).length === 0;
  const training = readTraining(facts);
  const aware = usable ? null : explainAware(known.aware, known.sets.cn, facts, training);
  const advised = chooseVariant(known, facts, by("scenario").value);
  const name = usable ? picked : aware ? "budget" : advised.name;
  showMissing(training, facts);
  if (aware) {
    showAnswer(name, AWARE, aware);
    by("code").textContent = codeFor(known.aware, facts, training);
  } else {
    showAnswer(name, usable ? "The variant you chose." : advised.reason, explainSet(known.sets[name], facts));
    by("code").textContent = codeFor(known.sets[name], facts, null);
  }
  showVariants(facts, name);
  showRules(facts);
  drawn = drawChart(by("chart"), known, facts, name, Number(by("headline").dataset.temperature));
  drawLegend(by("legend"), drawn.lines);
  readoutAt(facts, facts.num_features);
  by("chart").onpointermove = (event) => {
    const M = Math.round(drawn.widthAt(event.clientX));
    if (M >= drawn.range[0] && M <= drawn.range[1]) readoutAt(facts, M);
  };
  by("chart").onpointerleave = () => readoutAt(facts, facts.num_features);
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
  if (event.target.id === "lr" || event.target.id === "steps") picked = null;
  if (event.target.tagName === "INPUT") { matchLists(); update(); }
});
by("scenario").addEventListener("change", update);
by("optimizer").addEventListener("change", () => { picked = null; update(); });
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
update();
