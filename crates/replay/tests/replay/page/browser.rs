//! A headless browser that opens a page, runs a probe in it and hands back what the probe found.
//!
//! Needs Chromium (Debian: `chromium`); `CHROMIUM` names another. Nothing is downloaded, and the browser is
//! kept away from the network.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use base64ct::{Base64, Encoding};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Collects what goes wrong in the page; stands before any script of it.
const LISTEN: &str = "window.tamisErrors=[];\
    addEventListener('error',(e)=>tamisErrors.push(String(e.message)));\
    addEventListener('securitypolicyviolation',(e)=>tamisErrors.push(`policy: ${e.violatedDirective}`));\
    for(const level of ['error','warn'])console[level]=(...words)=>tamisErrors.push(words.join(' '));";
const PROBE: &str = include_str!("probe.js");
const PATIENCE: Duration = Duration::from_secs(120);
const QUIET: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=5000",
    "--dump-dom",
];

/// The browser's program, if there is one.
pub(crate) fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .flat_map(|dir| names.map(|name| dir.join(name)))
        .find(|program| program.is_file())
}

/// Opens a page `width` pixels wide and runs the probe; `dir` is for files of this test.
pub(crate) fn probe(program: &Path, page: &str, width: u32, dir: &Path) -> Value {
    run(program, PROBE, page, width, dir)
}

/// Runs another probe, which may have to wait.
pub(crate) fn run(program: &Path, probe: &str, page: &str, width: u32, dir: &Path) -> Value {
    fs::create_dir_all(dir).unwrap();
    let file = dir.join("page.html");
    let own = [LISTEN, probe]
        .map(|script| format!("'sha256-{}' ", Base64::encode_string(&Sha256::digest(script))));
    // Its policy stays in force for all but these two.
    let page = page.replacen("script-src ", &format!("script-src {}", own.concat()), 1);
    let page = page.replacen("<style>", &format!("<script>{LISTEN}</script><style>"), 1);
    let end = page.rfind("</body>").expect("a page ends with </body>");
    let page = format!("{}<script>{probe}</script>{}", &page[..end], &page[end..]);
    fs::write(&file, framed(&page, width)).unwrap();
    let (dom, log) = (dir.join("dom.html"), dir.join("log.txt"));
    let mut browser = Command::new(program)
        .args(QUIET)
        .arg(format!("--window-size={},900", width.max(500)))
        .arg(format!("--user-data-dir={}", dir.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .stdout(File::create(&dom).unwrap())
        .stderr(File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while browser.try_wait().unwrap().is_none() {
        if started.elapsed() > PATIENCE {
            browser.kill().unwrap();
            browser.wait().unwrap();
            panic!("the browser did not end: {}", fs::read_to_string(&log).unwrap());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let log = String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
    let logged: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(logged.is_empty(), "the page spoke on the console: {logged:?}");
    found(&fs::read_to_string(&dom).unwrap())
}

/// The page in a frame of the wanted width: a window of the browser is never narrower than 500 pixels.
fn framed(page: &str, width: u32) -> String {
    let page = page.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<!doctype html><meta charset=\"utf-8\"><body style=\"margin:0\">\
         <iframe style=\"border:0;height:812px;width:{width}px\" srcdoc=\"{page}\"></iframe></body>"
    )
}

/// What the probe left in the serialised page.
fn found(dom: &str) -> Value {
    let start = "<pre id=\"probe\">";
    let from = dom.find(start).expect("the probe ran to its end") + start.len();
    let length = dom[from..].find("</pre>").expect("the probe's element ends");
    let text = dom[from..from + length].replace("&lt;", "<").replace("&gt;", ">");
    let text = text.replace("&nbsp;", "\u{a0}").replace("&amp;", "&");
    serde_json::from_str(&text).expect("the probe writes JSON")
}
