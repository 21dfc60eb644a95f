"use strict";
// The algebra of tstar/formula.py, tstar/budget.py, tstar/rules.py and tstar/advice.py's choice of variant, over the same
// coefficients. A browser test compares every number and every message below with Python's.

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
function readNumber(text, name, { whole = false, least, above }) {
  const typed = text.trim();
  if (typed === "") return { value: null, error: "" };
  const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(typed) ? Number(typed) : NaN;
  const wanted = above !== undefined ? `a number above ${above}`
    : whole ? `a whole number of at least ${least}` : `a number of at least ${least}`;
  const enough = above !== undefined ? value > above : value >= least;
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
const span = (range) => range.map((bound) => general(bound)).join("–");

/** The quantities outside the range that the set was fitted on. */
function flagsOf(set, facts) {
  const symbols = { num_features: "M", num_classes: "K", csg: "csg" };
  const used = ["num_features"];
  if (set.delta !== undefined) used.push("num_classes");
  if (set.gamma !== undefined) used.push("csg");
  const { fitted, validated } = set.provenance;
  const flags = [];
  for (const quantity of used) {
    const value = facts[quantity];
    const where = fitted[quantity];
    if (!where || inside(where, value)) continue;
    const start = `${symbols[quantity]} = ${general(value)} is outside ${span(where)}`;
    const checked = validated[quantity];
    if (checked && inside(checked, value)) {
      flags.push({ level: "validated", message: `${start}, where the coefficients were fitted, but was validated` });
    } else {
      const also = checked ? ` and ${span(checked)} (validated)` : "";
      flags.push({ level: "extrapolation", message: `${start} (fitted)${also}: the formula is extrapolating` });
    }
  }
  return flags;
}

/** T* under one set, with its reasons; null where a fact is missing. */
function explainSet(set, facts) {
  if (lacking(set, facts).length) return null;
  const terms = termsOf(set, facts);
  const unclipped = terms.reduce((sum, term) => sum + term.value, 0);
  const temperature = Math.min(Math.max(unclipped, set.minimum), set.maximum);
  const clipped = unclipped < set.minimum ? "minimum" : unclipped > set.maximum ? "maximum" : null;
  return { temperature, unclipped, clipped, terms, flags: flagsOf(set, facts) };
}

/** The highest T that a training can learn at, and how it reads. */
function limitOf(budget, facts, { family, lr, steps }) {
  const { num_features: M, num_classes: K } = facts;
  const spent = lr * steps;
  if (family === "sgd") {
    const value = budget.sgd * Math.sqrt((spent * M) / K);
    return { value, reads: `c·sqrt(lr·steps·M/K) = ${general(budget.sgd)}·sqrt(${general(spent, 4)}·${general(M)}/${general(K)})` };
  }
  return { value: budget.adam * spent * M, reads: `a·lr·steps·M = ${general(budget.adam)}·${general(spent, 4)}·${general(M)}` };
}

/** A training shorter than any that was measured; for Adam a longer one too. */
function trainingFlags(budget, { family, lr, steps }) {
  const spent = lr * steps;
  const [low, high] = budget.fitted[family];
  const below = spent < low;
  if (!below && !(family === "adam" && spent > high)) return [];
  const message = `lr·steps = ${general(spent, 3)} is ${below ? "below" : "above"} ${span([low, high])}, where the budget `
    + "was measured: it is extrapolating";
  return [{ level: "extrapolation", message }];
}

/** As explainSet, but no hotter than the training can learn at; null where a fact is missing. */
function explainAware(set, paper, facts, training) {
  const plain = training.family && training.lr !== null && training.steps !== null ? explainSet(set, facts) : null;
  if (!plain) return null;
  const { value, reads } = limitOf(set.budget, facts, training);
  const bound = plain.temperature;
  const temperature = Math.max(Math.min(bound, value), Math.min(bound, set.budget.minimum));
  let limit = `at most ${reads} = ${general(value, 4)}`;
  if (value >= bound) limit += ": there is room for T*";
  else if (value < temperature) limit += `, and ${general(temperature)} is the lowest that is advised: it decides`;
  else limit += ", lower than T*: it decides";
  const flags = [...flagsOf(value < bound ? set : paper, facts), ...trainingFlags(set.budget, training)];
  return { ...plain, bound, temperature, limit, flags };
}

/** Which variant to use and why, as tstar.recommend chooses. */
function chooseVariant(known, facts, scenario) {
  const { csg, num_classes: K } = facts;
  if (K === null) {
    const name = csg ? "csg" : "base";
    return { name, reason: "Without the number of classes this is all that the formula can use." };
  }
  if (csg === null) {
    const alone = known.evidence.without_csg[scenario];
    return { name: alone.variant, reason: `csg is not known. ${alone.evidence}` };
  }
  const { fitted, validated } = known.sets.csgcn.provenance;
  const low = Math.min(fitted.csg[0], validated.csg[0]);
  const high = Math.max(fitted.csg[1], validated.csg[1]);
  if (!inside([low, high], csg)) {
    const range = `${general(low)}–${general(high)}`;
    const reason = `csg = ${general(csg, 3)} is outside the paper's ${range}, where its terms would be extrapolation: `
      + "the class count alone corrects the temperature.";
    return { name: "cn", reason };
  }
  const best = known.evidence[scenario];
  return { name: best.variant, reason: best.evidence };
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
function codeFor(set, facts, training) {
  const words = [`num_features=${facts.num_features}`];
  if (set.delta !== undefined) words.push(`num_classes=${facts.num_classes}`);
  if (set.gamma !== undefined) words.push(`csg=${facts.csg}`);
  if (training) words.push(`optimizer="${training.name}"`, `lr=${training.lr}`, `steps=${training.steps}`);
  return `import tstar\nmodel = tstar.temper(model, tstar.temperature(${words.join(", ")}))`;
}
