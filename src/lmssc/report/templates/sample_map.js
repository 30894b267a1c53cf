"use strict";
// A map of samples on a canvas: zoom, pan, point, lasso, and all of it with the keyboard. The report and the studio use it.
// Positions are in units of the map; the canvas shows a part of it. Nothing here makes HTML from text.
class SampleMap {
  constructor(canvas, { colours, onPoint = () => {}, onChoose = () => {}, onLasso = () => {}, onView = () => {} }) {
    Object.assign(this, { canvas, colours, onPoint, onChoose, onLasso, onView });
    this.context = canvas.getContext("2d");
    canvas.sampleMap = this;
    this.size = { width: 1000, height: 1000 };
    this.view = { x: 0, y: 0, scale: 1 };
    this.data = { x: [], y: [], label: [], given: [] };
    this.names = [];
    this.shown = () => true;
    this.chosen = -1;
    this.pointed = -1;
    this.selected = null;
    this.lassoing = false;
    this.rope = [];
    this.moved = 0;
    this.pointers = new Map();
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.printing = matchMedia("print");
    for (const query of [this.scheme, this.printing]) query.addEventListener("change", () => this.draw());
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.listen();
    this.resize();
  }

  // ---- data

  setData(data, size = this.size, names = this.names) {
    this.data = { ...this.data, ...data };
    this.size = size;
    this.names = names;
    this.index();
    this.resize();
  }

  // Cells of a grid, each with its samples: what is near a point is found without looking at all samples.
  index() {
    const { x, y } = this.data;
    this.cells = new Map();
    this.cell = Math.max(this.size.width, this.size.height) / 80;
    for (let i = 0; i < x.length; i += 1) {
      const key = this.cellOf(x[i], y[i]);
      const list = this.cells.get(key);
      if (list) list.push(i);
      else this.cells.set(key, [i]);
    }
  }

  cellOf(x, y) {
    return Math.floor(x / this.cell) * 4096 + Math.floor(y / this.cell);
  }

  nearest(x, y, within) {
    let best = -1, least = within * within;
    const steps = Math.min(Math.ceil(within / this.cell), 80);
    for (let a = -steps; a <= steps; a += 1) {
      for (let b = -steps; b <= steps; b += 1) {
        for (const i of this.cells.get(this.cellOf(x + a * this.cell, y + b * this.cell)) ?? []) {
          const distance = (this.data.x[i] - x) ** 2 + (this.data.y[i] - y) ** 2;
          if (distance <= least && this.shown(i)) [best, least] = [i, distance];
        }
      }
    }
    return best;
  }

  // The sample that is next in a direction: near, and not far off to the side.
  towards(i, dx, dy) {
    const { x, y } = this.data;
    let best = -1, least = Infinity;
    for (let j = 0; j < x.length; j += 1) {
      const ax = x[j] - x[i], ay = y[j] - y[i];
      const along = ax * dx + ay * dy, aside = Math.abs(ax * dy) + Math.abs(ay * dx);
      if (j !== i && along > 0 && along >= aside && along + aside < least && this.shown(j)) [best, least] = [j, along + aside];
    }
    return best;
  }

  // ---- the part that is shown

  resize() {
    const ratio = devicePixelRatio || 1;
    this.box = this.canvas.getBoundingClientRect();
    const width = Math.max(Math.round(this.box.width * ratio), 1);
    const height = Math.max(Math.round(this.box.height * ratio), 1);
    if (this.canvas.width !== width || this.canvas.height !== height) [this.canvas.width, this.canvas.height] = [width, height];
    this.show(this.view);
  }

  // Pixels of the page for one unit of the map, when all of it is shown.
  get unit() {
    return Math.min(this.box.width / this.size.width, this.box.height / this.size.height) || 1;
  }

  show(next) {
    const scale = Math.min(Math.max(next.scale, 1), 200);
    const width = this.box.width / this.unit / scale, height = this.box.height / this.unit / scale;
    const clamp = (value, most, part) => (part >= most ? (most - part) / 2 : Math.min(Math.max(value, 0), most - part));
    this.view = { scale, x: clamp(next.x, this.size.width, width), y: clamp(next.y, this.size.height, height), width, height };
    this.canvas.style.touchAction = scale > 1 || this.lassoing ? "none" : "pan-y";
    this.draw();
    this.onView(this.view);
  }

  home() {
    this.show({ x: 0, y: 0, scale: 1 });
  }

