"use strict";
// Names come from data: they reach the page as text nodes only, never as markup.

// -- sorting the tables of the page ---------------------------------------------------------------
// Made once: localeCompare with options makes one for every comparison, seconds for 30,000 names.
const collator = new Intl.Collator("en", {numeric: true});
function compare(a, b) {
  // Missing values last, numbers by size, texts by the alphabet with numbers in them by size.
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return collator.compare(String(a), String(b));
}
function order(header) {
  const next = header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  for (const other of header.parentNode.children) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", next);
  return next === "ascending" ? 1 : -1;
}
function sortTable(table, header) {
  const index = header.cellIndex, sign = order(header);
  // What is shown is what is sorted by: numbers without their signs for "about" and "outside".
  const key = (row) => {
    const text = row.cells[index].textContent.trim(), number = Number(text.replace(/[~*,+]/g, ""));
    return text === "" || text === "–" ? null : Number.isNaN(number) ? text : number;
  };
  for (const body of table.tBodies) {
    const rows = [...body.rows];
    const keys = new Map(rows.map((row) => [row, key(row)]));
    rows.sort((r, s) => {
      const a = keys.get(r), b = keys.get(s);
      return a === null || b === null ? compare(a, b) : sign * compare(a, b);
    });
    body.append(...rows);
  }
}
for (const table of document.querySelectorAll("table.sortable"))
  for (const header of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    header.addEventListener("click", () => sortTable(table, header));
  }

// -- the runs: only the rows in sight exist ---------------------------------------------------------
async function unpack(id) {
  const text = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}
const HEIGHT = 30, SPARE = 8;
const grid = document.getElementById("grid"), body = grid.querySelector("tbody");
let columns = [], constant = {}, shown = new Uint32Array(0), count = 0, chosen = -1;
const value = (column, run) => column.levels ? column.levels[column.codes[run]] : column.values[run];
function format(number, digits) {
  // As people write it: 18,000 and 0.00003; the same digits in a column of measurements.
  if (number === null || number === "") return "–";
  if (typeof number !== "number") return number;
  if (digits !== undefined) return number.toFixed(digits);
  return number.toLocaleString("en-US", Number.isInteger(number) ? {} : {maximumSignificantDigits: 4});
}
function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, content] of Object.entries(attributes)) made.setAttribute(key, content);
  return made;
}
function space(rows) {
  const row = element("tr", undefined, {class: "space"});
  const cell = element("td", undefined, {colspan: columns.length});
  cell.style.height = rows * HEIGHT + "px";
  row.append(cell);
  return row;
}
function render() {
  const first = Math.max(0, Math.floor(grid.scrollTop / HEIGHT) - SPARE);
  const last = Math.min(shown.length, Math.ceil((grid.scrollTop + grid.clientHeight) / HEIGHT) + SPARE);
  const rows = [space(first)];
  for (let i = first; i < last; i++) {
    const run = shown[i], row = element("tr", undefined, {tabindex: "0", "data-run": run});
    if (run === chosen) row.className = "chosen";
    for (const column of columns)
      row.append(element("td", format(value(column, run), column.digits), column.levels ? {} : {class: "number"}));
    rows.push(row);
  }
  rows.push(space(shown.length - last));
  body.replaceChildren(...rows);
}
let waiting = false;
grid.addEventListener("scroll", () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; render(); });
}, {passive: true});
let current = null, direction = 1;
function sortRuns() {
  if (current !== null) {
    const column = current;
    // Texts are compared once a level, not once a run, and once a column, not at every filter.
    let keys = column.keys;
    if (keys === undefined && column.levels) {
      const rank = [...column.levels.keys()].sort((i, j) => compare(column.levels[i], column.levels[j]));
      const place = new Float64Array(rank.length);
      rank.forEach((level, i) => { place[level] = i; });
      keys = Float64Array.from(column.codes, (code) => place[code]);
    } else if (keys === undefined) keys = Float64Array.from(column.values, (v) => v === null ? NaN : v);
    column.keys = keys;
    shown.sort((r, s) => {
      const a = keys[r], b = keys[s];
      if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b) || r - s;
      return direction * (a - b) || r - s;
    });
  }
  render();
}
function matcher(word) {
  // column:value compares with one column; a bare word looks into all of them.
  const cut = word.indexOf(":");
  const label = cut > 0 ? word.slice(0, cut) : "";
  const named = columns.find((c) => c.label.toLowerCase() === label || c.name === label);
  if (named) {
    const wanted = word.slice(cut + 1);
    const same = (v) => typeof v === "number" && wanted !== "" && Number(wanted.replaceAll(",", "")) === v;
    return (run) => { const v = value(named, run); return same(v) || (named.levels && String(v).toLowerCase().includes(wanted)); };
  }
  const hits = columns.map((c) => c.levels && c.levels.map((level) => level.toLowerCase().includes(word)));
  const number = word.replaceAll(",", "");
  return (run) => columns.some((c, i) => hits[i] ? hits[i][c.codes[run]] : String(c.values[run]) === number);
}
function filterRuns(text) {
  // A column's visible name may have spaces: "data set:digits".
  let wanted = text.toLowerCase();
  for (const c of columns) if (/\s/.test(c.label)) wanted = wanted.replaceAll(c.label.toLowerCase() + ":", c.name + ":");
  const tests = wanted.split(/\s+/).filter(Boolean).map(matcher);
  const kept = [];
  for (let run = 0; run < count; run++) if (tests.every((test) => test(run))) kept.push(run);
  shown = Uint32Array.from(kept);
  document.getElementById("found").textContent = tests.length ? `${shown.length} of ${count}` : "";
  grid.scrollTop = 0;
  sortRuns();
}

