"use strict";
// The page of the studio, on the JSON API. All text is set as text, never as HTML.
(() => {
  const byId = (id) => document.getElementById(id);
  const token = document.querySelector("meta[name=token]").content;
  const RESERVED = "usn";
  const KEYS = [..."123456789", ..."abcdefghijklmnopqrstuvwxyz"].filter((key) => !RESERVED.includes(key));
  const COLOURS = ["#332288", "#CC6677", "#117733", "#88CCEE", "#DDCC77", "#882255", "#44AA99", "#999933", "#AA4499", "#777777"];
  const WHY = {
    informative: "its label would tell most about the others",
    uncertain: "its answer is the least certain",
    suspected: "the others do not support its label",
    disagreements: "annotators disagree",
    random: "drawn at random, to measure how often the model is right",
    agreement: "shown to all annotators, to see how well they agree",
    skip: "you skipped it before",
    chosen: "you chose it",
  };
  let state = null, sample = null, busy = false, last = [], changed = null, mapVersion = 0, mapLabels = -1, mapTime = 0, mapIds = [], fits = -1, twin = "", named = Promise.resolve();

  // ---- requests

  function address(path, query = {}) {
    return `${path}?${new URLSearchParams({ ...query, token })}`;
  }

  async function ask(path, query = {}, body) {
    const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    const response = await fetch(address(path, query), options);
    const found = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
    if (!response.ok) throw Object.assign(new Error(found.error ?? response.statusText), { refused: response.status < 500 });
    return found;
  }

  // A request that is repeated until the server has answered: the same answer twice counts once.
  async function insist(path, body) {
    for (;;) {
      try {
        const found = await ask(path, {}, body);
        alarm("");
        return found;
      } catch (error) {
        if (error.refused) throw error;
        alarm(`Not saved yet: ${error.message}. Trying again…`);
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
    }
  }

  function alarm(text) {
    byId("alarm").textContent = text;
    byId("alarm").hidden = !text;
  }

  const say = (text) => { byId("said").textContent = text; };
  const who = () => (byId("who-box").hidden ? undefined : byId("who").value);
  const asMe = () => (who() === undefined ? {} : { annotator: who() });
  const which = () => byId("list").value;
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

  function element(name, text = "", className = "") {
    const made = document.createElement(name);
    made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  // ---- classes

  const classNames = () => state.classes.map((one) => one.name);
  const colourOf = (name) => (map ? map.colour(classNames().indexOf(name)) : COLOURS[Math.max(classNames().indexOf(name), 0) % COLOURS.length]);
  // A class whose name is one digit or letter has that as its key, so that "3" is the key of 3; the others have the keys
  // that are left, in order. The key of a class never changes.
  function classKeys() {
    const taken = new Set();
    return classNames().map((name) => {
      const own = name.toLowerCase(), free = (key) => !taken.has(key);
      const key = ["0", ...KEYS].includes(own) && free(own) ? own : KEYS.find(free) ?? "";
      taken.add(key);
      return key;
    });
  }

  function showClasses() {
    const box = byId("classes");
    const names = state.classes.map((one) => one.name).join("\u0000");
    if (box.dataset.names !== names) {
      box.dataset.names = names;
      const keys = classKeys();
      box.replaceChildren(...state.classes.map((one, place) => {
        const button = element("button");
        button.type = "button";
        button.append(element("span", one.name), element("small", "", "count"));
        if (keys[place]) {
          button.prepend(element("kbd", keys[place]));
          button.setAttribute("aria-keyshortcuts", keys[place]);
        }
        button.addEventListener("click", () => answer({ label: one.name }));
        return button;
      }));
    }
    [...box.children].forEach((button, place) => {
      const one = state.classes[place];
      button.style.setProperty("--colour", colourOf(one.name));
      button.querySelector(".count").textContent = one.labels;
      button.classList.toggle("mine", sample?.mine?.label === one.name);
    });
    byId("new-label").textContent = state.classes.length ? "Another class (press + to type)" : "What is this? Type the name of its class";
  }

  // ---- the sample

  function partOf(part, id) {
    const box = element("div", "", "part");
    if (part.kind === "image") {
      const image = element("img");
      image.alt = `Image of ${id}`;
      image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth < 100));
      image.src = address(`/media/${part.file}`, { id });
      box.append(image);
    } else if (part.kind === "audio") {
      const audio = element("audio");
      audio.controls = true;
      audio.src = address(`/media/${part.file}`, { id });
      box.append(audio);
    } else if (part.kind === "text") {
      if (part.name) box.append(element("div", part.name, "name"));
      box.append(element("div", part.text + (part.cut ? " …" : ""), "text"));
    } else if (part.kind === "table") {
      const table = element("table");
      for (const [name, value] of part.rows) {
        const row = table.insertRow();
        row.append(element("th", name), element("td", value));
      }
      box.append(table);
      if (part.more) box.append(element("p", `and ${count(part.more, "more column")}`, "hint"));
    } else box.append(element("p", `There is no ${part.what} of this sample.`, "missing"));
    return box;
  }

  function showSample() {
    const content = byId("content");
    if (!sample.id) {
      byId("sample-title").textContent = "Nothing is left here";
      byId("why-asked").textContent = "";
      content.replaceChildren(element("p", which() === "informative" ? "All samples have an answer." : "This list is empty: choose another above.", "missing"));
      byId("guesses").replaceChildren();
      byId("because").replaceChildren();
      byId("because-title").hidden = true;
      byId("model-note").textContent = "";
      return;
    }
    byId("sample-title").textContent = sample.id;
    const first = !state.labelled && sample.why_asked === "informative";
    const why = first ? "it is as different from the others as possible" : WHY[sample.why_asked];
    byId("why-asked").textContent = why ? `Asked because ${why}` : "";
    const parts = sample.content.map((part) => partOf(part, sample.id));
    content.replaceChildren(...(parts.length ? parts : [element("p", "Nothing to show of this sample: see --show.", "missing")]));
    content.scrollTop = 0;
    showModel();
  }

  function showModel() {
    const guesses = sample.guesses.slice(0, 6);
    byId("guesses").replaceChildren(...guesses.map((guess) => {
      const row = element("li"), bar = element("span", "", "bar"), fill = element("i");
      row.style.setProperty("--colour", colourOf(guess.label));
      fill.style.transform = `scaleX(${guess.probability})`;
      bar.append(fill);
      row.append(element("span", guess.label), bar, element("b", percent(guess.probability)));
      return row;
    }));
    const notes = [];
    if (!state.labelled) notes.push("Nothing yet: there is no label to learn from. The first samples are as different from each other as possible.");
    else if (!sample.reached) notes.push("No label reaches this sample through the graph: the numbers are the frequencies of the labels.");
    else if (state.classes.filter((one) => one.labels).length < 2) notes.push("So far there is one class only.");
    if (sample.given) notes.push(`The files say: ${sample.given}.`);
    if (sample.labelled) notes.push("This is what the other labels say of it.");
    if (sample.mine) notes.push(sample.mine.label ? `You said: ${sample.mine.label}.` : "You left it open.");
    const others = Object.entries(sample.others ?? {}).map(([name, label]) => `${name} said: ${label}.`);
    if (others.length) notes.push(...others, "It counts as open until you agree.");
    byId("model-note").textContent = notes.join(" ");
    const because = sample.because ?? [];
    byId("because-title").hidden = !because.length;
    byId("because").replaceChildren(...because.map((reason) => {
      const box = element("li"), inner = element("div", "", "small-content");
      box.style.setProperty("--colour", colourOf(reason.label));
      box.append(element("strong", reason.label ?? "–"), element("div", `${percent(reason.weight)} of the vote`, "hint"), element("div", reason.id, "hint"));
      inner.append(...reason.content.map((part) => partOf(part, reason.id)));
      box.append(inner);
      return box;
    }));
  }

  // Reasons that are still being computed come later: nobody waits for them.
  async function fillReasons() {
    const shown = sample;
    while (sample === shown && shown.because === null) {
      await new Promise((resolve) => setTimeout(resolve, 300));
      if (sample !== shown || busy) continue;
      const again = await ask("/api/next", { list: which(), ...asMe(), id: shown.id });
      if (sample !== shown || !again.because) continue;
      shown.because = again.because;
      showModel();
    }
  }

  async function next(query = {}) {
    sample = await ask("/api/next", { list: which(), ...asMe(), ...query });
    fillReasons().catch(() => {});
    showSample();
    showClasses();
    markSample();
    if (sample.id) say(`${sample.id}. ${sample.guesses.length ? `The model thinks ${sample.guesses[0].label}, ${percent(sample.guesses[0].probability)}.` : ""}`);
    if (!state.classes.length && sample.id) byId("new-name").focus({ preventScroll: true });
  }

  // ---- answers

  async function exclusively(work) {
    if (busy) return;
    busy = true;
    document.body.classList.add("busy");
    try {
      await work();
    } catch (error) {
      alarm(`Not taken: ${error.message}`);
    } finally {
      busy = false;
      document.body.classList.remove("busy");
    }
  }

  const answer = (given) => exclusively(async () => {
    if (!sample?.id) return;
    const taken = await insist("/api/label", { id: sample.id, ...asMe(), ...given });
    last.push(taken.number);
    changed = taken.changed;
    await Promise.all([refresh(), next()]);
    keepMap().catch(() => {});
    say(`${taken.label ? `Labelled ${taken.id} as ${taken.label}` : `Left ${taken.id}`}. ${count(changed, "answer")} changed. ${byId("said").textContent}`);
  });

  const undo = () => exclusively(async () => {
    const number = last.pop();
    const taken = await insist("/api/undo", { ...asMe(), ...(number === undefined ? {} : { number }) });
    if (taken.undone === null) {
      say("There is nothing to undo.");
      return;
    }
    changed = taken.changed;
    await refresh();
    await next({ id: taken.id });
    say(`Undone: ${taken.id} has no answer of yours now. ${byId("said").textContent}`);
  });

  function addClass(event) {
    event.preventDefault();
    const input = byId("new-name"), name = input.value.trim().replace(/\s+/g, " ");
    if (!name) return;
    const like = classNames().find((one) => one.toLowerCase() === name.toLowerCase());
    if (like && like !== name && twin !== name) {
      twin = name;
      byId("new-hint").textContent = `There is a class “${like}” already. Press its key, or Enter again to add “${name}” beside it.`;
      return;
    }
    twin = "";
    byId("new-hint").textContent = "";
    input.value = "";
    input.blur();
    answer({ label: name });
  }

  // ---- progress

  async function refresh() {
    state = await ask("/api/state", asMe());
    showClasses();
    showProgress();
    showWho();
  }

  // Large maps are fetched less often.
  async function keepMap() {
    const large = mapIds.length > 20000, due = performance.now() - mapTime > (large ? 10000 : 0);
    if (state.model.map_version !== mapVersion || (state.labelled !== mapLabels && due)) await refreshMap();
  }

  function showWho() {
    const names = state.annotators.map((one) => one.name), box = byId("who");
    if (state.annotators.length < 2 && !box.options.length) return;
    if (box.options.length === names.length) return;
    const chosen = box.value || new URLSearchParams(location.search).get("annotator") || sessionStorage.getItem("annotator");
    box.replaceChildren(...names.map((name) => new Option(name, name)));
    if (names.includes(chosen)) box.value = chosen;
    byId("who-box").hidden = false;
    if (!names.includes(chosen)) named = askWho(names);
  }

  // Nobody labels under the name of somebody else by accident.
  function askWho(names) {
    const dialog = byId("who-dialog");
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.showModal();
    return new Promise((resolve) => {
      byId("who-buttons").replaceChildren(...names.map((name) => {
        const button = element("button", name);
        button.addEventListener("click", () => {
          byId("who").value = name;
          sessionStorage.setItem("annotator", name);
          resolve();
        });
        return button;
      }));
    });
  }

  // The whole id, else the first that contains what was typed.
  function find(event) {
    event.preventDefault();
    const input = byId("find-id"), wanted = input.value.trim();
    if (!wanted) return;
    const part = wanted.toLowerCase(), like = mapIds.find((one) => one.toLowerCase().includes(part));
    const id = mapIds.includes(wanted) ? wanted : like ?? wanted;
    exclusively(async () => {
      try {
        await next({ id });
        alarm("");
        input.value = "";
        input.blur();
      } catch (error) {
        alarm(error.message);
      }
    });
  }

  function fact(name, value, small) {
    const box = element("div"), number = element("dd", value);
    if (small) number.append(element("small", small));
    box.append(element("dt", name), number);
    return box;
  }

  function showProgress() {
    const { model } = state, facts = [];
    facts.push(fact("labels", state.labelled.toLocaleString("en"), `of ${count(state.samples, "sample")}`));
    if (changed !== null) facts.push(fact("changed by the last answer", changed.toLocaleString("en"), "other answers"));
    if (model.expected !== null) facts.push(fact("expected accuracy", percent(model.expected), "by the model's own confidence"));
    if (state.checked) facts.push(fact("right on random samples", `${state.checked.right} of ${state.checked.samples}`, `95 %: ${percent(state.checked.low)} to ${percent(state.checked.high)}`));
    if (model.hidden) facts.push(fact("held-out labels found", percent(model.hidden.accuracy), `${model.hidden.found} of ${model.hidden.hidden}, 95 %: ${percent(model.hidden.low)} to ${percent(model.hidden.high)}; samples that were asked for are harder than the rest`));
    if (state.kappa) facts.push(fact("agreement", state.kappa.kappa === null ? "–" : `κ = ${state.kappa.kappa.toFixed(2)}`, `${state.kappa.agree} of ${state.kappa.samples} alike; ${count(state.disagreements, "disagreement")} open`));
    byId("facts").replaceChildren(...facts);
    const status = model.error ? `The last fit failed: ${model.error}` : model.status === "fitting" ? "fitting…" : model.fits ? `model of ${count(model.labels_in_fit, "label")}` : "no model yet";
    byId("summary").textContent = `${count(state.labelled, "label")} · ${status}`;
    const going = model.going_on;
    byId("going-on").textContent = !going ? "Worth going on? That can be told a few labels after the first fit." : going.worth
      ? `Worth going on: ${going.more} more labels would bring about ${(100 * going.gain).toFixed(1)} points, to ${percent(going.then)}.`
      : `Hardly worth going on: ${going.more} more labels would bring about ${(100 * going.gain).toFixed(1)} points.`;
    drawCurve();
  }

  // The expected accuracy by number of labels, and where it is heading.
  function drawCurve() {
    const canvas = byId("curve"), pen = canvas.getContext("2d"), ratio = devicePixelRatio || 1;
    const box = canvas.getBoundingClientRect(), style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--soft"), line = style.getPropertyValue("--line"), accent = style.getPropertyValue("--accent");
    [canvas.width, canvas.height] = [box.width * ratio, box.height * ratio];
    pen.scale(ratio, ratio);
    const points = state.model.curve, going = state.model.going_on;
    canvas.hidden = points.length < 2;
    if (canvas.hidden) return;
    const end = points.at(-1), far = end[0] + (going ? going.more : 0);
    const low = Math.min(...points.map((one) => one[1])), floor = Math.floor(10 * Math.max(low - 0.05, 0)) / 10;
    const x = (n) => 40 + ((n - points[0][0]) / Math.max(far - points[0][0], 1)) * (box.width - 52);
    const y = (share) => 8 + (1 - (share - floor) / (1 - floor)) * (box.height - 34);
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = ink;
    pen.strokeStyle = line;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const share of [floor, (1 + floor) / 2, 1]) {
      pen.beginPath();
      pen.moveTo(40, y(share));
      pen.lineTo(box.width - 12, y(share));
      pen.stroke();
      pen.fillText(`${Math.round(100 * share)} %`, 34, y(share));
    }
    pen.textAlign = "center";
    pen.fillText(String(points[0][0]), x(points[0][0]), box.height - 8);
    pen.fillText(`${end[0]} labels`, Math.min(Math.max(x(end[0]), 90), box.width - 40), box.height - 8);
    pen.strokeStyle = accent;
    pen.lineWidth = 2;
    pen.beginPath();
    points.forEach(([n, share], at) => pen[at ? "lineTo" : "moveTo"](x(n), y(share)));
    pen.stroke();
    if (going) {
      pen.setLineDash([4, 4]);
      pen.beginPath();
      pen.moveTo(x(end[0]), y(end[1]));
      pen.lineTo(x(far), y(going.then));
      pen.stroke();
      pen.setLineDash([]);
    }
    canvas.setAttribute("aria-label", `Expected accuracy over the number of labels: from ${percent(points[0][1])} with ${points[0][0]} to ${percent(end[1])} with ${end[0]}`);
  }

  // ---- the map

  let map = null;

  function tipOf(i) {
    const tip = byId("map-tip");
    tip.hidden = i < 0;
    if (i < 0) return;
    const name = map.data.label[i] < 0 ? "" : `: ${classNames()[map.data.label[i]]}${map.data.given[i] ? " (labelled)" : `, ${map.data.sure[i]} %`}`;
    tip.textContent = `${mapIds[i]}${name}`;
    const [x, y] = map.toScreen(map.data.x[i], map.data.y[i]), frame = byId("map-frame");
    tip.style.left = `${Math.max(0, Math.min(x + 12, frame.clientWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${Math.max(0, Math.min(y + 12, frame.clientHeight - tip.offsetHeight - 4))}px`;
  }

  async function refreshMap() {
    const found = await ask("/api/map", { since: mapVersion });
    if (!found.version) return;
    if (found.ids) mapIds = found.ids;
    byId("map-wait").hidden = true;
    [mapVersion, mapLabels, mapTime] = [found.version, state.labelled, performance.now()];
    map.setData(found, { width: 1000, height: 1000 }, found.names);
    markSample();
  }

  function markSample() {
    map.chosen = sample?.id ? mapIds.indexOf(sample.id) : -1;
    map.draw({ marks: true });
  }

  function startMap() {
    map = new SampleMap(byId("map"), {
      colours: COLOURS,
      onPoint: tipOf,
      onChoose: (i) => { if (i >= 0 && mapIds[i] !== sample?.id) exclusively(() => next({ id: mapIds[i] })); },
    });
    byId("map-in").addEventListener("click", () => map.zoom(1.5));
    byId("map-out").addEventListener("click", () => map.zoom(1 / 1.5));
    byId("map-home").addEventListener("click", () => map.home());
  }

  // ---- keys

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const typing = event.target.matches?.("input, select, textarea");
    if (event.key === "Escape" && typing) {
      event.target.blur();
      return;
    }
    if (typing || byId("help").open || byId("who-dialog").open) return;
    const place = state ? classKeys().indexOf(event.key.toLowerCase()) : -1;
    if (event.key === "?") byId("help").showModal();
    else if (event.key === "+") byId("new-name").focus();
    else if (event.key === "u") undo();
    else if (event.key === "s") answer({ kind: "skip" });
    else if (event.key === "n") answer({ kind: "none" });
    else if (place >= 0) answer({ label: state.classes[place].name });
    else return;
    event.preventDefault();
  }

  function showKeys() {
    const rows = [
      ["digits and letters", "the class with this key, as on its button"], ["+", "type the name of another class"], ["u", "undo your last answer"],
      ["s", "skip: ask again later"], ["n", "none of these classes"], ["?", "this list"], ["Tab, Enter", "go to any button and press it"],
      ["on the map", "+ and − zoom, arrows move, 0 shows all, Enter takes the sample in the middle"],
    ];
    byId("help-keys").replaceChildren(...rows.map(([key, text]) => {
      const row = element("tr"), cell = element("td");
      cell.append(element("kbd", key));
      row.append(cell, element("td", text));
      return row;
    }));
  }

  async function poll() {
    if (!busy && document.visibilityState === "visible") {
      try {
        await refresh();
        await keepMap();
        if (fits !== state.model.fits && sample?.id && !busy) {
          fits = state.model.fits;
          const again = await ask("/api/next", { list: which(), ...asMe(), id: sample.id });
          if (again.id === sample.id && !busy) {
            sample = { ...again, why_asked: sample.why_asked };
            showModel();
          }
        }
        if (byId("alarm").textContent.startsWith("The server")) alarm("");
      } catch (error) {
        alarm(`The server does not answer (${error.message}). Nothing is lost: start it again, and open the address that it prints.`);
      }
    }
    setTimeout(poll, 2000);
  }

  async function start() {
    showKeys();
    startMap();
    document.addEventListener("keydown", onKey);
    byId("new-class").addEventListener("submit", addClass);
    byId("new-name").addEventListener("keydown", (event) => { if (event.key === "+" && !event.target.value) event.preventDefault(); });
    byId("undo").addEventListener("click", undo);
    byId("find").addEventListener("submit", find);
    byId("skip").addEventListener("click", () => answer({ kind: "skip" }));
    byId("none").addEventListener("click", () => answer({ kind: "none" }));
    byId("help-button").addEventListener("click", () => byId("help").showModal());
    byId("list").addEventListener("change", (event) => { event.target.blur(); exclusively(() => next()); });
    byId("who").addEventListener("change", (event) => {
      sessionStorage.setItem("annotator", event.target.value);
      last = [];
      event.target.blur();
      exclusively(() => next());
    });
    document.querySelectorAll("a[data-format]").forEach((link) => { link.href = address("/api/export", { format: link.dataset.format }); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      showClasses();
      drawCurve();
      if (sample?.id) showModel();
    });
    addEventListener("resize", drawCurve);
    try {
      state = await ask("/api/state");
      showWho();
      await named;
      await refresh();
      await keepMap();
      fits = state.model.fits;
      await exclusively(() => next());
      document.body.dataset.ready = "yes";
    } catch (error) {
      alarm(`The page cannot start: ${error.message}`);
    }
    setTimeout(poll, 1000);
  }

  start();
})();