  zoom(factor, x = this.view.x + this.view.width / 2, y = this.view.y + this.view.height / 2) {
    const scale = Math.min(Math.max(this.view.scale * factor, 1), 200);
    const change = this.view.scale / scale;
    this.show({ scale, x: x - (x - this.view.x) * change, y: y - (y - this.view.y) * change });
  }

  pan(dx, dy) {
    this.show({ ...this.view, x: this.view.x + dx * this.view.width, y: this.view.y + dy * this.view.height });
  }

  centre(i, scale = this.view.scale) {
    const width = this.box.width / this.unit / scale, height = this.box.height / this.unit / scale;
    this.show({ scale, x: this.data.x[i] - width / 2, y: this.data.y[i] - height / 2 });
  }

  toScreen(x, y) {
    const factor = this.unit * this.view.scale;
    return [(x - this.view.x) * factor, (y - this.view.y) * factor];
  }

  toMap(event) {
    this.box = this.canvas.getBoundingClientRect();
    const factor = this.unit * this.view.scale;
    return [this.view.x + (event.clientX - this.box.left) / factor, this.view.y + (event.clientY - this.box.top) / factor];
  }

  isInside(i) {
    const [x, y] = this.toScreen(this.data.x[i], this.data.y[i]);
    return x >= 0 && y >= 0 && x <= this.box.width && y <= this.box.height;
  }

  // ---- drawing

  get dark() {
    return this.scheme.matches && !this.printing.matches;
  }

  // Colours of the classes; on a dark ground the dark ones are lighter.
  colour(code) {
    if (code < 0) return this.dark ? "#8a8f98" : "#9a9a9a";
    const hex = this.colours[code % this.colours.length];
    if (!this.dark) return hex;
    const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    const light = 0.3 * parts[0] + 0.59 * parts[1] + 0.11 * parts[2];
    const share = light < 140 ? 0.45 : 0.1;
    return `rgb(${parts.map((part) => Math.round(part + (255 - part) * share)).join(" ")})`;
  }

