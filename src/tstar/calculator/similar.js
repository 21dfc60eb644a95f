// The most similar trainings and what they gained, as tstar.formula.similar has it.

/** The logarithms of what is known of a training, by name. */
function coordinatesOf(known, facts, { family, lr, steps, momentum, batch, factor, samples }) {
  const rate = factor ?? known.rateFactor;
  const sgd = family === "sgd";
  const longer = sgd ? 1 / (1 - Math.min(momentum ?? known.momentum, 0.999)) : 1;
  const found = {};
  if (lr !== null && steps !== null) found.travel = lr * steps * rate * longer;
  if (lr !== null && batch !== null) found.noise = (lr * longer) / (sgd ? batch : Math.sqrt(batch));
  if (steps !== null && batch !== null && samples) found.passes = (steps * batch) / samples;
  if (steps !== null) found.steps = steps;
  found.features = facts.num_features;
  if (facts.num_classes) found.classes = facts.num_classes;
  return Object.fromEntries(Object.entries(found).map(([name, value]) => [name, Math.log(value)]));
}

/** Linear between the order statistics. */
function quantileOf(values, share) {
  const ordered = [...values].sort((a, b) => a - b);
  const place = share * (ordered.length - 1);
  const low = Math.floor(place);
  const high = Math.min(low + 1, ordered.length - 1);
  return ordered[low] + (place - low) * (ordered[high] - ordered[low]);
}

/** The trainings to compare with: at the usual rates, or at tuned ones. */
const comparable = (known, { tuned }) => (tuned ? known.similar.tuned : known.similar.usual);

/** The recipe that the evidence favors for this kind of training; it may be to leave the model. */
const favoredBy = (known, training) => comparable(known, training).recipes[training.scenario ?? "scratch"][training.family];

/** What that recipe multiplies the learning rate by. */
const rateOf = (known, training) => known.similar.rates[favoredBy(known, training)] ?? 1;

/** What the trainings nearest to this one gained with the recipe that is favored; null where nothing can be said. */
function expectationOf(known, facts, training) {
  const { leave, pretrained, neighbors, otherNorms, far, share, most, long } = known.similar;
  const { rows, scales, noise, widening } = comparable(known, training);
  if (!isMeasured(training)) return null;
  const finetune = training.scenario === "finetune";
  const favored = favoredBy(known, training);
  const recipe = favored === leave ? "bn" : favored;
  const norms = finetune ? pretrained : training.norms;
  const mine = coordinatesOf(known, facts, training);
  const near = [];
  for (const row of rows) {
    if (row.optimizer !== training.family || row.gains[recipe] === undefined) continue;
    if ((row.norms === pretrained) !== finetune) continue;
    if (finetune && training.norms && row.inside && row.inside !== training.norms) continue;
    if ("steps" in mine && (mine.steps >= Math.log(long)) !== (row.coordinates.steps >= Math.log(long))) continue;
    const both = Object.keys(mine).filter((name) => name in row.coordinates && name in scales);
    const squares = both.map((name) => ((mine[name] - row.coordinates[name]) / scales[name]) ** 2);
    const apart = Math.sqrt(squares.reduce((sum, square) => sum + square, 0) / both.length);
    near.push([apart + (norms && row.norms !== norms ? otherNorms : 0), row]);
  }
  if (!near.length) return { median: 0, low: 0, high: 0, distance: 99, gained: false, far: true, trainings: 0, helped: 0, harmed: 0 };
  near.sort((a, b) => a[0] - b[0]);
  let beyond = 0;
  for (const [name, value] of Object.entries(mine).filter(([name]) => name in scales)) {
    const others = near.map(([, row]) => row.coordinates[name]).filter((other) => other !== undefined);
    beyond = Math.max(beyond, (Math.min(...others) - value) / scales[name], (value - Math.max(...others)) / scales[name]);
  }
  const taken = near.slice(0, neighbors).map(([, row]) => row);
  const gains = taken.map((row) => row.gains[recipe]);
  const steps = taken.map((row) => row.steps);
  const median = quantileOf(gains, 0.5);
  const [low, high] = [(1 - share) / 2, (1 + share) / 2].map((s) => median + widening * (quantileOf(gains, s) - median));
  const distance = Math.max(near[0][0], beyond);
  const held = gains.map((gain) => Math.max(-most, Math.min(gain, most)));
  const mean = held.reduce((sum, gain) => sum + gain, 0) / held.length;
  const squares = held.reduce((sum, gain) => sum + (gain - mean) ** 2, 0);
  const gained = mean > (held.length > 1 ? Math.sqrt(squares / (held.length - 1) / held.length) : 0);
  return {
    median, low, high, distance, gained, shortest: Math.min(...steps), longest: Math.max(...steps), far: near[0][0] > far || beyond > far, trainings: gains.length,
    helped: gains.filter((gain) => gain > noise).length, harmed: gains.filter((gain) => gain < -noise).length,
  };
}

/** The expectation in words; empty where nothing like it was measured, which a notice says. */
function expectationText(found) {
  // Ties go to the even digit, as in Python: of one decimal only quarters can be ties.
  const tie = (value) => Math.abs(value * 4) % 2 === 1;
  const rounded = (value) => (tie(value) ? (2 * Math.round(value * 5)) / 10 : value).toFixed(1);
  const points = (value) => `${value < 0 ? "-" : "+"}${rounded(Math.abs(value))}`;
  if (found.far) return "";
  const steps = ` (${found.shortest.toLocaleString("en-US")} to ${found.longest.toLocaleString("en-US")} steps)`;
  return `Of the ${found.trainings} most similar trainings of the atlas${steps} ${found.helped} gained and ${found.harmed} lost more than noise; median `
    + `${points(found.median)} points over the plain model, four of five between ${points(found.low)} and ${points(found.high)}.`;
}
