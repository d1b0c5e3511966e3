//! What a replay, a story, cases and a recording come to is their caller's: rules, configuration and captures may go.

use std::thread;

use dataplane::Config;
use host::Network;
use replay::cases::record::{self, Recording};
use replay::cases::{Cases, Results, evaluate};
use replay::report::{Report, Style};
use replay::run::{self, Wanted};
use replay::why::{self, Story};
use replay::{RulesFile, demo};
use rules::save::LoadOptions;

fn is_owned<T: Send + 'static>() {}

#[test]
fn whatever_is_found_owns_what_it_shows() {
    is_owned::<Report>();
    is_owned::<Story>();
    is_owned::<Results>();
    is_owned::<Recording>();
}

/// What a caller may keep of the demonstration, by what shows it.
fn found() -> [Box<dyn Fn() -> String + Send>; 4] {
    let dir = tempfile::tempdir().unwrap();
    let captures = [demo::write(dir.path()).unwrap().capture.display().to_string()];
    let rules = RulesFile::from_text("rules.v4", demo::RULES.to_owned(), &LoadOptions::default());
    let rules = [rules.unwrap()];
    let net = |name: &str, cidr| (name.to_owned(), Network::parse(cidr).unwrap());
    let nets = vec![net("lan0", "10.20.0.0/24"), net("wan0", "0.0.0.0/0")];
    let config = Config { nets, ..Config::default() };
    let report =
        run::replay(&rules, &captures, &config.clone().into(), &mut Wanted::default()).unwrap();
    let story = why::of_capture(&rules, &config.clone().into(), &captures, "1", None).unwrap();
    let recording = record::record(&rules, &config.clone().into(), &captures, 9).unwrap();
    let toml = recording.toml([None; 2], &captures);
    let cases = Cases::from_text("cases.toml", &toml).unwrap();
    let results = evaluate(cases, &rules, &config.clone().into(), "");
    [
        Box::new(move || report.text(Style::default())),
        Box::new(move || story.text(true)),
        Box::new(move || results.text()),
        Box::new(move || recording.toml([None; 2], &[])),
    ]
}

#[test]
fn it_is_shown_by_another_thread_when_all_else_is_gone() {
    let shown = found().map(|show| thread::spawn(show).join().unwrap());
    let rules = demo::RULES.lines().filter(|line| line.starts_with("-A"));
    let named = rules.filter(|rule| shown[0].contains(rule)).count();
    assert!(named > 0, "{}", shown[0]);
    assert!(shown[1].contains("FORWARD"), "{}", shown[1]);
    assert!(shown[2].contains("rules.v4"), "{}", shown[2]);
    assert!(shown[3].contains("[[case]]"), "{}", shown[3]);
}
