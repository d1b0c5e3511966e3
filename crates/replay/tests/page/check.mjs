// The page of `tamis replay --html` in a browser: check.mjs TAMIS. axe finds nothing serious, in each theme, on each
// width and on paper; keys reach what the pointer reaches; of 200,000 rules the page stays small and is searched at once.
//
// Writes one line for each check; fails where one fails.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { axe, check, failures, started } from "./browser.mjs";

const RULES = 200_000;
const MOST_BYTES = 15e6;
const MOST_MS = 100;
const tamis = resolve(process.argv[2] ?? "target/debug/tamis");

const NETS = ["--net", "lan0=10.20.0.0/24", "--net", "wan0=0.0.0.0/0"];

/** The demonstration's page, and one beside it that compares its rules with others and lists packets. */
const pages = (folder) => {
  execFileSync(tamis, ["demo", "--dir", folder], { stdio: "ignore" });
  const [rules, other, review] = ["demo-rules.v4", "other.v4", "review.html"].map((name) => join(folder, name));
  const lines = readFileSync(rules, "utf8").split("\n").filter((line) => !line.includes("phishing"));
  writeFileSync(other, lines.map((line) => line.replace("--dports 80,443", "--dports 25,80,443")).join("\n"));
  const options = ["--vs", other, "--list", "change", "--html", review];
  execFileSync(tamis, ["replay", rules, join(folder, "demo-office.pcap"), ...options, ...NETS], { stdio: "ignore" });
  return [join(folder, "demo-report.html"), review];
};

/** Rules of every kind by a fixed generator: each seventh has a comment, some are networks, some single hosts. */
const manyRules = () => {
  let state = 1;
  const draw = (below) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % below;
  };
  const lines = ["*filter", ":INPUT ACCEPT [0:0]", ":FORWARD DROP [0:0]", ":OUTPUT ACCEPT [0:0]", ":web - [0:0]"];
  lines.push("-A FORWARD -s 10.20.0.0/16 -p tcp -m tcp --dport 443 -j ACCEPT");
  for (let at = 0; at < RULES; at += 1) {
    const network = at % 2 === 0;
    const source = `${1 + draw(220)}.${draw(256)}.${draw(256)}.${network ? 0 : draw(256)}/${network ? 24 : 32}`;
    const protocol = ["tcp", "udp"][draw(2)];
    const comment = at % 7 === 0 ? ` -m comment --comment "ticket ${draw(99999)}"` : "";
    const target = ["DROP", "ACCEPT", "web"][draw(3)];
    lines.push(`-A FORWARD -s ${source} -p ${protocol} -m ${protocol} --dport ${1 + draw(65535)}${comment} -j ${target}`);
  }
  lines.push("-A web -s 131.159.20.0/24 -j ACCEPT", "-A web -j DROP", "COMMIT", "");
  return lines.join("\n");
};

const open = async (browser, file, width, colorScheme) => {
  // The page's own policy stays; only axe, which is not of the page, may be added.
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme, bypassCSP: true });
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) errors.push(message.text()); });
  await page.goto(`file://${file}`);
  await page.waitForFunction(() => [...document.querySelectorAll(".rules")].every((rules) => rules.dataset.ready === ""));
  return { page, errors };
};

const looks = async (browser, file) => {
  const name = basename(file, ".html");
  for (const [width, scheme] of [[1280, "light"], [1280, "dark"], [390, "light"], [390, "dark"]]) {
    const { page, errors } = await open(browser, file, width, scheme);
    await axe(page, `${name}, ${width} pixels, ${scheme}`);
    await page.evaluate(() => { for (const details of document.querySelectorAll("details")) details.open = true; });
    await page.locator(".rules [value=never]").first().check({ force: true });
    await axe(page, `${name}, ${width} pixels, ${scheme}, paths open, rules never hit`);
    check(`${name}: no errors on ${width} pixels, ${scheme}`, errors.length === 0, errors.join("; "));
    await page.close();
  }
};

