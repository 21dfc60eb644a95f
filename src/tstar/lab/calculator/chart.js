"use strict";
// The curve over M: SVG drawn at the size it is shown at, so that text stays readable on a phone.

const SERIES = [
  { name: "advice", label: "for what you gave", color: "--ink", dash: "" },
  { name: "base", label: "base", color: "--c1", dash: "" },
  { name: "csg", label: "csg", color: "--c2", dash: "7 3" },
  { name: "cn", label: "cn", color: "--c3", dash: "2 3" },
  { name: "csgcn", label: "csg + cn", color: "--c4", dash: "9 3 2 3" },
  { name: "sqrt-m", label: "√M, for comparison", color: "--faint", dash: "1 4" },
];

const element = (name, attributes = {}, text = "") => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.textContent = text;
  return node;
};

/** T of one series at width M, or null where it lacks a fact. */
function heightAt(known, name, facts, training, M) {
  const there = { ...facts, num_features: M };
  if (name === "sqrt-m") return Math.sqrt(M);
  if (name === "advice") return decide(known, there, training).temperature;
  const result = explainSet(known.sets[name], there);
  return result && result.temperature;
}

function niceStep(top) {
  const raw = top / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 2.5, 5, 10].map((n) => n * power).find((step) => step >= raw);
}

/** Draw the curves into ``box``; returns a function from an x on the page to M. */
function drawChart(box, known, facts, training, chosen, chosenT) {
  const width = Math.max(280, box.clientWidth);
  const height = Math.round(Math.min(340, Math.max(230, width * 0.5)));
  const M = facts.num_features;
  const first = Math.min(16, 2 ** Math.floor(Math.log2(M)));
  const last = Math.max(8192, 2 ** Math.ceil(Math.log2(M)));
  const widths = Array.from({ length: 161 }, (_, i) => first * (last / first) ** (i / 160));
  const lines = SERIES.map((series) => ({ ...series, heights: widths.map((m) => heightAt(known, series.name, facts, training, m)) }))
    .filter((series) => series.heights[0] !== null);
  const peak = Math.max(...lines.flatMap((line) => line.heights)) * 1.05;
  const step = niceStep(peak);
  // Room for the longest numbers on both axes.
  const people = (value) => value.toLocaleString("en-US");
  const letter = 7.5, longest = letter * people(last).length;
  const left = 12 + letter * Math.max(...[step, Math.floor(peak / step) * step].map((t) => people(t).length));
  const right = Math.max(18, longest / 2), top = 22, bottom = 38;
  const x = (m) => left + ((Math.log2(m) - Math.log2(first)) / (Math.log2(last) - Math.log2(first))) * (width - left - right);
  const inverse = (px) => 2 ** (Math.log2(first) + ((px - left) / (width - left - right)) * (Math.log2(last) - Math.log2(first)));
  const y = (t) => height - bottom - (t / peak) * (height - top - bottom);

  const svg = element("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `Temperature against width: at M = ${M} the variant ${chosen} gives ${general(chosenT, 4)}.`,
  });
  const { fitted, validated } = known.sets.base.provenance;
  for (const [scope, words, kind] of [[fitted, "fitted", "fitted"], [validated, "validated", "validated"]]) {
    const [low, high] = scope.num_features;
    svg.append(element("rect", { x: x(low), y: top, width: x(high) - x(low), height: height - top - bottom, class: `band ${kind}` }));
    svg.append(element("text", { x: (x(low) + x(high)) / 2, y: top - 7, class: "note", "text-anchor": "middle" }, words));
  }
  for (let t = 0; t <= peak; t += step) {
    svg.append(element("line", { x1: left, x2: width - right, y1: y(t), y2: y(t), class: "grid" }));
    svg.append(element("text", { x: left - 6, y: y(t) + 4, "text-anchor": "end" }, people(t)));
  }
  const every = Math.ceil(Math.log2(last / first) * (longest + 8) / (width - left - right));
  for (let power = Math.log2(first); power <= Math.log2(last); power += every) {
    svg.append(element("text", { x: x(2 ** power), y: height - bottom + 16, "text-anchor": "middle" }, people(2 ** power)));
  }
  svg.append(element("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, "M, the width of the output layer’s input"));
  svg.append(element("text", { x: 4, y: 12, class: "strong" }, "T"));
  for (const line of lines) {
    const path = line.heights.map((t, i) => `${i ? "L" : "M"}${x(widths[i]).toFixed(1)} ${y(t).toFixed(1)}`).join("");
    const style = `stroke: var(${line.color})${line.name === chosen ? "; stroke-width: 3.2" : ""}`;
    svg.append(element("path", { d: path, class: "curve", "stroke-dasharray": line.dash, style, "data-series": line.name }));
  }
  svg.append(element("line", { x1: x(M), x2: x(M), y1: top, y2: height - bottom, class: "here" }));
  svg.append(element("circle", { cx: x(M), cy: y(chosenT), r: 5.5, class: "dot" }));
  box.replaceChildren(svg);
  return { lines, widthAt: (clientX) => inverse(clientX - svg.getBoundingClientRect().left), range: [first, last] };
}

function drawLegend(box, lines) {
  box.replaceChildren(...lines.map((line) => {
    const item = document.createElement("span");
    const swatch = element("svg", { width: 30, height: 10, "aria-hidden": "true" });
    swatch.append(element("path", { d: "M1 5H29", class: "curve", "stroke-dasharray": line.dash, style: `stroke: var(${line.color})` }));
    item.append(swatch, line.label);
    return item;
  }));
}
