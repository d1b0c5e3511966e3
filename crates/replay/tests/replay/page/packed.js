// Reads a page whose rules are packed: what is on the page of them before and after searches, filters and links.
"use strict";
(async () => {
  const found = { errors: window.tamisErrors };
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const rules = document.querySelector(".rules");
  while (rules.dataset.ready === undefined) await new Promise((done) => setTimeout(done, 10));
  const lines = () => all(".b .l", rules).map((line) => [line.id, line.querySelector("code").textContent]);
  const blocks = () => all(".b", rules).reduce((sum, block) => sum + Number(block.style.getPropertyValue("--n-all")), 0);
  const output = () => rules.querySelector(".tools output").textContent;
  const input = rules.querySelector("input[type=search]");
  const search = (words) => {
    input.value = words;
    input.dispatchEvent(new Event("input"));
    return { lines: lines(), all: blocks(), told: output() };
  };
  found.first = lines().slice(0, 5);
  found.all = blocks();
  found.address = search("131.159.20.7");
  found.words = search("Ticket &lt;7>");
  location.hash = "#L9000";
  await new Promise((done) => setTimeout(done, 50));
  found.link = document.getElementById("L9000")?.textContent ?? null;
  found.cleared = [input.value, blocks()];
  rules.querySelector("[value=never]").click();
  found.never = blocks();
  dispatchEvent(new Event("beforeprint"));
  found.printed = all(".b .l", rules).length;
  found.ran = window.tamisRan ?? null;
  const out = parent.document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify(found);
  parent.document.body.append(out);
})();
