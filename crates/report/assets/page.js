// Exact values under the pointer, zoom, and curves that can be switched off. The page is whole
// without this: pictures and tables are in it already.
(() => {
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const SVG = 'http://www.w3.org/2000/svg';
const HELP = 'Point at a curve for exact values; drag across to zoom in. Keys: ← → bucket, ↑ ↓ run, + − zoom, 0 all.';

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
const unpacked = run => {
  const buckets = [], packed = numbers(run.scale ?? run.edges);
  let at = 0;
  if (run.scale !== undefined) {
    for (let i = 0; i < packed.length; i += 2) {
      at += packed[i];
      const [lower, upper] = edges(at);
      buckets.push({ lower, upper, count: packed[i + 1] });
    }
  } else {
    for (let i = 0; i < packed.length; i += 3) {
      const lower = at + packed[i];
      at = lower + packed[i + 1];
      buckets.push({ lower, upper: at, count: packed[i + 2] });
    }
  }
  let later = run.count;
  for (const bucket of buckets) {
    later -= bucket.count;
    bucket.later = later;
  }
  return buckets;
};
for (const run of data.runs) {
  run.buckets = unpacked(run);
  run.shown = true;
}

// Eight bands to the octave, as in the picture.
const bandsOf = run => run.bands ??= run.buckets.reduce((bands, bucket) => {
  const octave = Math.floor(Math.log2(Math.max(bucket.lower, 1)));
  const width = octave < 3 ? 1 : 2 ** (octave - 3);
  const lower = Math.floor(bucket.lower / width) * width;
  const fits = bucket.upper <= lower + width && bucket.lower > 0;
  const own = fits ? { lower, upper: lower + width } : { lower: bucket.lower, upper: bucket.upper };
  const last = bands[bands.length - 1];
  if (last && own.lower < last.upper) {
    last.upper = Math.max(last.upper, own.upper);
    last.count += bucket.count;
  } else {
    bands.push({ ...own, count: bucket.count });
  }
  return bands;
}, []);
const slotsOf = run => run.slots ??= numbers(run.maxima).map((max, i) => (
  { lower: i * run.slot, upper: (i + 1) * run.slot, max: max === 0 ? null : max - 1 }));

// ---- numbers as people read them ----

const UNITS = [['ns', 1], ['µs', 1e3], ['ms', 1e6], ['s', 1e9]];
const unitOf = ns => UNITS.findLast(([, length]) => ns >= length) ?? UNITS[0];
const grouped = n => n.toString().replace(/\B(?=(\d{3})+$)/g, ',');
// Every digit: what was measured is told, not what was drawn.
const exact = ns => {
  const [unit, length] = unitOf(ns);
  const whole = Math.floor(ns / length), rest = String(ns - whole * length);
  const fraction = rest.padStart(String(length).length - 1, '0').replace(/0+$/, '');
  return `${grouped(whole)}${length > 1 && fraction ? '.' + fraction : ''} ${data.word}${unit}`;
};
const short = ns => {
  const [unit, length] = unitOf(ns * 1.0001);
  return `${+(ns / length).toPrecision(3)} ${unit}`;
};
const percent = (part, whole) => {
  const share = whole ? 100 * part / whole : 0;
  return share === 0 ? '0 %' : share >= 1e-5 ? `${+share.toPrecision(3)} %` : `${share.toExponential(1)} %`;
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
const ticksOf = (axis, from, to) => {
  const values = [];
  const decades = Math.log10(axis.high / Math.max(axis.low, 1e-12));
  if (axis.log && decades > 1.2) {
    const digits = decades < 3.5 ? [1, 2, 5] : [1];
    for (let e = Math.floor(Math.log10(axis.low)); e <= Math.ceil(Math.log10(axis.high)); e++) {
      for (const digit of digits) values.push(digit * 10 ** e);
    }
  } else {
    const rough = (axis.high - axis.low) / Math.max((to - from) / 100, 2);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find(s => s * power >= rough) * power;
    for (let v = Math.ceil(axis.low / step) * step; v <= axis.high && values.length < 100; v += step) values.push(v);
  }
  let free = -Infinity;
  return values.filter(v => v >= axis.low && v <= axis.high).map(v => {
    const at = place(axis, v, from, to), label = v > 0 ? short(v) : '0', half = label.length * 3.8;
    const fits = at - half >= free;
    if (fits) free = at + half + 8;
    return { at, label: fits ? label : '' };
  });
};

// ---- a picture that can be looked into ----

const element = (name, attributes, parent) => {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
};

class Plot {
  constructor(figure) {
    this.figure = figure;
    this.readout = figure.querySelector('.readout');
    this.views = [...figure.querySelectorAll('svg')].map(svg => {
      const [left, top, right, bottom] = svg.dataset.box.split(' ').map(Number);
      return { svg, left, top, right, bottom, original: svg.innerHTML };
    });
    const { kind, x, y } = this.views[0].svg.dataset;
    this.kind = kind;
    this.whole = parsed(x);
    this.x = { ...this.whole };
    this.y = parsed(y);
    this.run = 0;
    figure.tabIndex = 0;
    figure.classList.add('ready');
    const title = figure.querySelector('title')?.textContent ?? '';
    figure.setAttribute('role', 'group');
    figure.setAttribute('aria-label', `${title}. ${HELP}`);
    this.help();
    figure.addEventListener('pointermove', event => this.pointed(event));
    figure.addEventListener('pointerdown', event => this.pressed(event));
    figure.addEventListener('pointerup', event => this.released(event));
    figure.addEventListener('pointercancel', () => this.dropped());
    figure.addEventListener('pointerleave', () => { if (!this.from) this.unmark(); });
    figure.addEventListener('dblclick', () => this.reset());
    figure.addEventListener('wheel', event => this.wheeled(event), { passive: false });
    figure.addEventListener('keydown', event => this.typed(event));
  }

  get view() {
    return this.views.find(view => view.svg.getClientRects().length) ?? this.views[0];
  }

  get isZoomed() {
    return this.x.low !== this.whole.low || this.x.high !== this.whole.high;
  }

  help() {
    const text = document.createElement('span');
    text.className = 'help';
    text.textContent = HELP;
    this.tell(text);
  }

  tell(...parts) {
    this.readout.replaceChildren(...parts);
    if (this.isZoomed) {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = 'Show all';
      button.addEventListener('click', () => this.reset());
      this.readout.append(button);
    }
  }

  items(run) {
    return this.kind === 'course' ? slotsOf(run) : this.kind === 'histogram' ? bandsOf(run) : run.buckets;
  }

  level(run, item) {
    if (this.kind === 'course') return item.max;
    if (this.kind === 'histogram') return item.count;
    return (item.later + item.count) / run.count;
  }

  // The item at a value: the one it lies in, or else the next one above, or the last.
  find(run, value) {
    const items = this.items(run);
    let low = 0, high = items.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (items[middle].upper > value) high = middle; else low = middle + 1;
    }
    return items.length ? low : -1;
  }

  spot(event) {
    const box = this.view.svg.getBoundingClientRect();
    const scale = this.view.svg.viewBox.baseVal.width / box.width;
    return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
  }

  pointed(event) {
    const { left, right, top, bottom } = this.view, spot = this.spot(event);
    if (this.from !== undefined) this.select(spot.x);
    if (spot.x < left - 10 || spot.x > right + 10 || spot.y < top - 10 || spot.y > bottom + 10) return;
    const value = valueAt(this.x, spot.x, left, right);
    let best = null;
    data.runs.forEach((run, i) => {
      if (!run.shown) return;
      const at = this.find(run, value);
      if (at < 0) return;
      const level = this.level(run, this.items(run)[at]);
      if (level === null) return;
      const distance = Math.abs(place(this.y, level, bottom, top) - spot.y);
      if (!best || distance < best.distance) best = { i, at, distance };
    });
    if (best) this.mark(best.i, best.at);
  }

  mark(i, at) {
    const run = data.runs[i], item = this.items(run)[at];
    if (!item) return;
    this.run = i;
    this.at = at;
    this.tell(document.createTextNode(this.told(run, item)));
    Object.assign(this.readout.dataset, { run: i, lower: item.lower, upper: item.upper });
    for (const key of ['count', 'later', 'max']) {
      if (item[key] === undefined || item[key] === null) delete this.readout.dataset[key];
      else this.readout.dataset[key] = item[key];
    }
    const level = this.level(run, item);
    const { svg, left, right, top, bottom } = this.view;
    this.unmark();
    const x = place(this.x, this.kind === 'exceedance' ? Math.min(item.upper, run.max) : (item.lower + item.upper) / 2, left, right);
    const y = place(this.y, level ?? this.y.low, bottom, top);
    this.cross = element('g', { 'aria-hidden': 'true' }, svg);
    element('path', { class: 'cross', d: `M${x} ${top}V${bottom}M${left} ${y}H${right}` }, this.cross);
    element('circle', { class: 'here', cx: x, cy: y, r: 5 }, this.cross);
  }

  told(run, item) {
    const who = data.runs.length > 1 ? `${run.name}: ` : '';
    const count = (n, of) => `${grouped(n)} ${of}${n === 1 ? '' : 's'}`;
    if (this.kind === 'course') {
      const max = item.max === null ? `no ${data.one} was due` : `largest ${data.value} ${exact(item.max)}`;
      return `${who}from ${short(item.lower) || '0'} to ${short(item.upper)} of the run: ${max}.`;
    }
    const span = item.upper - item.lower === 1 ? exact(item.lower) : `from ${exact(item.lower)} to below ${exact(item.upper)}`;
    if (this.kind === 'histogram') {
      return `${who}${span}: ${count(item.count, data.one)} (${percent(item.count, run.count)} of ${grouped(run.count)}).`;
    }
    const later = item.later === 0 ? `none ${data.more}` : `${data.more}: ${grouped(item.later)} of ${grouped(run.count)} (${percent(item.later, run.count)})`;
    return `${who}${span}: ${count(item.count, data.one)}; ${later}.`;
  }

  unmark() {
    this.cross?.remove();
    this.cross = null;
  }

  pressed(event) {
    if (event.button !== 0 || event.pointerType === 'touch' || event.target.closest('button')) return;
    const { left, right, top, bottom } = this.view, spot = this.spot(event);
    if (spot.x < left || spot.x > right || spot.y < top || spot.y > bottom) return;
    this.from = spot.x;
    this.figure.setPointerCapture(event.pointerId);
  }

  select(x) {
    const { svg, left, right, top, bottom } = this.view;
    const to = Math.min(Math.max(x, left), right);
    this.selection ??= element('rect', { class: 'selection', y: top, height: bottom - top }, svg);
    this.selection.setAttribute('x', Math.min(this.from, to));
    this.selection.setAttribute('width', Math.abs(to - this.from));
    this.to = to;
  }

  released() {
    const { from, to } = this, { left, right } = this.view;
    this.dropped();
    if (from === undefined || to === undefined || Math.abs(to - from) < 6) return;
    this.zoom(valueAt(this.x, Math.min(from, to), left, right), valueAt(this.x, Math.max(from, to), left, right));
  }

  dropped() {
    this.selection?.remove();
    this.selection = null;
    this.from = this.to = undefined;
  }

  // Without a key held, the wheel scrolls the page, unless the picture was chosen before.
  wheeled(event) {
    if (!event.ctrlKey && !event.shiftKey && document.activeElement !== this.figure) return;
    event.preventDefault();
    const { left, right } = this.view;
    const delta = Math.abs(event.deltaY) > Math.abs(event.deltaX) ? event.deltaY : event.deltaX;
    this.scale(delta < 0 ? 0.8 : 1.25, valueAt(this.x, this.spot(event).x, left, right));
  }

  // Shows `factor` times as much around a value.
  scale(factor, around) {
    const { low, high, log } = this.x;
    if (log) {
      this.zoom(around * (low / around) ** factor, around * (high / around) ** factor);
    } else {
      this.zoom(around + (low - around) * factor, around + (high - around) * factor);
    }
  }

  middle() {
    return this.x.log ? Math.sqrt(this.x.low * this.x.high) : (this.x.low + this.x.high) / 2;
  }

  zoom(low, high) {
    low = Math.max(low, this.whole.low);
    high = Math.min(high, this.whole.high);
    // Closer than this, rounding would show.
    if (!(high > low) || (this.x.log ? high / low < 1.002 : high - low < (this.whole.high - this.whole.low) / 1e4)) return;
    if (low <= this.whole.low && high >= this.whole.high) return this.reset();
    this.x = { ...this.x, low, high };
    this.draw();
  }

  reset() {
    this.x = { ...this.whole };
    this.cross = this.selection = null;
    for (const view of this.views) view.svg.innerHTML = view.original;
    this.switched();
    this.help();
  }

  draw() {
    this.unmark();
    for (const view of this.views) this.drawIn(view);
    this.switched();
    this.help();
  }

  drawIn(view) {
    const { svg, left, right, top, bottom } = view;
    const axis = svg.querySelector('.x-axis');
    axis.replaceChildren();
    for (const { at, label } of ticksOf(this.x, left, right)) {
      element('path', { class: `l ${label ? 'grid' : 'fine'}`, d: `M${at} ${top}V${bottom}` }, axis);
      if (label) {
        element('text', { class: 'f faint', x: at, y: bottom + 17, 'font-size': 12, 'text-anchor': 'middle' }, axis).textContent = label;
      }
    }
    const limits = svg.querySelector('.limits');
    if (limits && this.kind !== 'course') limits.setAttribute('display', 'none');
    for (const group of svg.querySelectorAll('g.series')) {
      const line = group.querySelector('path.l'), run = data.runs[group.dataset.run];
      line?.setAttribute('d', this.path(run, view));
      for (const other of group.querySelectorAll(':scope > :not(path.l)')) other.remove();
    }
  }

  // A curve within the part that is shown, as steps.
  path(run, { left, right, top, bottom }) {
    const items = this.items(run), { low, high } = this.x;
    const first = this.find(run, low);
    let out = '', isOpen = false, drawn = -Infinity;
    const x = value => place(this.x, value, left, right).toFixed(1);
    const y = value => place(this.y, value, bottom, top).toFixed(1);
    for (let i = Math.max(first, 0); i < items.length && items[i].lower < high; i++) {
      const item = items[i], level = this.level(run, item);
      if (level === null) { isOpen = false; continue; }
      const from = this.kind === 'exceedance' && !isOpen ? low : item.lower;
      const upper = this.kind === 'exceedance' ? Math.min(item.upper, run.max) : item.upper;
      // Several within a dot of a screen are one.
      if (isOpen && this.kind === 'exceedance' && i + 1 < items.length && +x(upper) - drawn < 0.4) continue;
      drawn = +x(upper);
      if (this.kind === 'histogram') {
        const isNext = isOpen && items[i - 1]?.upper === item.lower;
        out += isNext ? `V${y(level)}H${x(upper)}` : `${isOpen ? `V${bottom}` : ''}M${x(from)} ${bottom}V${y(level)}H${x(upper)}`;
      } else {
        out += isOpen ? `V${y(level)}H${x(upper)}` : `M${x(from)} ${y(level)}H${x(upper)}`;
      }
      isOpen = true;
    }
    return out + (this.kind === 'histogram' && isOpen ? `V${bottom}` : '');
  }

  typed(event) {
    if (event.target !== this.figure || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? 10 : 1;
    const keys = {
      ArrowLeft: () => this.step(-step), ArrowRight: () => this.step(step),
      ArrowUp: () => this.turn(-1), ArrowDown: () => this.turn(1),
      '+': () => this.scale(0.6, this.middle()), '=': () => this.scale(0.6, this.middle()),
      '-': () => this.scale(1 / 0.6, this.middle()), '0': () => this.reset(), Escape: () => this.reset(),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  step(by) {
    const run = data.runs[this.run], items = this.items(run);
    if (!run.shown) return this.turn(1);
    const start = this.at ?? this.find(run, this.middle());
    this.mark(this.run, Math.min(Math.max(start + by, 0), items.length - 1));
  }

  turn(by) {
    const count = data.runs.length;
    const at = this.items(data.runs[this.run])[this.at ?? 0]?.lower ?? this.middle();
    for (let i = 1; i <= count; i++) {
      const next = (this.run + by * i + count * i) % count;
      const found = this.find(data.runs[next], at);
      if (data.runs[next].shown && found >= 0) return this.mark(next, found);
    }
  }

  switched() {
    for (const group of this.figure.querySelectorAll('g.series')) show(group);
  }
}

const show = group => {
  if (data.runs[group.dataset.run].shown) group.removeAttribute('display');
  else group.setAttribute('display', 'none');
};

const plots = [...document.querySelectorAll('figure.plot')].map(figure => new Plot(figure));
const buttons = [...document.querySelectorAll('.legend button')];
const turn = (button, shown) => {
  const { run } = button.dataset;
  data.runs[run].shown = shown;
  button.setAttribute('aria-pressed', shown);
  for (const group of document.querySelectorAll(`g.series[data-run="${run}"]`)) show(group);
  for (const plot of plots) plot.unmark();
};
for (const button of buttons) {
  button.addEventListener('click', () => turn(button, !data.runs[button.dataset.run].shown));
}
// Of many curves, one wants to see a few.
if (buttons.length > 8) {
  for (const [name, shown] of [['all', true], ['none', false]]) {
    const item = document.createElement('li'), button = document.createElement('button');
    button.type = 'button';
    button.className = 'every';
    button.textContent = name;
    button.addEventListener('click', () => buttons.forEach(other => turn(other, shown)));
    item.append(button);
    buttons[0].closest('ul').append(item);
  }
}
})();