const keys = async (browser, file) => {
  const { page } = await open(browser, file, 1280, "light");
  await page.locator("#drop-table th button").first().focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  const order = await page.evaluate(() => [...document.querySelectorAll("#drop-table tbody")].map((body) => Number(body.rows[0].cells[0].dataset.v)));
  check("a table is sorted by keys", order.length > 1 && order.every((one, at) => at === 0 || order[at - 1] <= one), order.join(" "));
  const plot = page.locator(".plot.every");
  const reading = () => page.locator(".chart output").textContent();
  await plot.focus();
  await page.keyboard.press("End");
  const last = await reading();
  await page.keyboard.press("ArrowLeft");
  const before = await reading();
  check("the chart is read by keys", last !== before && /UTC: /.test(last) && /UTC: /.test(before), `${before}; ${last}`);
  const path = page.locator("#drop-table details").first();
  await path.locator("summary").focus();
  await page.keyboard.press("Enter");
  const told = await path.locator(".path").textContent();
  check("a packet opens to its path by keys", await path.evaluate((details) => details.open) && / by /.test(told), told.trim().split("\n").at(-1));
  const link = page.locator(".rules a.packets").first();
  const to = (await link.getAttribute("href")).slice(1);
  await link.focus();
  await page.keyboard.press("Enter");
  check("a rule leads to its packets", await page.evaluate((id) => document.getElementById(id).getBoundingClientRect().top < innerHeight, to), to);
  await page.close();
};

const paper = async (browser, file) => {
  const { page } = await open(browser, file, 800, "light");
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
  const lost = await page.evaluate(() => {
    const hidden = (element) => element.getClientRects().length === 0;
    const cut = (element) => element.scrollHeight > element.clientHeight + 1 && getComputedStyle(element).overflowY !== "visible";
    return {
      rows: [...document.querySelectorAll(".ends tbody")].filter(hidden).length,
      paths: [...document.querySelectorAll(".path")].filter((path) => hidden(path) || cut(path)).length,
      lines: [...document.querySelectorAll(".b .l")].filter(hidden).length,
      width: Math.max(0, document.documentElement.scrollWidth - innerWidth),
      commands: [...document.querySelectorAll(".command")].filter(cut).length,
    };
  });
  check("paper loses nothing", Object.values(lost).every((count) => count === 0), JSON.stringify(lost));
  await page.close();
};

/** What a search costs the page's thread until the next frame is painted, and what it says. */
const searched = async (page, session, words) => {
  const spent = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration").value * 1000;
  };
  const before = await spent();
  const found = await page.evaluate(async (words) => {
    const input = document.querySelector(".rules input[type=search]");
    const from = performance.now();
    input.value = words;
    input.dispatchEvent(new Event("input"));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const first = document.querySelector(".packed .b .l code")?.textContent ?? "";
    return { painted: performance.now() - from, told: document.querySelector(".rules output").textContent, first };
  }, words);
  return { ...found, spent: (await spent()) - before };
};

const many = async (browser, folder) => {
  const [rules, file] = [join(folder, "many.v4"), join(folder, "many.html")];
  writeFileSync(rules, manyRules());
  execFileSync(tamis, ["replay", rules, join(folder, "demo-office.pcap"), "--html", file, ...NETS], { stdio: "ignore" });
  const { size } = statSync(file);
  check(`${RULES} rules: below ${MOST_BYTES / 1e6} MB`, size < MOST_BYTES, `${(size / 1e6).toFixed(1)} MB`);
  const { page, errors } = await open(browser, file, 1280, "light");
  // By the time that the thread had: another program's share of the machine is no search's fault.
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.waitForTimeout(3000);
  for (const words of ["--dport 443 ", "a", "131.159.20.7", "131.159.20.0/24", "ticket 4", "no such words"]) {
    const found = await searched(page, session, words);
    const time = `${found.spent.toFixed(0)} ms (${found.painted.toFixed(0)} ms on this machine's clock)`;
    check(`search for "${words}": below ${MOST_MS} ms`, found.spent < MOST_MS, `${time}; ${found.told}`);
    if (words === "131.159.20.7") check("an address finds the prefix that holds it", /131\.159\.20\.0\/24|131\.159\.20\.7/.test(found.first), found.first);
  }
  await searched(page, session, "");
  await page.evaluate(() => { location.hash = "#L150000"; });
  await page.waitForTimeout(500);
  const at = await page.evaluate(() => document.getElementById("L150000")?.getBoundingClientRect().top);
  check("a link to a packed line shows it", at >= 0 && at < 900, at);
  await page.locator(".rules [value=hit]").check({ force: true });
  const kept = await page.evaluate(() => [...document.querySelectorAll(".packed .b .l")].every((line) => line.matches(".hit, .table")));
  check("a filter leaves what was hit", kept);
  await axe(page, `${RULES} rules, those that were hit`);
  check(`no errors, ${RULES} rules`, errors.length === 0, errors.join("; "));
  await page.close();
};

const browser = await started();
const folder = mkdtempSync(join(tmpdir(), "tamis-page-"));
try {
  const [demo, review] = pages(folder);
  for (const file of [demo, review]) await looks(browser, file);
  await keys(browser, demo);
  await paper(browser, demo);
  await many(browser, folder);
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
process.exit(failures() === 0 ? 0 : 1);
