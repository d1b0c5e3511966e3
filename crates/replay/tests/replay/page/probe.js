// Reads the page as a reader would and leaves what it found as JSON in an element of its own.
"use strict";
(() => {
  const found = { errors: window.tamisErrors, width: innerWidth, page_width: document.documentElement.scrollWidth };
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const number = (element) => (element ? Number(element.textContent.replace(/[,?]/g, "")) : null);
  const shown = (element) => getComputedStyle(element).display !== "none";
  const line = (link) => (link ? link.getAttribute("href").slice(1) : null);

  found.verdicts = Object.fromEntries(all("#verdict-table tbody tr").map((row) => [
    row.cells[0].textContent, { packets: number(row.cells[1]), bytes: Number(row.cells[4].dataset.v) },
  ]));
  found.lines = Object.fromEntries(all(".b .l").map((row) => [row.id, {
    packets: number(row.querySelector(":scope > b")),
    bytes: number(row.querySelector(":scope > i")),
    maybe: number(row.querySelector(":scope > u")) ?? 0,
    title: row.title,
    text: row.querySelector("code").firstChild ? row.querySelector("code").textContent : "",
    links: all("code > a", row).map(line),
  }]));
  found.drops = all("#drop-table tbody").map((body) => ({
    packets: number(body.rows[0].cells[0]),
    verdict: body.rows[0].cells[2].textContent,
    line: line(body.querySelector("a.to")),
    examples: all(".examples li", body).map((item) => item.querySelector("b").textContent),
  }));
  found.unknown = all("#unknown-table tbody").map((body) => ({
    packets: number(body.rows[0].cells[0]), line: line(body.querySelector("a.to")),
  }));

  // What another ruleset changes.
  found.changed = number(document.getElementById("changed"));
  found.turns = all(".turn b").map((sum) => ({ packets: parseInt(sum.textContent) }));
  found.changes = all(".change-table").flatMap((table) => all("tbody", table).map((body) => ({
    id: body.id,
    from: table.dataset.from,
    to: table.dataset.to,
    packets: number(body.rows[0].cells[0]),
    bytes: Number(body.rows[0].cells[1].dataset.v),
    lines: all("dd", body).map((side) => line(side.querySelector("a.to"))),
    texts: all("dd code", body).map((code) => code.textContent),
    examples: all(".examples li", body).map((item) => [item.querySelector("b").textContent, item.querySelector("code").textContent]),
  })));
  found.edited = { gone: all(".gone").map((row) => row.id), came: all(".came").map((row) => row.id) };
  found.effects = Object.fromEntries(all(".effect").map((link) => [link.closest(".l").id, [parseInt(link.textContent), line(link)]]));

  // The bars of the chart, added up.
  found.chart = {};
  for (const title of all(".plot.every title")) {
    for (const words of title.textContent.split("\n").slice(1)) {
      const [verdict, packets] = words.split(" ");
      found.chart[verdict] = (found.chart[verdict] ?? 0) + Number(packets.replaceAll(",", ""));
    }
  }
  found.bars = all(".plot.every rect").length;

  // Filters: lines left, and what the button promised.
  const rules = document.querySelector(".rules");
  const visible = () => all(".b .l", rules).filter((row) => shown(row) && row.matches(":has(em), :has(> b)"));
  found.filters = {};
  for (const button of all("input[type=radio]", rules)) {
    button.click();
    const lines = visible().filter((row) => row.querySelector("code").textContent.startsWith("-A"));
    found.filters[button.value] = { lines: lines.map((row) => row.id), promised: number(button.parentNode.querySelector("b")) };
  }
  rules.querySelector("[value=all]").click();

  // Search, then a link to a line that the search hides.
  const input = rules.querySelector("input[type=search]");
  const search = (words) => {
    input.value = words;
    input.dispatchEvent(new Event("input"));
    return all(".b .l", rules).filter(shown).map((row) => row.id);
  };
  found.search = { office: search("FROM-office"), none: search("no such words"), output: rules.querySelector(".tools output").textContent, cleared: search("").length };

  // Sorting: by packets, most first, then fewest first.
  const head = document.querySelector("#drop-table th");
  const order = () => all("#drop-table tbody").map((body) => number(body.rows[0].cells[0]));
  found.sorted = head ? [(head.click(), order()), (head.click(), order())] : [];

  // Themes.
  const paper = () => getComputedStyle(document.body).backgroundColor;
  const theme = document.getElementById("theme");
  found.themes = [0, 1, 2].map(() => { theme.click(); return [theme.textContent, paper()]; });

  // The chart's reading, and its second drawing.
  const bar = document.querySelector(".plot.every rect");
  bar?.dispatchEvent(new PointerEvent("pointermove", { bubbles: true }));
  found.reading = document.querySelector(".chart output")?.textContent;
  document.querySelector(".chart [value=rest]")?.click();
  found.drawings = all(".plot").map(shown);

  found.dangling = all("a[href^='#']").map(line).filter((id) => !document.getElementById(id));
  found.loaded = performance.getEntriesByType("resource").map((entry) => entry.name);
  found.ran = window.tamisRan ?? null;

  const out = parent.document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify(found);
  parent.document.body.append(out);
})();
