"use strict";
// The algebra of tstar/formula: equation, law, choice, cautions and rules, over the same coefficients and with the same texts. A browser test compares every number and every message below with Python's.

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

/** A text with its {names} replaced. */
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

/** lr·steps, as if the rate fell to zero, and for SGD as if with momentum 0.9. */
function spentBy(known, { family, lr, steps, momentum, factor }) {
  const longer = family === "sgd" ? (1 - known.momentum) / (1 - (momentum ?? known.momentum)) : 1;
  return (lr * steps * longer * (factor ?? known.rateFactor)) / known.rateFactor;
}

const isMeasured = ({ family, lr, steps }) => ["sgd", "adam"].includes(family) && lr !== null && steps !== null;

const missingFrom = ({ family, lr, steps }) => Object.entries({ optimizer: family, lr, steps }).filter(([, part]) => part === null).map(([part]) => part);

const otherRate = ({ FITTED_LR }, { family, lr }) => family === "sgd" && lr !== null && !inside(FITTED_LR, lr);
const validatedRate = ({ VALIDATED_LR }, { scenario, lr }) => scenario === "finetune" && lr === VALIDATED_LR;

/** Whether a fact that was told is not one of the paper's trainings. */
function unlikeThePapers({ limits }, training) {
  const few = training.steps !== null && training.steps < limits.FITTED_STEPS;
  return training.family === "adam" || few || (otherRate(limits, training) && !validatedRate(limits, training));
}

/** T of the law and how it reads, as tstar.formula.law has it. */
function limitOf(known, { sgd: c, adam: a, adam_finetune: tuned, power: p }, facts, training) {
  const { num_features: M, num_classes: K } = facts;
  const { family, lr, steps, momentum, batch, scenario } = training;
  if (family !== "sgd" && scenario === "finetune" && tuned) return { value: tuned, reads: "the T of Adam and AdamW in fine-tuning" };
  if (family !== "sgd") return { value: a, reads: "the T of Adam and AdamW" };
  const B = batch ?? known.batch;
  const rest = 1 - (momentum ?? known.momentum);
  const value = c * Math.sqrt(lr * M) * (steps / (K * B * rest)) ** p;
  const numbers = `${general(c)}·sqrt(${general(lr)}·${general(M)})·(${general(steps)}/(${general(K)}·${general(B)}·${general(rest, 3)}))^${general(p)}`;
  return { value, reads: `c·sqrt(lr·M)·(steps/(K·B·(1 − μ)))^p = ${numbers}` };
}

/** A training shorter or longer than any that was measured. */
function trainingFlags(known, { fitted }, training) {
  const [low, high] = fitted[training.family];
  const spent = spentBy(known, training);
  if (inside([low, high], spent)) return [];
  const counted = Math.abs(training.lr * training.steps - spent) <= 1e-9 * spent ? "" : known.counted;
  const message = `lr·steps = ${general(spent, 3)}${counted} is ${spent < low ? "below" : "above"} ${span([low, high])}, where the law `
    + "was measured: it is extrapolating";
  return [{ level: "extrapolation", message }];
}

/** As explainSet, at the T of the law for this training. */
function explainAware(known, set, facts, training) {
  const plain = explainSet(set, facts);
  const { value, reads } = limitOf(known, set.budget, facts, training);
  const { minimum, maximum } = set.budget;
  const temperature = Math.min(Math.max(value, minimum), maximum);
  let limit = `asks for ${reads} = ${general(value, 4)}`;
  if (value !== temperature) limit += `; ${general(temperature)} is the ${value < temperature ? "lowest" : "highest"} that is advised`;
  const flags = [...flagsOf(set, facts), ...trainingFlags(known, set.budget, training)];
  return { ...plain, bound: plain.temperature, temperature, limit, law: true, wanted: value, flags };
}

/** Which of the paper's variants to use and why, as tstar.formula.choice has it. */
function chooseVariant(known, facts, scenario) {
  const { csg, num_classes: K } = facts;
  const { reasons, csgRange } = known;
  const outside = csg !== null && !inside(csgRange, csg);
  if (K === null) return { name: csg === null || outside ? "base" : "csg", reason: reasons["no-classes"] };
  if (csg === null) {
    const alone = known.evidence.without_csg[scenario ?? "scratch"];
    return { name: alone.variant, reason: fill(reasons["no-csg"], alone) };
  }
  if (outside) {
    const values = { csg: general(csg, 3), low: general(csgRange[0]), high: general(csgRange[1]) };
    return { name: "cn", reason: fill(reasons.outside, values) };
  }
  if (scenario === null) return { name: "csgcn", reason: reasons["no-scenario"] };
  const best = known.evidence[scenario];
  return { name: best.variant, reason: best.evidence };
}

