//! Answers are read as they are written, by this release and others.

use serde_json::json;

use super::*;

/// What 0.1 wrote, key by key.
#[test]
fn answers_are_documents_with_their_schema() {
    let by = json!({
        "family": "ip", "table": "filter", "chain": "FORWARD", "number": null, "line": 3,
        "text": "policy DROP",
    });
    let frame = json!({
        "time": "1970-01-01T00:00:00.000000001Z", "in": "a", "out": "b", "packet": "tcp",
        "length": 60, "verdict": "drop", "reason": "policy", "program": 1, "by": by,
    });
    let drops = json!({ "schema": "tamis.drops/1", "drops": [frame] });
    let read: Drops = super::read(drops.clone()).unwrap();
    assert_eq!(json(&read), drops);
    let text = "00:00:00.000000 a > b  tcp  drop by the policy of FORWARD (line 3): policy DROP";
    assert_eq!(read.drops[0].to_string(), text);
    let side = json!({ "src": "::1", "dst": "::2", "sport": 1, "dport": 2 });
    let flow = json!({
        "protocol": 6, "state": null, "timeout": 9, "replied": true, "assured": false, "mark": 0,
        "zone": 0, "original": side, "reply": side, "text": "tcp",
    });
    let place = json!({ "worker": 0, "table": 1, "slot": 2 });
    let flows =
        json!({ "schema": "tamis.conntrack/1", "count": 2, "flows": [flow], "next": place });
    assert_eq!(json(&super::read::<Conntrack>(flows.clone()).unwrap()), flows);
    let quiet = json!({ "schema": "tamis.shadow/1", "active": false });
    assert_eq!(json(&Shadow::default()), quiet);
    assert!(!super::read::<Shadow>(quiet).unwrap().active);
    let applied = json!({
        "schema": "tamis.apply/1", "revision": 2, "program": 3, "dry_run": false, "new": 1,
        "gone": 0, "kept": 4, "goes_back_in": null, "durable": true, "warnings": ["odd"],
    });
    assert_eq!(json(&super::read::<Applied>(applied.clone()).unwrap()), applied);
}

/// A run of a later release says more, an earlier one less.
#[test]
fn keys_that_are_new_or_missing_are_no_errors() {
    let told = json!({ "program": 7, "wires": [{ "in": "a", "since": 1 }], "news": {} });
    let status: Status = read(told).unwrap();
    assert_eq!((status.program, &*status.wires[0].input), (7, "a"));
    assert!(read::<Status>(json!({ "program": "seven" })).is_err());
    let line = json!({ "schema": "tamis.watch/1", "end": "run", "lost": 1, "news": 1 });
    let end = WatchLine::End(WatchEnd { end: "run".to_owned(), lost: 1 });
    assert_eq!(read::<WatchLine>(line).unwrap(), end);
    let line = read(json!({ "in": "a" })).unwrap();
    assert!(matches!(line, WatchLine::Frame(frame) if frame.input == "a"));
}

#[test]
fn a_refusal_of_an_unknown_kind_is_one() {
    let refusal = Refusal { kind: RefusalKind::Stale, what: "odd".to_owned() };
    assert_eq!(refusal.json(), json!({ "error": { "kind": "stale", "what": "odd" } }));
    assert_eq!(Refusal::of(&refusal.json()), Some(refusal));
    let new = json!({ "error": { "kind": "tired", "what": "later" } });
    let refused = Refusal { kind: RefusalKind::Refused, what: "later".to_owned() };
    assert_eq!(Refusal::of(&new), Some(refused));
    assert_eq!(Refusal::of(&json!({ "error": 1 })), Some(Refusal::default()));
    assert_eq!(Refusal::of(&json!({ "text": "error" })), None);
}

#[test]
fn bytes_are_two_digits_each() {
    assert_eq!(hex(&[0, 0x1f, 255]), "001fff");
}
