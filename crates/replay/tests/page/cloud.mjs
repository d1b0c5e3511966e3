// The page of a directory in a browser: cloud.mjs COMMAND…, which serves an example of it and prints its address. axe finds nothing
// serious, in each theme and on each width; no script of a name runs; the policy is asked by keys alone; nothing is cut off.
//
// Writes one line for each check; fails where one fails.
import { spawn } from "node:child_process";
import { axe, check, failures, started } from "./browser.mjs";

const [command, ...args] = process.argv.slice(2);

/** Starts the example; its address is the first URL that it prints. */
const served = () => new Promise((done, failed) => {
  const example = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  let said = "";
  example.stdout.on("data", (data) => {
    said += data;
    const found = said.match(/http:\/\/127\.0\.0\.1:\d+\//);
    if (found) done({ example, url: found[0] });
  });
  example.on("exit", () => failed(new Error(`no address: ${said}`)));
});

const open = async (browser, url, width, colorScheme, bypassCSP) => {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme, bypassCSP });
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("dialog", (dialog) => { errors.push(`a script ran: ${dialog.message()}`); dialog.dismiss(); });
  // A browser asks for an icon by itself, and the page has none.
  const isIcon = (message) => message.location().url.endsWith("/favicon.ico");
  const isWrong = (message) => ["error", "warning"].includes(message.type()) && !isIcon(message);
  page.on("console", (message) => { if (isWrong(message)) errors.push(message.text()); });
  await page.goto(url);
  return { page, errors };
};

const looks = async (browser, url) => {
  const forms = ["", "?from=laptop&to=nas&port=tcp%2F22", "?from=nas&to=laptop&port=tcp%2F22", "?from=%3Cb%3E&to=nas&port=icmp"];
  for (const [width, scheme] of [[1280, "light"], [1280, "dark"], [390, "light"], [390, "dark"]]) {
    for (const form of forms) {
      const { page, errors } = await open(browser, url + form, width, scheme, true);
      const what = `${width} pixels, ${scheme}${form && `, ${form}`}`;
      await axe(page, what);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      check(`nothing is wider than ${what}`, wide <= 0, wide);
      check(`no errors on ${what}`, errors.length === 0, errors.join("; "));
      await page.close();
    }
  }
};

const keys = async (browser, url) => {
  const { page, errors } = await open(browser, url, 1280, "light", false);
  await page.locator("#from").focus();
  await page.keyboard.type("laptop");
  await page.keyboard.press("Tab");
  await page.keyboard.type("nas");
  await page.keyboard.press("Tab");
  await page.keyboard.type("tcp/22");
  await page.keyboard.press("Enter");
  await page.waitForURL(/port=tcp%2F22/);
  const told = await page.locator("[role=status]").textContent();
  check("the policy is asked by keys", told.includes("Yes: laptop may begin tcp/22 with nas."), told.trim());
  await page.locator("#paths .wide").focus();
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  check("a table is reached by keys, and that is seen", outline !== "none", outline);
  const ran = await page.evaluate(() => { const made = document.createElement("script"); made.textContent = "window.ran = true"; document.body.append(made); return window.ran === true; });
  check("no script runs in the page", !ran && errors.some((error) => error.includes("Content Security Policy")));
  await page.close();
};

const browser = await started();
const { example, url } = await served();
try {
  await looks(browser, url);
  await keys(browser, url);
} finally {
  await browser.close();
  example.removeAllListeners("exit");
  example.stdin.end();
}
process.exit(failures() === 0 ? 0 : 1);
