// What the page does beyond a style sheet: theme, search, sorting, the numbers below the chart.
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

  // Search: every line whose text holds the words, letter case aside.
  const mark = (lines, words) => {
    if (!window.CSS?.highlights || !window.Highlight) return;
    const ranges = [];
    for (const line of lines.slice(0, 500)) {
      const texts = document.createTreeWalker(line.querySelector("code"), NodeFilter.SHOW_TEXT);
      for (let node = texts.nextNode(); node; node = texts.nextNode()) {
        const text = node.data.toLowerCase();
        for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + words.length)) {
          const end = Math.min(at + words.length, node.length);
          ranges.push(new StaticRange({ startContainer: node, startOffset: at, endContainer: node, endOffset: end }));
        }
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  };
  for (const rules of all(".rules")) {
    const input = rules.querySelector("input[type=search]");
    const output = rules.querySelector("output");
    const lines = all(".b .l", rules);
    const blocks = all(".b", rules);
    let texts;
    const search = () => {
      const words = input.value.trim().toLowerCase();
      texts ??= lines.map((line) => line.querySelector("code").textContent.toLowerCase());
      rules.classList.toggle("searched", words !== "");
      const found = lines.filter((line, index) => {
        const holds = words !== "" && texts[index].includes(words);
        line.classList.toggle("found", holds);
        return holds;
      });
      for (const block of blocks) block.style.setProperty("--n-found", block.querySelectorAll(".found").length);
      output.textContent = words === "" ? "" : `${found.length} line${found.length === 1 ? "" : "s"}`;
      window.CSS?.highlights?.delete("found");
      if (words !== "") mark(found, words);
    };
    input.hidden = false;
    input.addEventListener("input", search);
    if (input.value) search();
    // A link to a line that a filter or a search hides shows every line again.
    window.addEventListener("hashchange", () => {
      const target = document.getElementById(location.hash.slice(1));
      if (!target || !rules.contains(target) || target.offsetParent) return;
      rules.querySelector("[value=all]").checked = true;
      input.value = "";
      search();
      target.scrollIntoView();
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.matches("input") || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    document.querySelector("input[type=search]")?.focus();
  });

  // Sorting: a body of a table is one row with what belongs to it.
  const value = (body, column) => {
    const cell = body.rows[0].cells[column];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  };
  const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b));
  for (const table of all("table.sort")) {
    for (const [column, head] of [...table.tHead.rows[0].cells].entries()) {
      const sort = () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const sign = down ? -1 : 1;
        const bodies = [...table.tBodies];
        bodies.sort((a, b) => sign * compare(value(a, column), value(b, column)));
        table.append(...bodies);
      };
      head.classList.add("by");
      head.tabIndex = 0;
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
    }
  }

  // Chart: the numbers of the bar under the pointer.
  for (const chart of all(".chart")) {
    const output = chart.querySelector("output");
    const hint = "Point at a bar for its numbers.";
    output.textContent = hint;
    output.classList.add("hint");
    let on;
    const read = (event) => {
      on?.classList.remove("on");
      on = event.target.closest("rect");
      on?.classList.add("on");
      const lines = on?.querySelector("title").textContent.split("\n");
      output.classList.toggle("hint", !lines);
      output.textContent = lines ? `${lines[0]}: ${lines.slice(1).join(", ")}` : hint;
    };
    chart.addEventListener("pointermove", read);
    chart.addEventListener("pointerdown", read);
  }
})();
