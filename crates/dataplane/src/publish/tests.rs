//! Limits that are too large to reach from outside.

use std::time::Duration;

use rules::model::Family;
use rules::save::{LoadOptions, load};

use super::*;

#[test]
fn writers_wait_at_bytes_that_are_not_reclaimed() {
    let rules = "-A INPUT -s 10.0.0.1 -j ACCEPT\n".repeat(2000);
    let text = format!("*filter\n:INPUT ACCEPT [0:0]\n{rules}COMMIT\n");
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    let ruleset = load(&text, &options).expect("rules").ruleset;
    let mut published = Published::new([&ruleset], Config::default());
    published.limits.bytes = 100_000;
    published.limits.patience = Duration::from_millis(1);
    let mut worker = published.worker();
    let burst = worker.burst();
    let flush = "*filter\n-F INPUT\nCOMMIT\n";
    assert_eq!(published.commit_text(1, Family::Ipv4, flush), Ok(2));
    match published.commit_text(2, Family::Ipv4, flush) {
        Err(PublishError::Behind { worker: Some(0), programs: 1, bytes: 100_000.. }) => {}
        other => panic!("{other:?}"),
    }
    drop(burst);
    assert_eq!(published.commit_text(2, Family::Ipv4, flush), Ok(3));
}
