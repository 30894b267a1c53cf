"use strict";
// The map: zoom, pan, tooltips, and the same with the keyboard. Without this script it is a picture.
(() => {
  const svg = document.getElementById("map-svg");
  if (!svg) return;
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("map-data").textContent);
  const frame = byId("map-frame"), tip = byId("map-tip"), said = byId("map-said"), cursor = byId("map-cursor");
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const MOST = 60;
  let view = { x: 0, y: 0, scale: 1 };
  let chosen = -1;

  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  function show(next) {
    const scale = clamp(next.scale, 1, MOST);
    view = {
      scale,
      x: clamp(next.x, 0, width - width / scale),
      y: clamp(next.y, 0, height - height / scale),
    };
    svg.setAttribute("viewBox", `${view.x} ${view.y} ${width / scale} ${height / scale}`);
    // The names of the classes have the same size on the screen at every zoom.
    byId("map-names").style.fontSize = `${18 * width / scale / svg.getBoundingClientRect().width}px`;
    // On a touch screen the page scrolls over the whole map, and the map moves once it is zoomed.
    svg.style.touchAction = scale > 1 ? "none" : "pan-y";
    byId("map-out").disabled = scale <= 1;
    byId("map-home").disabled = scale <= 1;
    if (chosen >= 0) point(chosen);
  }

  function zoom(factor, x = view.x + width / view.scale / 2, y = view.y + height / view.scale / 2) {
    const scale = clamp(view.scale * factor, 1, MOST);
    const change = view.scale / scale;
    show({ scale, x: x - (x - view.x) * change, y: y - (y - view.y) * change });
  }

  function pan(dx, dy) {
    show({ ...view, x: view.x + dx * width / view.scale, y: view.y + dy * height / view.scale });
  }

  function toMap(event) {
    const box = svg.getBoundingClientRect();
    return [
      view.x + (event.clientX - box.left) / box.width * width / view.scale,
      view.y + (event.clientY - box.top) / box.height * height / view.scale,
    ];
  }

  function nearest(x, y, within) {
    let best = -1, least = within * within;
    data.x.forEach((px, i) => {
      const distance = (px - x) ** 2 + (data.y[i] - y) ** 2;
      if (distance <= least) [best, least] = [i, distance];
    });
    return best;
  }

  const percent = (share) => `${(100 * share).toFixed(1)} %`;

  function describe(i) {
    const label = `${data.ids[i]}: ${data.classes[data.label[i]]}`;
    if (data.given[i]) return `${label} (label given)`;
    const next = data.next[i] < 0 ? "" : `; next: ${data.classes[data.next[i]]}`;
    return `${label}, ${percent(data.sure[i])} sure${next}${data.unreached[i] ? "; no label reaches it" : ""}`;
  }

  // The mark and the tooltip of a sample.
  function point(i) {
    cursor.setAttribute("d", i < 0 ? "" : `M${data.x[i]} ${data.y[i]}h.01`);
    tip.hidden = i < 0;
    if (i < 0) return;
    tip.textContent = describe(i);
    const box = svg.getBoundingClientRect(), outer = frame.getBoundingClientRect();
    const left = (data.x[i] - view.x) * view.scale / width * box.width + box.left - outer.left;
    const top = (data.y[i] - view.y) * view.scale / height * box.height + box.top - outer.top;
    tip.style.left = `${clamp(left + 12, 0, Math.max(outer.width - tip.offsetWidth - 4, 0))}px`;
    tip.style.top = `${clamp(top + 12, 0, Math.max(outer.height - tip.offsetHeight - 4, 0))}px`;
  }

  // A sample is chosen: it is said to screen readers, and stays marked; with the labelled samples that count most.
  function choose(i) {
    chosen = i;
    point(i);
    const why = i < 0 || data.given[i] || !data.because[i] ? "" : `. Labelled samples that count most: ${data.because[i]}`;
    said.textContent = i < 0 ? "" : describe(i) + why;
  }

  function bring(i) {
    const scale = view.scale;
    const [w, h] = [width / scale, height / scale];
    const inside = Math.abs(data.x[i] - view.x - w / 2) < w / 2 && Math.abs(data.y[i] - view.y - h / 2) < h / 2;
    if (!inside) show({ scale, x: data.x[i] - w / 2, y: data.y[i] - h / 2 });
    choose(i);
  }

  // The sample that is next in a direction: near, and not far off to the side.
  function towards(i, dx, dy) {
    let best = -1, least = Infinity;
    data.x.forEach((px, j) => {
      const [ax, ay] = [px - data.x[i], data.y[j] - data.y[i]];
      const along = ax * dx + ay * dy, aside = Math.abs(ax * dy) + Math.abs(ay * dx);
      if (j !== i && along > 0 && along >= aside && along + aside < least) [best, least] = [j, along + aside];
    });
    return best;
  }

  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  svg.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key];
    if (arrow && chosen >= 0) {
      const next = towards(chosen, ...arrow);
      if (next >= 0) bring(next);
    } else if (arrow) pan(arrow[0] / 8, arrow[1] / 8);
    else if (event.key === "+" || event.key === "=") zoom(1.5);
    else if (event.key === "-") zoom(1 / 1.5);
    else if (event.key === "0") show({ x: 0, y: 0, scale: 1 });
    else if (event.key === "Enter") bring(nearest(view.x + width / view.scale / 2, view.y + height / view.scale / 2, Infinity));
    else if (event.key === "Escape") choose(-1);
    else return;
    event.preventDefault();
  });
  svg.querySelectorAll(".stop").forEach((stop) => {
    const i = Number(stop.dataset.i);
    stop.setAttribute("aria-label", describe(i));
    stop.addEventListener("focus", () => bring(i));
  });

  const pointers = new Map();
  let moved = 0;
  svg.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, event);
    moved = 0;
  });
  svg.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) {
      const [x, y] = toMap(event);
      const near = nearest(x, y, 14 * width / view.scale / svg.getBoundingClientRect().width);
      point(near >= 0 ? near : chosen);
      return;
    }
    const box = svg.getBoundingClientRect();
    const [dx, dy] = [event.clientX - last.clientX, event.clientY - last.clientY];
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
      zoom(apart(event) / Math.max(apart(last), 1), ...toMap(other));
    } else if (view.scale > 1) pan(-dx / box.width, -dy / box.height);
    moved += Math.abs(dx) + Math.abs(dy);
    if (moved > 4 && !svg.hasPointerCapture(event.pointerId)) svg.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, event);
  });
  ["pointerup", "pointercancel"].forEach((name) => svg.addEventListener(name, (event) => {
    pointers.delete(event.pointerId);
  }));
  svg.addEventListener("pointerleave", () => point(chosen));
  svg.addEventListener("click", (event) => {
    if (moved > 4) return;
    const [x, y] = toMap(event);
    choose(nearest(x, y, 14 * width / view.scale / svg.getBoundingClientRect().width));
  });
  // The wheel scrolls the page, unless the map has the focus or Ctrl is held.
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== svg) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 300), ...toMap(event));
  }, { passive: false });

  byId("map-in").addEventListener("click", () => zoom(1.5));
  byId("map-out").addEventListener("click", () => zoom(1 / 1.5));
  byId("map-home").addEventListener("click", () => show({ x: 0, y: 0, scale: 1 }));
  byId("map-find").addEventListener("submit", (event) => {
    event.preventDefault();
    const wanted = byId("map-id").value.trim();
    const i = data.ids.indexOf(wanted);
    if (i >= 0) bring(i);
    else said.textContent = wanted ? `${wanted} is not on the map` : "";
  });
  document.querySelectorAll("button[data-class]").forEach((button) => button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    document.querySelectorAll("button[data-class]").forEach((one) => one.setAttribute("aria-pressed", "false"));
    button.setAttribute("aria-pressed", String(on));
    svg.querySelectorAll(".dots, .hole, .names text").forEach((dots) => {
      dots.classList.toggle("faint", on && dots.dataset.class !== button.dataset.class);
    });
  }));
  document.querySelectorAll("a[data-i]").forEach((link) => link.addEventListener("click", (event) => {
    event.preventDefault();
    frame.scrollIntoView({ block: "center" });
    svg.focus({ preventScroll: true });
    bring(Number(link.dataset.i));
  }));

  addEventListener("resize", () => show(view));
  byId("map-controls").hidden = false;
  show(view);
})();
