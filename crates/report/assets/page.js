// Exact values at the pointer, zoom, and curves that can be switched off. The page is whole
// without this: pictures and tables are in it already.
(() => {
const { unpacked, items, level, find, end, parsed, place, valueAt, marks, path } = curves;
const data = JSON.parse(document.getElementById('data').textContent);
const SVG = 'http://www.w3.org/2000/svg';
const HELP = 'Point at a curve for exact values; drag across to zoom in. Keys: ← → bucket, ↑ ↓ run, + − zoom, 0 all.';
const TOUCH_HELP = 'Tap a curve for exact values.';
// So far beside a curve's bucket, it is still meant: most are narrower than a dot.
const REACH = 8;

for (const run of data.runs) {
  run.buckets = unpacked(run);
  run.shown = true;
}

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
const short = (ns, digits = 3) => {
  const [unit, length] = unitOf(ns * 1.0001);
  return `${+(ns / length).toPrecision(digits)} ${unit}`;
};
// A moment of a run, with as many digits as tell it from the next slot.
const moment = (ns, slot) => ns === 0 ? '0' : short(ns, Math.max(3, Math.ceil(Math.log10(ns / slot)) + 2));
const percent = (part, whole) => {
  const share = whole ? 100 * part / whole : 0;
  const text = share === 0 ? '0' : share >= 1e-5 ? `${+share.toPrecision(3)}` : share.toExponential(1);
  return text === '100' && part < whole ? '>99.9 %' : `${text} %`;
};

// Where an axis is marked, and what is written there: as many digits as tell neighbours apart.
const ticksOf = (axis, from, to) => {
  const { values, apart } = marks(axis, to - from);
  const digits = apart ? Math.max(3, Math.floor(Math.log10(axis.high / apart)) + 1) : 3;
  let free = -Infinity;
  return values.map(value => {
    const at = place(axis, value, from, to), label = value > 0 ? short(value, digits) : '0', half = label.length * 3.8;
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

// About how wide a text is. The browser knows only where it is displayed, and of the two pictures for
// wide and narrow screens one is not.
const widthOf = text => text.textContent.length * 6.8;

class Plot {
  constructor(figure) {
    this.figure = figure;
    this.readout = figure.querySelector('.readout');
    this.note = figure.querySelector('.help');
    this.views = [...figure.querySelectorAll('svg')].map(svg => {
      const [left, top, right, bottom] = svg.dataset.box.split(' ').map(Number);
      return { svg, left, top, right, bottom, original: svg.innerHTML };
    });
    const { kind, x, y, shares } = this.views[0].svg.dataset;
    this.kind = kind;
    this.shares = shares !== undefined;
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
    // A finger leaves with every tap: what it asked for stays until the next one.
    figure.addEventListener('pointerleave', event => { if (!this.from && event.pointerType !== 'touch') this.unmark(); });
    figure.addEventListener('click', event => { if (event.pointerType === 'touch') this.pointed(event); });
    document.addEventListener('pointerdown', event => { if (!figure.contains(event.target)) this.unmark(); });
    figure.addEventListener('blur', () => this.unmark());
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

  // What can be done, below the picture.
  help() {
    this.note.replaceChildren(matchMedia('(hover: none)').matches ? TOUCH_HELP : HELP);
    if (this.isZoomed) {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = 'Show all';
      button.addEventListener('click', () => this.reset());
      this.note.append(button);
    }
  }

  items(run) {
    return items(this.kind, run);
  }

  level(run, item) {
    return level(this.kind, run, item, this.shares);
  }

  spot(event) {
    const box = this.view.svg.getBoundingClientRect();
    const scale = this.view.svg.viewBox.baseVal.width / box.width;
    return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
  }

  // What a run has at a value: the item there or a little beside it, or else the gap that the value
  // lies in, with how many wakeups were later than all of it. Null behind the end of its curve.
  found(run, value) {
    const all = this.items(run), { left, right } = this.view, next = find(all, value);
    const x = at => place(this.x, at, left, right), here = x(value);
    let best = null;
    for (const at of [next, next - 1, next + 1]) {
      const item = all[at];
      if (!item || item.upper <= this.x.low || item.lower >= this.x.high) continue;
      const beside = Math.max(x(item.lower) - here, here - x(item.upper), 0);
      if (beside <= REACH && (!best || beside < best.beside)) best = { at, item, beside };
    }
    if (best || next < 0 || all[next].upper <= value || this.kind === 'course') return best;
    const { lower, later, count } = all[next];
    return { at: next, value, item: { lower: all[next - 1]?.upper ?? 0, upper: lower, count: 0, later: later + count } };
  }

  pointed(event) {
    const { left, right, top, bottom } = this.view, spot = this.spot(event);
    if (this.from !== undefined) this.select(spot.x);
    if (spot.x < left - 10 || spot.x > right + 10 || spot.y < top - 10 || spot.y > bottom + 10) return;
    const value = valueAt(this.x, spot.x, left, right);
    let best = null;
    data.runs.forEach((run, i) => {
      const found = run.shown ? this.found(run, value) : null;
      const height = found && this.level(run, found.item);
      if (found === null || height === null) return;
      const distance = Math.abs(place(this.y, height, bottom, top) - spot.y);
      if (!best || distance < best.distance) best = { i, found, distance };
    });
    if (!best) return this.unmark();
    this.mark(best.i, best.found);
    this.show(event.clientX, event.clientY);
  }

  // Shows what a run has somewhere: `value` is where, if that is a gap.
  mark(i, { at, item, value }) {
    const run = data.runs[i];
    this.unmark();
    this.run = i;
    this.at = at;
    this.readout.textContent = this.told(run, item);
    Object.assign(this.readout.dataset, { run: i, lower: item.lower, upper: item.upper });
    for (const key of ['count', 'later', 'max']) {
      if (item[key] === undefined || item[key] === null) delete this.readout.dataset[key];
      else this.readout.dataset[key] = item[key];
    }
    const { svg, left, right, top, bottom } = this.view;
    const middle = this.kind === 'exceedance' ? Math.min(item.upper, run.max) : (item.lower + item.upper) / 2;
    const x = place(this.x, value ?? middle, left, right);
    const y = place(this.y, this.level(run, item) ?? this.y.low, bottom, top);
    this.cross = element('g', { class: 'mark', 'aria-hidden': 'true' }, svg);
    element('path', { class: 'cross', d: `M${x} ${top}V${bottom}M${left} ${y}H${right}` }, this.cross);
    element('circle', { class: 'here', cx: x, cy: y, r: 5 }, this.cross);
  }

  // Puts the values beside a place of the screen, inside the picture, and above it where there is
  // room: a finger covers what is below.
  show(clientX, clientY) {
    const box = this.figure.getBoundingClientRect(), { offsetWidth: width, offsetHeight: height } = this.readout;
    const x = clientX - box.left, y = clientY - box.top;
    const left = x + 14 + width <= box.width ? x + 14 : x - 14 - width;
    const top = clientY - height - 14 >= 0 ? y - height - 14 : y + 24;
    this.readout.style.left = `${Math.max(Math.min(left, box.width - width), 0)}px`;
    this.readout.style.top = `${top}px`;
  }

  told(run, item) {
    const who = data.runs.length > 1 ? `${run.name}: ` : '';
    const count = (n) => `${grouped(n)} ${n === 1 ? data.one : data.many}`;
    if (this.kind === 'course') {
      const max = item.max === null ? `no ${data.one} was due` : `largest ${data.value} ${exact(item.max)}`;
      return `${who}from ${moment(item.lower, run.slot)} to ${moment(item.upper, run.slot)} of the run: ${max}.`;
    }
    const span = item.upper - item.lower === 1 ? exact(item.lower) : `from ${exact(item.lower)} to below ${exact(item.upper)}`;
    if (this.kind === 'histogram') {
      return `${who}${span}: ${count(item.count)} (${percent(item.count, run.count)} of ${grouped(run.count)}).`;
    }
    const later = item.later === 0 ? `none ${data.more}` : `${data.more}: ${grouped(item.later)} of ${grouped(run.count)} (${percent(item.later, run.count)})`;
    return `${who}${span}: ${count(item.count)}; ${later}.`;
  }

  unmark() {
    this.cross?.remove();
    this.cross = null;
    this.readout.replaceChildren();
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
    if (!(high > low) || (this.x.log ? high / low < 1.001999 : high - low < (this.whole.high - this.whole.low) / 1e4)) return;
    if (low <= this.whole.low && high >= this.whole.high) return this.reset();
    this.x = { ...this.x, low, high };
    this.draw();
  }

  // Moves the window to an item that lies beyond it, without making it wider.
  reveal(item) {
    const { low, high, log } = this.x, { low: least, high: most } = this.whole;
    if (item.upper > low && item.lower < high) return;
    const middle = Math.min(Math.max((item.lower + item.upper) / 2, least), most);
    if (log) {
      const width = high / low, from = Math.min(Math.max(middle / Math.sqrt(width), least), most / width);
      this.zoom(from, from * width);
    } else {
      const width = high - low, from = Math.min(Math.max(middle - width / 2, least), most - width);
      this.zoom(from, from + width);
    }
  }

  reset() {
    this.x = { ...this.whole };
    delete this.figure.dataset.window;
    this.unmark();
    this.dropped();
    for (const view of this.views) view.svg.innerHTML = view.original;
    this.switched();
    this.help();
  }

  draw() {
    this.unmark();
    for (const view of this.views) this.drawIn(view);
    this.figure.dataset.window = `${this.x.low} ${this.x.high}`;
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
    // Over the course of a run, limits lie across.
    const limits = svg.querySelector('.limits');
    if (limits && this.kind !== 'course') this.drawLimits(limits, view);
    for (const group of svg.querySelectorAll('g.series')) {
      const run = data.runs[group.dataset.run];
      group.querySelector('path.l')?.setAttribute('d', path(this.kind, run, { x: this.x, y: this.y }, view, this.shares));
      this.moveEnd(group, run, view);
    }
  }

  // The dot at the largest value, and what is written beside it, move with the curve; out of the
  // window, they are not there.
  moveEnd(group, run, { left, right }) {
    const last = end(this.kind, run, this.shares);
    const isThere = last !== null && last.at >= this.x.low && last.at <= this.x.high;
    for (const other of group.querySelectorAll(':scope > :not(path.l)')) {
      other.removeAttribute('display');
      other.removeAttribute('transform');
      if (!isThere) {
        other.setAttribute('display', 'none');
        continue;
      }
      const was = place(this.whole, last.at, left, right), now = place(this.x, last.at, left, right);
      let by = now - was;
      if (other.localName === 'text') {
        // It stands to the left of the dot; without room there, to the right.
        const x = Number(other.getAttribute('x'));
        if (x + by < left) by = now + 9 - x;
        if (x + by + widthOf(other) > right + 60) other.setAttribute('display', 'none');
      }
      other.setAttribute('transform', `translate(${by.toFixed(1)})`);
    }
  }

  drawLimits(group, { left, right, top, bottom }) {
    group.replaceChildren();
    data.limits.forEach(({ at, share, label }, i) => {
      if (at > this.x.high) return;
      const isInside = at >= this.x.low, isCorner = share !== null && this.kind === 'exceedance';
      if (!isInside && !isCorner) return;
      const x = place(this.x, at, left, right), corner = isCorner ? place(this.y, share, bottom, top) : bottom;
      const line = `${isInside ? `M${x} ${top}V${corner}` : `M${left} ${corner}`}${isCorner ? `H${right}` : ''}`;
      element('path', { class: 'l limit', 'stroke-width': 1.5, 'stroke-dasharray': '6 4', d: line }, group);
      if (!isInside) return;
      const name = element('text', { class: 'f limit', x: x + 6, y: top + 14 + 16 * (i % 4), 'font-size': 12 }, group);
      name.textContent = label;
      if (x + 6 + widthOf(name) > right) {
        name.setAttribute('x', x - 6);
        name.setAttribute('text-anchor', 'end');
      }
    });
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

  // Shows an item that was reached with the keyboard, wherever it lies.
  go(i, at) {
    const item = this.items(data.runs[i])[at];
    if (!item) return;
    this.reveal(item);
    this.mark(i, { at, item });
    const here = this.cross.querySelector('.here').getBoundingClientRect();
    this.show(here.left + here.width / 2, here.top + here.height / 2);
  }

  step(by) {
    const run = data.runs[this.run], all = this.items(run);
    if (!run.shown) return this.turn(1);
    const start = this.at ?? find(all, this.middle());
    this.go(this.run, Math.min(Math.max(start + by, 0), all.length - 1));
  }

  turn(by) {
    const count = data.runs.length;
    const at = this.items(data.runs[this.run])[this.at ?? -1]?.lower ?? this.middle();
    for (let i = 1; i <= count; i++) {
      const next = (this.run + by * i + count * i) % count;
      const found = find(this.items(data.runs[next]), at);
      if (data.runs[next].shown && found >= 0) return this.go(next, found);
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

// Paper cannot unfold anything. (A style does the same in browsers that know how.)
let unfolded = [];
addEventListener('beforeprint', () => {
  unfolded = [...document.querySelectorAll('details:not([open])')];
  for (const details of unfolded) details.open = true;
});
addEventListener('afterprint', () => {
  for (const details of unfolded) details.open = false;
  unfolded = [];
});
})();
