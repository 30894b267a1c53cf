// The map of the report: a SampleMap with tooltips, search, lasso and legend.
(() => {
  const byId = (id) => document.getElementById(id);
  const canvas = byId("map-canvas");
  if (!canvas) return;
  const data = JSON.parse(byId("map-data").textContent);
  const frame = byId("map-frame"), tip = byId("map-tip"), said = byId("map-said");
  let selected = [];

  const percent = (share) => `${(100 * share).toFixed(1)} %`;

  function describe(i) {
    const label = `${data.ids[i]}: ${data.classes[data.label[i]]}`;
    if (data.given[i]) return `${label} (label given)`;
    const next = data.next[i] < 0 ? "" : `; next: ${data.classes[data.next[i]]}`;
    return `${label}, ${percent(data.sure[i])} sure${next}${data.unreached[i] ? "; no label reaches it" : ""}`;
  }

  // The labelled samples that count most in an answer.
  function why(i) {
    return data.given[i] || !data.because[i] ? "" : `. Labelled samples that count most: ${data.because[i]}`;
  }

  // What the page has of the sample that is marked: cells, texts and images.
  function showRow(i) {
    const box = byId("map-row");
    let parts = i < 0 ? [] : data.details[i] ?? [];
    if (i >= 0 && !parts.length && Object.keys(data.details).length) parts = [["", "The page shows nothing more of this sample."]];
    box.hidden = !parts.length;
    box.replaceChildren(...parts.flatMap(([name, value]) => {
      const term = document.createElement("dt"), part = document.createElement("dd");
      term.textContent = name;
      if (typeof value === "string") part.textContent = value;
      else part.append(picture(value.image, `${name} of ${data.ids[i]}`));
      return [term, part];
    }));
  }

  // Small pictures are drawn larger, with sharp pixels.
  function picture(address, text) {
    const image = new Image();
    image.alt = text;
    image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth <= 64));
    image.src = address;
    return image;
  }

  // The tooltip is at the dot that is pointed at, else at the one that is marked, as long as that is in sight.
  function showTip() {
    const i = map.pointed >= 0 ? map.pointed : map.chosen;
    tip.hidden = i < 0 || !map.isInside(i);
    if (tip.hidden) return;
    tip.textContent = describe(i);
    const [x, y] = map.toScreen(data.x[i], data.y[i]);
    const left = x + canvas.offsetLeft + 12, top = y + canvas.offsetTop + 12;
    tip.style.left = `${Math.max(0, Math.min(left, frame.clientWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${Math.max(0, Math.min(top, frame.clientHeight - tip.offsetHeight - 4))}px`;
  }

  function list(members) {
    selected = members;
    byId("map-list").hidden = !members.length;
    const counts = new Map();
    for (const i of members) counts.set(data.label[i], (counts.get(data.label[i]) ?? 0) + 1);
    const parts = [...counts].sort((one, other) => other[1] - one[1]).map(([code, n]) => `${data.classes[code]} (${n})`);
    byId("map-list-title").textContent = `${members.length.toLocaleString("en")} samples: ${parts.slice(0, 8).join(", ")}`;
    byId("map-list-ids").textContent = members.slice(0, 200).map((i) => data.ids[i]).join(", ") + (members.length > 200 ? " …" : "");
    if (members.length) said.textContent = `${members.length} samples in the lasso`;
  }

  const map = new SampleMap(canvas, {
    colours: data.colours,
    onPoint: () => showTip(),
    onChoose: (i) => {
      said.textContent = i < 0 ? "" : describe(i) + why(i);
      showRow(i);
      showTip();
    },
    onLasso: list,
    onView: (view) => {
      byId("map-out").disabled = byId("map-home").disabled = view.scale <= 1;
      if (tip.textContent) showTip();
    },
  });
  map.setData({ x: data.x, y: data.y, label: data.label, given: data.given }, { width: data.width, height: data.height }, data.names);

  // The legend has the colours of the dots, which are lighter on a dark ground.
  function paintLegend() {
    document.querySelectorAll("button[data-class]").forEach((one) => { one.querySelector("svg").style.color = map.colour(Number(one.dataset.class)); });
  }
  paintLegend();
  for (const query of [map.scheme, map.printing]) query.addEventListener("change", paintLegend);

  function bring(i) {
    map.showOnly(-1);
    document.querySelectorAll("button[data-class]").forEach((one) => one.setAttribute("aria-pressed", "false"));
    map.centre(i, Math.max(map.view.scale, 4));
    map.choose(i);
  }

  byId("map-in").addEventListener("click", () => map.zoom(1.5));
  byId("map-out").addEventListener("click", () => map.zoom(1 / 1.5));
  byId("map-home").addEventListener("click", () => map.home());
  byId("map-lasso").addEventListener("click", (event) => {
    const on = event.target.getAttribute("aria-pressed") !== "true";
    event.target.setAttribute("aria-pressed", String(on));
    map.setLasso(on);
    if (!on) map.select([]);
  });
  byId("map-copy").addEventListener("click", () => navigator.clipboard?.writeText(selected.map((i) => data.ids[i]).join("\n")));
  // The whole id, else the first that contains what was typed.
  byId("map-find").addEventListener("submit", (event) => {
    event.preventDefault();
    const wanted = byId("map-id").value.trim();
    if (!wanted) return;
    let i = data.ids.indexOf(wanted);
    if (i < 0) i = data.ids.findIndex((id) => id.toLowerCase().includes(wanted.toLowerCase()));
    if (i >= 0) bring(i);
    else said.textContent = `${wanted} is not on the map`;
  });
  document.querySelectorAll("button[data-class]").forEach((button) => button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    document.querySelectorAll("button[data-class]").forEach((one) => one.setAttribute("aria-pressed", "false"));
    button.setAttribute("aria-pressed", String(on));
    map.showOnly(on ? Number(button.dataset.class) : -1);
  }));
  document.querySelectorAll("a[data-i]").forEach((link) => link.addEventListener("click", (event) => {
    event.preventDefault();
    frame.scrollIntoView({ block: "center" });
    canvas.focus({ preventScroll: true });
    bring(Number(link.dataset.i));
  }));
  byId("map-controls").hidden = false;
})();
