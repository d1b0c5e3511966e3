// What checks of pages have in common: a browser, axe, and lines that say what held.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

let failed = 0;
export const failures = () => failed;

/** Writes a line for a check. */
export const check = (what, holds, found = "") => {
  failed += holds ? 0 : 1;
  console.log(`${holds ? "ok  " : "FAIL"} ${what}${found === "" ? "" : `: ${found}`}`);
};

/** Checks that axe finds nothing serious on a page. */
export const axe = async (page, what) => {
  await page.addScriptTag({ path: AXE }).catch(() => page.evaluate("void 0"));
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  const told = ({ id, impact, nodes }) => `${impact} ${id}, ${nodes.length} times, such as ${nodes[0].html.slice(0, 120)} ${nodes[0].any[0]?.message ?? ""}`;
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  check(`axe, ${what}: nothing serious`, serious.length === 0, serious.map(told).join("; "));
  for (const other of violations.filter((one) => !serious.includes(one))) console.log(`     ${told(other)}`);
};

/** Starts the browser of this machine; where there is none, says so and ends. */
export const started = async () => {
  const browsers = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
  const executablePath = browsers.find((path) => path && existsSync(path));
  if (!executablePath) {
    console.log("SKIPPED: the page was not checked, for want of Chromium (Debian: chromium)");
    process.exit(0);
  }
  const args = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath, args });
};
