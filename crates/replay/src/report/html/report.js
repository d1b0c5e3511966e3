// What the page does beyond a style sheet: theme, sorting and folding of tables, the numbers below the chart, print.
"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // Theme: as the system says, then light, then dark. A page opened from a file may not be able to keep it.
  const themes = ["auto", "light", "dark"];
  const button = document.getElementById("theme");
  const keep = (theme) => { try { localStorage.setItem("tamis-theme", theme); } catch { /* not kept */ } };
  const kept = () => { try { return localStorage.getItem("tamis-theme"); } catch { return null; } };
  const show = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = `theme: ${theme}`;
  };
  show(themes.includes(kept()) ? kept() : "auto");
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length];
    show(next);
    keep(next);
  });

  // Sorting: a body of a table is one row with what belongs to it.
  const value = (body, column) => {
    const cell = body.rows[0].cells[column];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  };
  const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b));
  for (const table of all("table.sort")) {
    for (const [column, head] of [...table.tHead.rows[0].cells].entries()) {
      if (!head.matches("th")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      const sort = () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const sign = down ? -1 : 1;
        const bodies = [...table.tBodies];
        bodies.sort((a, b) => sign * compare(value(a, column), value(b, column)));
        table.append(...bodies);
      };
      button.addEventListener("click", sort);
    }
  }

  // Folding: what decided most is shown down to the tenth, the rest on demand.
  const FOLD = 10;
  for (const table of all("table.ends").filter((table) => table.tBodies.length > FOLD)) {
    const unfold = document.createElement("button");
    unfold.type = "button";
    unfold.className = "unfold";
    const fold = (folded) => {
      table.classList.toggle("folded", folded);
      unfold.setAttribute("aria-expanded", String(!folded));
      unfold.textContent = folded ? `Show all ${table.tBodies.length}` : `Show ${FOLD}`;
    };
    unfold.addEventListener("click", () => fold(!table.classList.contains("folded")));
    fold(true);
    table.closest(".scroll").after(unfold);
    // A link to a row that is folded away.
    const target = () => {
      const row = document.getElementById(location.hash.slice(1));
      if (!row || !table.contains(row) || row.getClientRects().length) return;
      fold(false);
      row.scrollIntoView();
    };
    window.addEventListener("hashchange", target);
    target();
  }

  // Print: what is closed on the screen is open on paper.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = all("details:not([open])");
    for (const details of opened) details.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });

  // Chart: the numbers of the bar under the pointer, or of the one that the arrow keys have come to.
  for (const chart of all(".chart")) {
    const output = chart.querySelector("output");
    const hint = "Point at a bar for its numbers, or go through them with the arrow keys.";
    output.textContent = hint;
    output.classList.add("hint");
    let on;
    const read = (bar) => {
      on?.classList.remove("on");
      on = bar;
      on?.classList.add("on");
      const lines = on?.querySelector("title").textContent.split("\n");
      output.classList.toggle("hint", !lines);
      output.textContent = lines ? `${lines[0]}: ${lines.slice(1).join(", ")}` : hint;
    };
    const point = (event) => read(event.target.closest("rect"));
    chart.addEventListener("pointermove", point);
    chart.addEventListener("pointerdown", point);
    for (const plot of all(".plot", chart)) {
      const bars = all("rect", plot);
      const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -bars.length, End: bars.length };
      plot.tabIndex = 0;
      plot.setAttribute("role", "group");
      plot.setAttribute("aria-label", "packets by verdict over time; arrow keys go from bar to bar");
      plot.addEventListener("keydown", (event) => {
        const step = steps[event.key];
        if (step === undefined || bars.length === 0) return;
        event.preventDefault();
        const at = bars.indexOf(on);
        const first = at < 0 && Math.abs(step) === 1 ? 0 : at + step;
        read(bars[Math.min(Math.max(first, 0), bars.length - 1)]);
      });
    }
  }
})();