// -- a run's learning curves ------------------------------------------------------------------------
let curves = null;
async function loadCurves() {
  return JSON.parse(new TextDecoder().decode(await unpack("curves-data")));
}
// Epochs and values of one curve, without what is missing.
const curveOf = ([epochs, values], scale) =>
  epochs.map((epoch, i) => [epoch, values[i] === null ? null : values[i] * scale]).filter(([, v]) => v !== null);
const svg = (name, attributes, text) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, content] of Object.entries(attributes)) made.setAttribute(key, content);
  if (text !== undefined) made.textContent = text;
  return made;
};
function ticks(low, high, most) {
  const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const found = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-9; t += step) found.push(Math.round(t / step) * step);
  return found;
}
function plot(title, lines) {
  const W = 440, H = 240, left = 46, right = 12, top = 26, bottom = 34;
  const picture = svg("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": title});
  const all = lines.flatMap((line) => line.points);
  let low = Math.min(...all.map((p) => p[1])), high = Math.max(...all.map((p) => p[1]));
  if (high - low < 1e-9) { low -= 0.5; high += 0.5; }
  const last = Math.max(2, ...all.map((p) => p[0]));
  const x = (e) => left + (e - 1) / (last - 1) * (W - left - right);
  const y = (v) => H - bottom - (v - low) / (high - low) * (H - top - bottom);
  for (const t of ticks(low, high, 5)) {
    picture.append(svg("line", {class: "axis", x1: left, x2: W - right, y1: y(t), y2: y(t)}));
    picture.append(svg("text", {x: left - 6, y: y(t) + 4, "text-anchor": "end"}, Number(t.toPrecision(6))));
  }
  for (const t of ticks(1, last, 6).filter((t) => Number.isInteger(t)))
    picture.append(svg("text", {x: x(t), y: H - bottom + 16, "text-anchor": "middle"}, t));
  picture.append(svg("text", {x: (left + W - right) / 2, y: H - 4, "text-anchor": "middle"}, "epoch"));
  picture.append(svg("text", {x: left, y: 13}, title));
  let offset = W - right;
  for (const line of [...lines].reverse()) {
    const part = line.kind.split("_")[0];
    if (line.points.length === 1) {
      const [e, v] = line.points[0];
      picture.append(svg("circle", {class: part, cx: x(e), cy: y(v), r: 3, fill: "none"}));
    } else picture.append(svg("polyline", {class: "line " + part, points: line.points.map((p) => `${x(p[0]).toFixed(1)},${y(p[1]).toFixed(1)}`).join(" ")}));
    picture.append(svg("text", {x: offset, y: 13, "text-anchor": "end"}, part));
    picture.append(svg("line", {class: "line " + part, x1: offset - part.length * 7 - 26, x2: offset - part.length * 7 - 6, y1: 9, y2: 9}));
    offset -= part.length * 7 + 38;
  }
  return picture;
}
async function show(run) {
  chosen = run;
  for (const row of body.rows) row.classList.toggle("chosen", row.dataset.run === String(run));
  const detail = document.getElementById("detail");
  curves = curves || await loadCurves();
  if (chosen !== run) return;
  const parts = [element("h3", "Run " + value(columns.find((c) => c.name === "key") || columns[0], run))];
  const plots = element("div", undefined, {class: "plots"}), mine = curves[run] || {};
  for (const [ending, title, scale] of [["_accuracy", "accuracy [%]", 100], ["_loss", "loss", 1]]) {
    const lines = Object.entries(mine).filter(([kind]) => kind.endsWith(ending))
      .map(([kind, curve]) => ({kind, points: curveOf(curve, scale)}))
      .filter((line) => line.points.length);
    if (lines.length) plots.append(plot(title, lines));
  }
  const thin = Object.values(mine).find(([epochs, , total]) => total > epochs.length);
  if (thin) plots.append(element("p", `Drawn from ${thin[0].length} of ${thin[2]} points, evenly spaced, to keep the page small.`, {class: "small"}));
  parts.push(plots.children.length ? plots : element("p", "No learning curves were stored for this run."));
  const list = element("dl");
  const known = columns.map((c) => [c.label, value(c, run), c.digits]).concat(Object.entries(constant));
  for (const [label, content, digits] of known) if (content !== null && content !== "") {
    const pair = element("div");
    pair.append(element("dt", label), element("dd", format(content, digits)));
    list.append(pair);
  }
  parts.push(list);
  detail.replaceChildren(...parts);
  detail.hidden = false;
  detail.scrollIntoView({block: "nearest"});
}
body.addEventListener("click", (event) => {
  const row = event.target.closest("tr[data-run]");
  if (row) show(Number(row.dataset.run));
});
body.addEventListener("keydown", (event) => {
  const row = event.target.closest("tr[data-run]");
  if (row && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); show(Number(row.dataset.run)); }
});
async function start() {
  let content;
  try {
    content = JSON.parse(new TextDecoder().decode(await unpack("runs-data")));
  } catch (error) {
    grid.replaceChildren(element("p", "This browser could not unpack the runs (it needs DecompressionStream): " + error));
    return;
  }
  ({count, columns, constant} = content);
  const row = grid.querySelector("thead tr");
  for (const column of columns) {
    const header = element("th", undefined, column.levels ? {scope: "col"} : {scope: "col", class: "number"});
    const button = element("button", column.label, {type: "button"});
    header.append(button);
    header.addEventListener("click", () => { direction = order(header); current = column; sortRuns(); });
    row.append(header);
  }
  let timer;
  document.getElementById("find").addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => filterRuns(event.target.value), 120);
  });
  filterRuns("");
  document.documentElement.dataset.ready = "yes";
}
addEventListener("resize", () => { if (columns.length) render(); });
start();
