// The exact counts behind the curves, and which part of them a window shows. Nothing here touches
// the page, so that a test can call all of it with any window.
'use strict';
const curves = (() => {

// ---- the record's buckets, as they were before they were drawn ----

// The scale of our own records: 512 buckets to the octave; see Histogram in the sources.
const edges = index => {
  const shift = Math.max(Math.floor(index / 512) - 1, 0), width = 2 ** shift;
  const lower = (index - shift * 512) * width;
  return [lower, lower + width];
};
// Numbers, five bits to a character, the lowest first; the sixth bit says that there is more.
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const numbers = text => {
  const found = [];
  let number = 0, place = 1;
  for (const digit of text ?? '') {
    const bits = DIGITS.indexOf(digit);
    number += (bits & 31) * place;
    place *= 32;
    if (bits < 32) {
      found.push(number);
      number = 0;
      place = 1;
    }
  }
  return found;
};
// Ranges that ascend, as triples: from the end of the last one to the lower edge, the width, and the count.
const ranges = text => {
  const found = [], packed = numbers(text);
  let at = 0;
  for (let i = 0; i < packed.length; i += 3) {
    const lower = at + packed[i];
    at = lower + packed[i + 1];
    found.push({ lower, upper: at, count: packed[i + 2] });
  }
  return found;
};
const onScale = text => {
  const found = [], packed = numbers(text);
  let at = 0;
  for (let i = 0; i < packed.length; i += 2) {
    at += packed[i];
    const [lower, upper] = edges(at);
    found.push({ lower, upper, count: packed[i + 1] });
  }
  return found;
};
const unpacked = run => {
  const buckets = run.scale === undefined ? ranges(run.edges) : onScale(run.scale);
  let later = run.count;
  for (const bucket of buckets) {
    later -= bucket.count;
    bucket.later = later;
  }
  return buckets;
};

// The bands of the picture: only the program that drew it has the rule that makes them.
const bandsOf = run => run.drawn ??= ranges(run.bands);
const slotsOf = run => run.slots ??= numbers(run.maxima).map((max, i) => (
  { lower: i * run.slot, upper: (i + 1) * run.slot, max: max === 0 ? null : max - 1 }));

// ---- what a curve of a kind consists of ----

const items = (kind, run) => kind === 'course' ? slotsOf(run) : kind === 'histogram' ? bandsOf(run) : run.buckets;

// How high the curve is at an item; null where it is not drawn. `shares`: of the run's wakeups
// instead of their number.
const level = (kind, run, item, shares) => {
  if (kind === 'course') return item.max;
  if (kind === 'histogram') return shares ? item.count / run.count : item.count;
  return (item.later + item.count) / run.count;
};

// The item at a value: the one it lies in, or else the next one above, or the last; -1 without any.
const find = (all, value) => {
  let low = 0, high = all.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (all[middle].upper > value) high = middle; else low = middle + 1;
  }
  return all.length ? low : -1;
};

// The steps of a curve in a window, from left to right, none beyond its edges. A step says how high
// the curve is (`level`), whether it follows the one before it without a gap (`joins`), and whether
// it goes on beyond the window (`before`, `after`).
//
// The share of later wakeups holds on from the end of one bucket to that of the next, however far
// that is: a bucket beyond the window still gives the height of the curve inside.
const steps = (kind, run, { low, high }, shares) => {
  const all = items(kind, run), found = [];
  for (let i = Math.max(find(all, low), 0); i < all.length; i++) {
    const item = all[i], height = level(kind, run, item, shares);
    let { lower, upper } = item;
    if (kind === 'exceedance') {
      lower = i > 0 ? all[i - 1].upper : -Infinity;
      upper = i + 1 < all.length ? upper : Math.min(upper, run.max);
    }
    if (lower >= high) break;
    if (upper <= low || height === null) continue;
    const last = found[found.length - 1];
    found.push({
      from: Math.max(lower, low), to: Math.min(upper, high), level: height,
      joins: last !== undefined && last.to === lower, before: lower < low, after: upper > high,
    });
  }
  return found;
};

// Where a dot marks the largest value of a run; null without any.
const end = (kind, run, shares) => {
  const all = items(kind, run);
  if (!all.length) return null;
  const last = all[all.length - 1];
  if (kind === 'exceedance') return { at: run.max, level: last.count / run.count };
  if (kind === 'histogram') return { at: run.max, level: level(kind, run, last, shares) };
  const worst = all.reduce((most, slot) => (slot.max ?? -1) > (most.max ?? -1) ? slot : most);
  return { at: (worst.lower + worst.upper) / 2, level: worst.max };
};

// ---- axes ----

const parsed = text => {
  const [scale, low, high] = text.split(' ');
  return { log: scale === 'log', low: +low, high: +high };
};
const place = (axis, value, from, to) => {
  const share = axis.log
    ? Math.log(Math.max(value, axis.low) / axis.low) / Math.log(axis.high / axis.low)
    : (value - axis.low) / (axis.high - axis.low);
  return from + Math.min(Math.max(share, 0), 1) * (to - from);
};
const valueAt = (axis, at, from, to) => {
  const share = Math.min(Math.max((at - from) / (to - from), 0), 1);
  return axis.log ? axis.low * (axis.high / axis.low) ** share : axis.low + share * (axis.high - axis.low);
};
// The values that are marked on an axis `length` long, and how far they are apart where that is
// everywhere the same.
const marks = (axis, length) => {
  const values = [], decades = Math.log10(axis.high / Math.max(axis.low, 1e-12));
  let apart;
  if (axis.log && decades > 1.2) {
    const digits = decades < 3.5 ? [1, 2, 5] : [1];
    for (let e = Math.floor(Math.log10(axis.low)); e <= Math.ceil(Math.log10(axis.high)); e++) {
      for (const digit of digits) values.push(digit * 10 ** e);
    }
  } else {
    const rough = (axis.high - axis.low) / Math.max(length / 100, 2);
    const power = 10 ** Math.floor(Math.log10(rough));
    apart = [1, 2, 5, 10].find(s => s * power >= rough) * power;
    const first = Math.ceil(axis.low / apart);
    for (let i = first; i * apart <= axis.high && values.length < 100; i++) values.push(i * apart);
  }
  return { values: values.filter(v => v >= axis.low && v <= axis.high), apart };
};

// The points of a curve within a field, as the path of an SVG.
const path = (kind, run, axes, field, shares) => {
  const { left, right, top, bottom } = field;
  const x = value => place(axes.x, value, left, right).toFixed(1);
  const y = value => place(axes.y, value, bottom, top).toFixed(1);
  const all = steps(kind, run, axes.x, shares);
  let out = '', drawn = -Infinity, isOpen = false;
  all.forEach((step, i) => {
    // Several within a dot of a screen are one.
    const isLast = i + 1 === all.length;
    if (kind === 'exceedance' && isOpen && !isLast && +x(step.to) - drawn < 0.4) return;
    drawn = +x(step.to);
    if (kind === 'histogram') {
      // A bar that the window cuts has no side there: it goes on.
      const side = step.before ? '' : `${bottom}V`;
      const wall = isOpen && !step.joins ? `V${bottom}` : '';
      out += step.joins ? `V${y(step.level)}H${x(step.to)}` : `${wall}M${x(step.from)} ${side}${y(step.level)}H${x(step.to)}`;
      if (isLast && !step.after) out += `V${bottom}`;
    } else {
      const joins = isOpen && (kind === 'exceedance' || step.joins);
      out += joins ? `V${y(step.level)}H${x(step.to)}` : `M${x(step.from)} ${y(step.level)}H${x(step.to)}`;
    }
    isOpen = true;
  });
  return out;
};

return { unpacked, items, level, find, steps, end, parsed, place, valueAt, marks, path };
})();
