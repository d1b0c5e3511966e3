// The rules: filters of what is packed, search, links from anywhere to a line.
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  // Lines of a block; those after the first FINE lines are longer, so that long texts have few. Lines in which what
  // was searched is marked.
  const FINE = 1024;
  const blockAt = (from) => (from < FINE ? 64 : 512);
  const MARKED = 500;

  // What a line says, without the links after it.
  const AFTER = "span.from, a.effect, a.packets";
  const said = (code) => [...code.childNodes].filter((node) => !node.matches?.(AFTER)).map((node) => node.textContent).join("");

  // Lines that stand on the page as markup. Filters are the style sheet's.
  const standing = (text) => {
    const lines = all(".b .l", text);
    const blocks = all(".b", text);
    return {
      texts: () => lines.map((line) => said(line.querySelector("code"))),
      show: (marks) => {
        lines.forEach((line, index) => line.classList.toggle("found", Boolean(marks?.[index])));
        for (const block of blocks) block.style.setProperty("--n-found", block.querySelectorAll(".found").length);
        return () => lines.filter((_, index) => marks?.[index]).slice(0, MARKED);
      },
      line: (index) => lines[index],
    };
  };

  // Lines that are packed: blocks stand for them, and are filled near the screen.
  const KINDS = { all: () => true, hit: /\bhit\b|\btable\b/, never: /\bnever\b|\btable\b/, unknown: /\bmay\b|\btable\b/, edited: /\bgone\b|\bcame\b|\btable\b/ };
  const inflate = async (script) => {
    const packed = atob(script.textContent);
    const bytes = Uint8Array.from(packed, (byte) => byte.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return (await new Response(stream).text()).split("\u001e");
  };
  const unpacked = async (text, chosen) => {
    const rows = await inflate(text.querySelector("script"));
    const kinds = rows.map((row) => row.slice(12, row.indexOf('"', 12)));
    let shown = [];
    let marks = null;
    let filled = () => {};
    const fill = (block) => {
      if (block.firstChild) return;
      const from = Number(block.dataset.from);
      block.innerHTML = shown.slice(from, from + blockAt(from)).map((index) => rows[index]).join("");
      filled(block);
    };
    const near = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) if (isIntersecting) fill(target);
    }, { rootMargin: "1200px 0px" });
    const head = text.querySelector(".head");
    const lay = () => {
      const kind = KINDS[chosen()];
      const wanted = typeof kind === "function" ? kind : (index) => kind.test(kinds[index]);
      shown = [];
      for (let index = 0; index < rows.length; index += 1) {
        if ((marks === null || marks[index]) && wanted(index)) shown.push(index);
      }
      near.disconnect();
      const blocks = [];
      for (let from = 0; from < shown.length; from += blockAt(from)) {
        const block = document.createElement("div");
        block.className = "b";
        block.dataset.from = from;
        block.style.setProperty("--n-all", Math.min(blockAt(from), shown.length - from));
        blocks.push(block);
      }
      text.replaceChildren(head, ...blocks);
      blocks.slice(0, 2).forEach(fill);
      for (const block of blocks) near.observe(block);
    };
    lay();
    window.addEventListener("beforeprint", () => all(".b", text).forEach(fill));
    return {
      texts: () => {
        const codes = rows.map((row) => {
          const end = row.search(/<span class="from"|<a class="(?:effect|packets)"|<\/code>/);
          return row.slice(row.indexOf("<code>") + 6, end);
        });
        const entities = { lt: "<", gt: ">", quot: '"', "#39": "'", amp: "&" };
        const plain = codes.join("\n").replace(/<[^>]*>/g, "");
        return plain.replace(/&(lt|gt|quot|#39|amp);/g, (_, name) => entities[name]).split("\n");
      },
      show: (found) => {
        marks = found;
        lay();
        return (mark) => {
          filled = mark;
          return all(".b .l", text);
        };
      },
      filter: lay,
      line: (index) => {
        const at = shown.indexOf(index);
        const block = at < 0 ? null : all(".b", text).findLast(({ dataset }) => Number(dataset.from) <= at);
        if (!block) return null;
        fill(block);
        return block.children[at - Number(block.dataset.from)];
      },
    };
  };

  // What was searched, marked in lines.
  const found = window.CSS?.highlights && window.Highlight ? new Highlight() : null;
  if (found) CSS.highlights.set("found", found);
  const mark = (lines, words) => {
    for (const line of found ? lines : []) {
      const texts = document.createTreeWalker(line.querySelector("code"), NodeFilter.SHOW_TEXT);
      for (let node = texts.nextNode(); node; node = texts.nextNode()) {
        const text = node.data.toLowerCase();
        for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + words.length)) {
          const end = Math.min(at + words.length, node.length);
          found.add(new StaticRange({ startContainer: node, startOffset: at, endContainer: node, endOffset: end }));
        }
      }
    }
  };

  const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
  const start = async (rules) => {
    const input = rules.querySelector("input[type=search]");
    const output = rules.querySelector("output");
    const text = rules.querySelector(".text");
    const chosen = () => rules.querySelector("fieldset input:checked").value;
    const isPacked = text.matches(".packed");
    const view = isPacked ? await unpacked(text, chosen) : standing(text);
    let finder;
    const ready = () => (finder ??= finderOf(view.texts()));
    const search = () => {
      const words = input.value.trim().toLowerCase();
      found?.clear();
      rules.classList.toggle("searched", words !== "");
      if (words === "") {
        output.textContent = "";
        view.show(null)(() => {});
        return;
      }
      const { marks, isAddress } = ready().find(words);
      const lines = view.show(marks)((block) => mark(all(".l", block), words));
      mark(lines, words);
      const holding = marks.reduce((sum, one) => sum + Number(one > 1), 0);
      const told = plural(marks.reduce((sum, one) => sum + Number(one > 0), 0), "line");
      output.textContent = isAddress ? `${told}, ${holding.toLocaleString("en")} with a prefix that holds it` : told;
    };
    input.hidden = false;
    input.addEventListener("input", search);
    if (input.value) search();
    if (isPacked) {
      for (const button of all("fieldset input", rules)) button.addEventListener("change", view.filter);
      // What the first search needs is made while nobody waits.
      const idle = window.requestIdleCallback ?? ((work) => setTimeout(work, 200));
      idle(() => ready().index());
    }
    // A link to a line that a filter or a search hides shows every line again; one that is packed is unpacked.
    const target = () => {
      const [, prefix, number] = /^(.*L)(\d+)$/.exec(location.hash.slice(1)) ?? [];
      if (prefix !== rules.dataset.lines) return;
      const index = Number(number) - 1;
      if (!view.line(index)?.getClientRects().length) {
        rules.querySelector("[value=all]").checked = true;
        input.value = "";
        search();
      } else if (!isPacked) return;
      const line = view.line(index);
      if (!line) return;
      all(".target", text).forEach((other) => other.classList.remove("target"));
      line.classList.add("target");
      line.scrollIntoView();
    };
    window.addEventListener("hashchange", target);
    if (isPacked) target();
    rules.dataset.ready = "";
  };
  for (const rules of all(".rules")) {
    start(rules).catch(() => { rules.querySelector("output").textContent = "This browser cannot unpack the rules."; });
  }
  // An address elsewhere on the page: the rules with a prefix that holds it.
  document.addEventListener("click", (event) => {
    const words = event.target.closest?.("[data-search]")?.dataset.search;
    const input = document.querySelector(".rules input[type=search]");
    if (words === undefined || !input) return;
    input.value = words;
    input.dispatchEvent(new Event("input"));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.matches("input") || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    document.querySelector("input[type=search]")?.focus();
  });
})();