/** The one decision: which set, T with its reasons, the safe T where the evidence speaks against it, and what to mind. */
function decide(known, facts, training, named = null) {
  let name, reason, found;
  if (named) {
    [name, reason] = [named, known.reasons.named];
  } else if (isMeasured(training) && facts.num_classes !== null) {
    [name, reason] = ["speed", known.reasons.aware];
  } else {
    ({ name, reason } = chooseVariant(known, facts, training.scenario));
  }
  found = name === "speed" ? explainAware(known, known.aware, facts, training) : explainSet(known.sets[name], facts);
  const computed = found.temperature;
  let temperature = computed;
  const similar = !named && name === "speed" ? expectationOf(known, facts, training) : null;
  const left = ["scale-free", "other"].includes(training.family) || (missingFrom(training).length > 0 && unlikeThePapers(known, training));
  const leave = !named && (left || Boolean(similar && (similar.far || !similar.gained)));
  if (leave) temperature = known.limits.SAFE;
  else if (!named && name === "speed" && training.family === "sgd" && training.scenario === "finetune") {
    temperature = Math.max(computed, known.limits.SAFE);
  }
  const result = { ...found, computed, temperature, leave, similar, bound: found.bound ?? computed };
  return { ...result, name, reason, notices: noticesFor(known, facts, training, result) };
}

/** Every concern, the gravest first, in the words of tstar.formula.cautions. */
function noticesFor(known, facts, training, result) {
  const { limits, texts } = known;
  const found = [];
  const say = (key, values = {}) => found.push({ severity: texts[key][0], message: fill(texts[key][1], values) });
  const { family, lr, steps, scenario, factor, batch, smoothing } = training;
  if (result.leave && result.similar && !result.similar.far) {
    say("no-gain", { trainings: result.similar.trainings, T: general(result.computed, 3) });
  } else if (result.leave && result.similar) {
    const { trainings, distance } = result.similar;
    const away = trainings ? fill(limits.AWAY, { distance: distance.toFixed(1) }) : "";
    say("far", { away, T: general(result.computed, 3), bound: general(result.bound, 3) });
  } else if (result.limit) {
    if (family === "sgd" && result.computed < limits.SAFE) {
      say(result.temperature >= limits.SAFE ? "sgd-below-one/tuned" : "sgd-below-one", { computed: general(result.computed, 3) });
    }
    if (batch === null && family === "sgd") say("no-batch-size", { size: known.batch });
    const faster = rateOf(known, training);
    if (faster !== 1) {
      const { minimum, maximum } = known.aware.budget;
      const T = Math.min(Math.max(result.wanted * (family === "sgd" ? Math.sqrt(faster) : 1), minimum), maximum);
      say("higher-rate", { factor: general(faster), lr: general(faster * lr), T: general(T, 3) });
    }
  } else if (["scale-free", "other"].includes(family)) {
    say(`other-optimizer/${family}`, { computed: general(result.computed, 3), name: training.name });
  } else {
    if (family === "adam") say("other-optimizer", { name: training.name });
    if (otherRate(limits, training)) say(validatedRate(limits, training) ? "other-lr/validated" : "other-lr", { lr: general(lr) });
    if (family === "sgd" && isMeasured(training)) {
      const spent = spentBy(known, training);
      const values = { spent: general(spent, 3), T: general(result.temperature, 3) };
      if (spent < limits.HARMFUL_BUDGET && result.temperature > limits.HOT) say("small-budget/harmful", values);
      else if (spent < limits.SMALL_BUDGET) say("small-budget", values);
    } else if (steps !== null && steps < limits.FITTED_STEPS) say("few-steps", { steps: steps.toLocaleString("en-US") });
    const missing = missingFrom(training).map((part) => limits.WORDS[part]);
    if (missing.length) {
      const last = missing.pop();
      const values = { missing: missing.length ? `${missing.join(", ")} and ${last}` : last, computed: general(result.computed, 3) };
      say(result.leave ? "unknown-training/left" : "unknown-training", values);
    }
  }
  const [low, high] = limits.BATCH_SIZES;
  if (batch === 1 && !result.leave) say("batch-of-one");
  else if (!result.leave && batch !== null && !inside([low, high], batch)) say("batch-size", { size: batch.toLocaleString("en-US"), low, high });
  if (smoothing) say("label-smoothing", { smoothing: general(smoothing) });
  if (facts.num_classes !== null && facts.num_classes < limits.FEWEST_CLASSES && !result.limit) say("few-classes", { K: general(facts.num_classes) });
  return found.sort((a, b) => limits.ORDER.indexOf(a.severity) - limits.ORDER.indexOf(b.severity));
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

/** The two lines that put the answer into a model: its number, since the page was told more (norms, samples) than tstar.temperature takes. */
function codeFor({ leave, temperature }) {
  return leave ? "# Nothing to add: train the plain model." : `import tstar\nmodel = tstar.temper(model, ${general(temperature)})`;
}
