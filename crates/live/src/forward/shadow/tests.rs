//! A worker that has too much to do leaves the shadow out, and says so.

use std::sync::Arc;

use rules::model::Family;
use rules::save::{LoadOptions, load};

use super::*;
use crate::forward::steering::Steering;

const RULES: &str = "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n";

fn slot() -> Arc<Slot> {
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    let rules = load(RULES, &options).expect("rules").ruleset;
    let published = Published::new([&rules], Config::default());
    let (steering, _) = Steering::of(&[Arc::new(rules)], 1);
    let texts = vec![RULES.to_owned()];
    let shadow =
        Shadow::new(texts, Listing::default(), &published, &steering, |_, _| {}).expect("a shadow");
    let slot = Arc::new(Slot::default());
    slot.set(Some(Arc::new(shadow)));
    slot
}

fn left_out(slot: &Slot) -> u64 {
    slot.get().expect("a shadow").left_out.load(Ordering::Relaxed)
}

#[test]
fn a_worker_that_has_had_no_pause_leaves_it_out_until_it_has_one() {
    let slot = slot();
    let mut shade = ShadowWorker::new(Arc::clone(&slot), None);
    let loaded = LOADED.as_nanos() as u64;
    assert!(shade.burst(0, 8, true).is_none(), "it has not looked yet");
    shade.turns();
    assert!(shade.burst(0, 8, true).is_some());
    shade.turned(0, 8);
    assert!(shade.burst(loaded, 8, true).is_some());
    shade.turned(loaded, 8);
    assert!(shade.burst(loaded + 1, 8, true).is_none());
    assert_eq!(left_out(&slot), 8);
    assert!(shade.burst(loaded + 1, 8, false).is_some(), "a capture waits");
    shade.turned(loaded + 1, 0);
    assert!(shade.burst(loaded + 2, 8, true).is_some());
    assert_eq!(left_out(&slot), 8);
    slot.set(None);
    shade.turns();
    assert!(shade.burst(loaded + 3, 8, true).is_none());
}

#[test]
fn a_text_that_is_refused_is_named_with_its_line() {
    let slot = slot();
    let shadow = slot.get().expect("a shadow");
    let steering = Steering::of(&[], 1).0;
    let refused = |texts: &[&str]| {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        let shadow =
            Shadow::new(texts, Listing::default(), &shadow.published, &steering, |_, _| {});
        shadow.map(|_| ()).expect_err("refused").to_string()
    };
    let told = refused(&[RULES, "*filter\n-A FORWARD --nonsense\nCOMMIT\n"]);
    assert!(told.starts_with("text 2: 2:12: "), "{told}");
    assert_eq!(refused(&[RULES, RULES]), "expected one text for ip, found two");
}