  // Draw with the next frame; with `marks` alone, of many dots the picture of the last time is used again.
  draw({ marks = false } = {}) {
    this.stale ||= !marks;
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  paint() {
    const { context: pen, data, canvas } = this, ratio = devicePixelRatio || 1;
    const many = data.x.length > 20000, least = many ? 1.6 : data.x.length > 2000 ? 3.2 : 5;
    const size = Math.min(least + 1.2 * Math.log2(this.view.scale), 9);
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    if (many && !this.stale) pen.drawImage(this.picture, 0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (!many || this.stale) this.paintDots(many, size, ratio);
    if (many && this.stale) this.keepPicture();
    this.stale = false;
    for (const [i, wide] of [[this.pointed, 3], [this.chosen, 5]]) if (i >= 0) this.paintMark(i, size + wide);
  }

  keepPicture() {
    const { canvas } = this;
    this.picture ??= document.createElement("canvas");
    [this.picture.width, this.picture.height] = [canvas.width, canvas.height];
    this.picture.getContext("2d").drawImage(canvas, 0, 0);
  }

  paintDots(many, size, ratio) {
    const groups = this.visible();
    if (many) this.paintPixels(groups, size * ratio);
    else for (const [code, members] of groups) this.paintClass(code, members, size);
    for (const [code, members] of groups) this.paintGiven(code, members, size);
    if (this.selected) this.paintSelected(size);
    this.paintNames();
    if (this.rope.length > 1) this.paintRope();
  }

  // Samples on the screen, by class.
  visible() {
    const { x, y, label } = this.data, { view } = this, edge = 10 / (this.unit * view.scale);
    const groups = new Map();
    for (let i = 0; i < x.length; i += 1) {
      if (x[i] < view.x - edge || x[i] > view.x + view.width + edge || y[i] < view.y - edge || y[i] > view.y + view.height + edge) continue;
      const code = label[i];
      let group = groups.get(code);
      if (!group) groups.set(code, group = []);
      group.push(i);
    }
    return [...groups].sort((one, other) => one[0] - other[0]);
  }

  // Many dots are squares that are written into an image: several times faster than drawing each.
  paintPixels(groups, size) {
    const { canvas, data, view } = this, { width, height } = canvas;
    if (this.image?.width !== width || this.image.height !== height) this.image = this.context.createImageData(width, height);
    const pixels = new Uint32Array(this.image.data.buffer).fill(0);
    const side = Math.max(Math.round(size), 1), factor = this.unit * view.scale * (devicePixelRatio || 1);
    for (const faint of [true, false]) {
      for (const [code, members] of groups) {
        const value = this.pixel(code, faint ? 0.08 : 0.9);
        for (const i of members) {
          if (this.shown(i) === faint) continue;
          const left = Math.round((data.x[i] - view.x) * factor - side / 2), top = Math.round((data.y[i] - view.y) * factor - side / 2);
          const from = Math.max(left, 0), to = Math.min(left + side, width), last = Math.min(top + side, height);
          for (let row = Math.max(top, 0); row < last; row += 1) {
            for (let at = row * width + from, end = row * width + to; at < end; at += 1) pixels[at] = value;
          }
        }
      }
    }
    this.context.putImageData(this.image, 0, 0);
  }

  // The colour of a class as one number, as an image has it.
  pixel(code, alpha) {
    const colour = this.colour(code);
    const parts = colour.startsWith("#") ? [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)) : colour.match(/\d+/g).map(Number);
    const bytes = new Uint8ClampedArray([...parts.slice(0, 3), 255 * alpha]);
    return new Uint32Array(bytes.buffer)[0];
  }

  paintClass(code, members, size) {
    const { context: pen, data } = this, colour = this.colour(code);
    pen.fillStyle = pen.strokeStyle = colour;
    const shape = ((code % 4) + 4) % 4;
    for (const faint of [true, false]) {
      pen.globalAlpha = faint ? 0.08 : 0.85;
      pen.lineWidth = Math.max(size * 0.45, 1);
      for (const i of members) {
        if (this.shown(i) === faint) continue;
        const [x, y] = this.toScreen(data.x[i], data.y[i]);
        if (shape === 1) pen.fillRect(x - size / 2, y - size / 2, size, size);
        else if (shape === 3) pen.strokeRect(x - size / 2.4, y - size / 2.4, size / 1.2, size / 1.2);
        else {
          pen.beginPath();
          pen.arc(x, y, shape === 0 ? size / 2 + 0.3 : size / 2.4, 0, 7);
          if (shape === 0) pen.fill();
          else pen.stroke();
        }
      }
    }
    pen.globalAlpha = 1;
  }

  // Given labels: a rim. Those of classes that are hidden are as faint as their dots.
  paintGiven(code, members, size) {
    const { context: pen, data } = this;
    pen.lineWidth = 1.5;
    for (const i of members) {
      if (!data.given[i]) continue;
      const [x, y] = this.toScreen(data.x[i], data.y[i]);
      pen.globalAlpha = this.shown(i) ? 1 : 0.08;
      pen.fillStyle = this.colour(code);
      pen.strokeStyle = this.dark ? "#fff" : "#000";
      pen.beginPath();
      pen.arc(x, y, size / 2 + 2, 0, 7);
      pen.fill();
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  paintSelected(size) {
    const { context: pen, data } = this;
    pen.strokeStyle = this.dark ? "#ffd75e" : "#b35900";
    pen.lineWidth = 1.2;
    for (const i of this.selected) {
      const [x, y] = this.toScreen(data.x[i], data.y[i]);
      pen.strokeRect(x - size / 2 - 1.5, y - size / 2 - 1.5, size + 3, size + 3);
    }
  }

  paintNames() {
    const { context: pen } = this;
    pen.font = "600 14px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    for (const name of this.names) {
      const [x, y] = this.toScreen(name.x, name.y);
      pen.globalAlpha = this.isFaint(name.code) ? 0.15 : 1;
      pen.strokeStyle = this.dark ? "#16181b" : "#fff";
      pen.fillStyle = this.dark ? "#fff" : "#000";
      pen.lineWidth = 4;
      pen.strokeText(name.text, x, y);
      pen.fillText(name.text, x, y);
    }
    pen.globalAlpha = 1;
  }

  isFaint(code) {
    return this.only !== undefined && this.only >= 0 && this.only !== code;
  }

  paintMark(i, size) {
    const { context: pen } = this, [x, y] = this.toScreen(this.data.x[i], this.data.y[i]);
    for (const [width, colour] of [[5, this.dark ? "#000" : "#fff"], [2.5, this.dark ? "#ffd75e" : "#c00"]]) {
      pen.lineWidth = width;
      pen.strokeStyle = colour;
      pen.beginPath();
      pen.arc(x, y, size, 0, 7);
      pen.stroke();
    }
  }

  paintRope() {
    const { context: pen } = this;
    pen.beginPath();
    this.rope.forEach(([x, y], at) => pen[at ? "lineTo" : "moveTo"](...this.toScreen(x, y)));
    pen.closePath();
    pen.fillStyle = this.dark ? "rgb(255 215 94 / .15)" : "rgb(179 89 0 / .12)";
    pen.strokeStyle = this.dark ? "#ffd75e" : "#b35900";
    pen.lineWidth = 1.5;
    pen.fill();
    pen.stroke();
  }

  // ---- what the user does

  point(i) {
    if (i === this.pointed) return;
    this.pointed = i;
    this.draw({ marks: true });
    this.onPoint(i);
  }

  choose(i, { bring = false } = {}) {
    this.chosen = i;
    this.pointed = -1;
    if (i >= 0 && bring && !this.isInside(i)) this.centre(i);
    this.draw({ marks: true });
    this.onChoose(i);
  }

  // Show one class alone; −1 for all.
  showOnly(code) {
    this.only = code;
    this.shown = code < 0 ? () => true : (i) => this.data.label[i] === code;
    this.draw();
  }

  setLasso(on) {
    this.lassoing = on;
    this.canvas.style.cursor = on ? "crosshair" : "";
    this.show(this.view);
  }

  select(members) {
    this.selected = members.length ? members : null;
    this.draw();
    this.onLasso(members);
  }

  // Samples inside the rope, by the rule of odd crossings.
  inside() {
    const { x, y } = this.data, rope = this.rope;
    const found = [];
    for (let i = 0; i < x.length; i += 1) {
      let odd = false;
      for (let a = 0, b = rope.length - 1; a < rope.length; b = a, a += 1) {
        const [ax, ay] = rope[a], [bx, by] = rope[b];
        if (ay > y[i] !== by > y[i] && x[i] < ((bx - ax) * (y[i] - ay)) / (by - ay) + ax) odd = !odd;
      }
      if (odd && this.shown(i)) found.push(i);
    }
    return found;
  }

  reach() {
    return 14 / (this.unit * this.view.scale);
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      this.pointers.set(event.pointerId, event);
      this.moved = 0;
      if (this.lassoing) {
        this.rope = [this.toMap(event)];
        canvas.setPointerCapture(event.pointerId);
      }
    });
    canvas.addEventListener("pointermove", (event) => this.move(event));
    const end = (event) => {
      this.pointers.delete(event.pointerId);
      if (this.rope.length > 2) this.select(this.inside());
      this.rope = [];
      this.draw();
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", () => this.point(-1));
    canvas.addEventListener("click", (event) => {
      if (this.moved <= 4 && !this.lassoing) this.choose(this.nearest(...this.toMap(event), this.reach()));
    });
    // The wheel scrolls the page, unless the map has the focus or Ctrl is held.
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 300), ...this.toMap(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  move(event) {
    const last = this.pointers.get(event.pointerId);
    if (!last) {
      this.point(this.nearest(...this.toMap(event), this.reach()));
      return;
    }
    const dx = event.clientX - last.clientX, dy = event.clientY - last.clientY;
    this.moved += Math.abs(dx) + Math.abs(dy);
    if (this.lassoing) {
      this.rope.push(this.toMap(event));
      this.draw();
    } else if (this.pointers.size === 2) {
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
      const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
      this.zoom(apart(event) / Math.max(apart(last), 1), ...this.toMap(other));
    } else if (this.view.scale > 1) {
      this.pan(-dx / this.box.width, -dy / this.box.height);
    }
    if (this.moved > 4 && !this.canvas.hasPointerCapture(event.pointerId)) this.canvas.setPointerCapture(event.pointerId);
    this.point(-1);
    this.pointers.set(event.pointerId, event);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (arrow && this.chosen >= 0) {
      const next = this.towards(this.chosen, ...arrow);
      if (next >= 0) this.choose(next, { bring: true });
    } else if (arrow) this.pan(arrow[0] / 8, arrow[1] / 8);
    else if (event.key === "+" || event.key === "=") this.zoom(1.5);
    else if (event.key === "-") this.zoom(1 / 1.5);
    else if (event.key === "0") this.home();
    else if (event.key === "Enter") {
      this.choose(this.nearest(this.view.x + this.view.width / 2, this.view.y + this.view.height / 2, this.size.width));
    } else if (event.key === "Escape") {
      this.select([]);
      this.choose(-1);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
