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
    text: [...row.querySelector("code").childNodes].filter((node) => !node.matches?.("a.packets")).map((node) => node.textContent).join(""),
    links: all("code > a", row).map(line),
  }]));
  found.drops = all("#drop-table tbody").map((body) => ({
    packets: number(body.rows[0].cells[0]),
    verdict: body.rows[0].cells[2].textContent,
    line: line(body.querySelector("a.to")),
    examples: all(".examples li", body).map((item) => item.querySelector("b").textContent),
    paths: all(".examples li", body).map((item) => item.querySelector(".path")?.textContent ?? null),
    led: all(".path", body).map((path) => all("a", path).map((link) => [link.textContent, line(link)])),
  }));
  found.accepts = all("#accept-table tbody").map((body) => ({
    packets: number(body.rows[0].cells[0]), line: line(body.querySelector("a.to")), id: body.id,
  }));
  found.rows_of = Object.fromEntries(all("a.packets").map((link) => [link.closest(".l").id, line(link)]));
  found.who = Object.fromEntries(all(".who").map((table) => [table.classList[1], all("tbody tr", table).map((row) => [row.cells[0].textContent, number(row.cells[1])])]));

  // Rows of what dropped that are shown, and once they are unfolded.
  const rows = () => all("#drop-table tbody").filter(shown).length;
  const unfold = document.querySelector("#drops .unfold");
  found.unfolds = [rows(), (unfold?.click(), rows())];
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

  // What finds addresses: for each search, what marks each line.
  const LINES = [
    "-A f -s 10.0.0.0/8 -j DROP",
    "-A f -d 10.1.0.0/255.255.0.0 -j DROP",
    "-A f -m iprange --src-range 10.1.2.3-10.1.2.9 -j DROP",
    "-A f -s 2001:DB8::/32 -j DROP",
    '-A f -m comment --comment "of 10.1.2.0/24" -j DROP',
    "-A n -p tcp -j DNAT --to-destination 10.1.2.5:80",
    "-A f -m mac --mac-source 00:11:22:33:44:55 -j DROP",
    "# 10.0.0.0/8",
    "-A f ! -s 10.1.2.5/32 -p tcp -m tcp --dport 80:443 -j DROP",
    "-A f -s 0.0.0.0/0 -d 10.0.0.0/255.0.255.0 -j DROP",
  ];
  const SEARCHES = ["10.1.2.5", "10.1.2.0/24", "2001:db8:1::7", "80:443", "drop", "2001:db8::/16"];
  found.marks = Object.fromEntries(SEARCHES.map((words) => [words, [...finderOf(LINES).find(words).marks]]));

  // Sorting: by packets, most first, then fewest first.
  const head = document.querySelector("#drop-table th button");
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
