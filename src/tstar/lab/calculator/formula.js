"use strict";
// The equation, the law and the rules, over the same coefficients as in Python. A test compares them with Python on a grid.

/** Python's format(x, ".<digits>g"). */
function general(x, digits = 6) {
  if (x === 0) return "0";
  const [mantissa, exponent] = x.toExponential(digits - 1).split("e");
  const power = Number(exponent);
  const trim = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (power >= -4 && power < digits) return trim(x.toFixed(Math.max(0, digits - 1 - power)));
  const sign = power < 0 ? "-" : "+";
  return `${trim(mantissa)}e${sign}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** Python's format(x, "+.4f"). */
const signed = (x) => (x < 0 ? "-" : "+") + Math.abs(x).toFixed(4);

/** What was typed, as {value, error}; an empty field has neither. */
function readNumber(text, name, { whole = false, least, above, below = Infinity }) {
  const typed = text.trim();
  if (typed === "") return { value: null, error: "" };
  const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(typed) ? Number(typed) : NaN;
  const wanted = above !== undefined ? `a number above ${above}`
    : whole ? `a whole number of at least ${least}` : `a number of at least ${least}${below < Infinity ? ` and below ${below}` : ""}`;
  const enough = (above !== undefined ? value > above : value >= least) && value < below;
  const fits = Number.isFinite(value) && enough && (!whole || Number.isInteger(value));
  return fits ? { value, error: "" } : { value: null, error: `${name} must be ${wanted}, got ${typed}.` };
}

/** Which facts a coefficient set needs and lacks. */
function lacking(set, facts) {
  const missing = [];
  if (set.delta !== undefined && facts.num_classes === null) missing.push("K");
  if (set.gamma !== undefined) {
    if (facts.csg === null) missing.push("csg");
    else if (facts.csg === 0) missing.push("csg > 0 (ln 0 does not exist)");
  }
  return missing;
}

/** α·√M, β, and where the set has them γ·ln csg and δ·ln K. */
function termsOf(set, facts) {
  const root = Math.sqrt(facts.num_features);
  const terms = [
    { expression: `α·sqrt(M) = ${general(set.alpha)}·${general(root, 4)}`, value: set.alpha * root },
    { expression: "β", value: set.beta },
  ];
  if (set.gamma !== undefined) {
    const { csg } = facts;
    terms.push({ expression: `γ·ln csg = ${general(set.gamma)}·ln ${general(csg)}`, value: set.gamma * Math.log(csg) });
  }
  if (set.delta !== undefined) {
    const K = facts.num_classes;
    terms.push({ expression: `δ·ln K = ${general(set.delta)}·ln ${general(K)}`, value: set.delta * Math.log(K) });
  }
  return terms;
}

const inside = (range, value) => range[0] <= value && value <= range[1];

/** What lies outside the range that the set was fitted on. */
function flagsOf(set, facts) {
  const used = { num_features: "M" };
  if (set.delta !== undefined) used.num_classes = "K";
  if (set.gamma !== undefined) used.csg = "csg";
  const { fitted, validated } = set.provenance;
  const known = (quantity) => [fitted, validated].map((scope) => scope[quantity]).filter(Boolean);
  return Object.entries(used)
    .filter(([quantity]) => known(quantity).length && !known(quantity).some((range) => inside(range, facts[quantity])))
    .map(([quantity, symbol]) => `${symbol} = ${general(facts[quantity])} is outside ${fitted[quantity].map((end) => general(end)).join("–")}, where the coefficients were fitted: the formula is extrapolating`);
}

/** T* under one set, with its terms; null if a fact is missing. */
function explainSet(set, facts) {
  if (lacking(set, facts).length) return null;
  const terms = termsOf(set, facts);
  const unclipped = terms.reduce((sum, term) => sum + term.value, 0);
  const temperature = Math.min(Math.max(unclipped, set.minimum), set.maximum);
  const flags = flagsOf(set, facts);
  if (unclipped !== temperature) flags.unshift(`${general(unclipped, 4)} was clipped to ${general(temperature)}`);
  return { temperature, unclipped, terms, flags };
}

const isMeasured = ({ family, lr, steps }) => ["sgd", "adam"].includes(family) && lr !== null && steps !== null;

/** T of the law for a training, and how it reads. */
function lawOf({ law, batch, momentum }, { num_features: M, num_classes: K }, training) {
  const { family, lr, steps, scenario } = training;
  if (family === "adam") {
    const where = scenario === "finetune" ? " in fine-tuning" : "";
    return { temperature: law.adam[scenario ?? "scratch"], reads: `the T of Adam and AdamW${where}` };
  }
  const B = training.batch ?? batch, rest = 1 - (training.momentum ?? momentum);
  const value = law.sgd * Math.sqrt(lr * M) * (steps / (K * B * rest)) ** law.power;
  const temperature = Math.min(Math.max(value, law.minimum), law.maximum);
  const numbers = `${general(law.sgd)}·sqrt(${general(lr)}·${general(M)})·(${general(steps)}/(${general(K)}·${general(B)}·${general(rest, 3)}))^${general(law.power)}`;
  const clipped = value === temperature ? "" : `, clipped to ${general(temperature)}`;
  return { temperature, reads: `c·sqrt(lr·M)·(steps/(K·B·(1 − μ)))^p = ${numbers} = ${general(value, 4)}${clipped}` };
}

/** The paper's formula with every term whose input is known. */
function chosenVariant({ num_classes: K, csg }) {
  return (csg === null ? "" : "csg") + (K === null ? "" : "cn") || "base";
}

/** T for what was given: a named variant, the law for a training, or the paper's variant for the task. */
function decide(known, facts, training, named = null) {
  if (!named && isMeasured(training) && facts.num_classes !== null) {
    const found = lawOf(known, facts, training);
    const notes = ["The law says which T suits this training, not whether it helps: tstar.recommend(model, data, …) looks your way of training up in the table of recipes."];
    if (training.family === "sgd" && training.batch === null) notes.push(`Batches of ${known.batch} are assumed; give yours.`);
    return { ...found, name: "law", terms: [], flags: [], notes, reason: "Optimizer, rate and steps set T." };
  }
  const name = named ?? chosenVariant(facts);
  const reason = named ? "You chose this variant." : "The paper's formula with every term that is known.";
  const notes = ["The paper fitted its coefficients with SGD at 0.1 over 200 epochs. Give optimizer, rate, steps and K for the T of your training."];
  if (training.family === "other") notes.unshift("T was not measured with this optimizer: keep the model as it is, or try T with tstar check.");
  return { ...explainSet(known.sets[name], facts), name, reason, notes };
}

/** T of a rule, or the reason why it has none. */
function applyRule(known, name, facts, baseFeatures) {
  const { num_features: M, num_classes: K } = facts;
  const fromScale = (scale) => ({ temperature: (known.rowNorm * Math.sqrt(M)) / scale });
  if (name.startsWith("ours-")) {
    const set = known.sets[name.slice("ours-".length)];
    const missing = lacking(set, facts);
    return missing.length ? { reason: `needs ${missing.join(" and ")}` } : explainSet(set, facts);
  }
  switch (name) {
    case "default": return { temperature: 1 };
    case "sqrt-m": return { temperature: Math.sqrt(M) };
    case "heated-up": return { temperature: Math.sqrt(M) / 16 };
    case "adacos-fixed":
      if (K === null) return { reason: "needs K" };
      return K < 3 ? { reason: "needs K ≥ 3: its scale is 0 at 2" } : fromScale(Math.SQRT2 * Math.log(K - 1));
    case "normface-bound":
      if (K === null) return { reason: "needs K" };
      return fromScale(((K - 1) / K) * Math.log(((K - 1) * 0.99) / (1 - 0.99)));
    case "mup-readout":
      return baseFeatures === null ? { reason: "needs a base width" } : { temperature: M / baseFeatures };
    default: throw new Error(`no algebra for the rule ${name}`);
  }
}

/** The two lines that put the answer into a model. */
const codeFor = ({ temperature }) => `import tstar\nmodel = tstar.temper(model, ${general(temperature)})`;
