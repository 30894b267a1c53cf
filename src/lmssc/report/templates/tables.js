// Tables that sort by a click on a heading, filter by text, and copy.
(() => {
  const number = (text) => {
    const found = text.replace(/[,\s]/g, "").replace("−", "-").match(/^[+-]?\d*\.?\d+/);
    return found ? Number(found[0]) : null;
  };
  const cells = (row) => [...row.cells].map((cell) => cell.textContent.trim());

  function sortBy(table, place, button) {
    const down = button.dataset.sorted === "up";
    table.querySelectorAll("thead button").forEach((one) => { delete one.dataset.sorted; one.parentElement.removeAttribute("aria-sort"); });
    button.dataset.sorted = down ? "down" : "up";
    button.parentElement.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0], rows = [...body.rows];
    const values = new Map(rows.map((row) => [row, cells(row)[place] ?? ""]));
    const numeric = rows.every((row) => number(values.get(row)) !== null || ["", "–"].includes(values.get(row)));
    rows.sort((one, other) => {
      const [a, b] = [values.get(one), values.get(other)];
      const order = numeric ? (number(a) ?? -Infinity) - (number(b) ?? -Infinity) : a.localeCompare(b, "en", { numeric: true });
      return down ? -order : order;
    });
    body.append(...rows);
  }

  document.querySelectorAll(".scroll > table").forEach((table) => {
    if (!table.tBodies.length || table.tBodies[0].rows.length < 3) return;
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      if (!head.textContent.trim()) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sortBy(table, place, button));
      head.append(button);
    });
    const tools = document.createElement("div");
    tools.className = "table-tools";
    const caption = table.caption?.textContent ?? "the table";
    if (table.tBodies[0].rows.length > 8) {
      const input = document.createElement("input");
      input.type = "search";
      input.placeholder = "filter";
      input.setAttribute("aria-label", `Filter: ${caption}`);
      input.addEventListener("input", () => {
        const wanted = input.value.toLowerCase();
        for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
      });
      tools.append(input);
    }
    const copy = document.createElement("button");
    copy.type = "button";
    copy.textContent = "Copy";
    copy.setAttribute("aria-label", `Copy: ${caption}`);
    copy.addEventListener("click", async () => {
      const rows = [...table.tHead.rows, ...[...table.tBodies[0].rows].filter((row) => !row.hidden)];
      await navigator.clipboard?.writeText(rows.map((row) => cells(row).join("\t")).join("\n"));
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    });
    tools.append(copy);
    table.parentElement.before(tools);
  });
})();
