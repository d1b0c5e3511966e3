//! The example of embedding answers as the binary does.

#[path = "../../../replay/examples/embed.rs"]
#[allow(dead_code, reason = "its main is the example's")]
mod embed;

use replay::walk::{HostFacts, WalkOptions, words};

use crate::ran::{CAPTURE, RULES, tamis};

fn walk() -> WalkOptions {
    let nets = ["lan0=10.20.0.0/24", "wan0=0.0.0.0/0"];
    let nets = nets.map(|net| words::net(net).unwrap()).into();
    WalkOptions { host: HostFacts { nets, ..HostFacts::default() }, ..WalkOptions::default() }
}

#[test]
fn a_capture_is_counted_as_by_the_binary() {
    let text = embed::replayed(RULES, CAPTURE, &walk()).unwrap();
    let nets = ["--net", "lan0=10.20.0.0/24", "--net", "wan0=0.0.0.0/0"];
    let report = tamis(&[&["replay", RULES, CAPTURE, "--json"][..], &nets].concat()).json();
    let packets = |verdict: &str| report["verdicts"][verdict]["packets"].as_u64().unwrap();
    let counts = format!(
        "287 packets: {} accepted, {} dropped or rejected, {} unknown\n",
        packets("accept"),
        packets("drop") + packets("reject"),
        packets("unknown")
    );
    assert!(text.starts_with(&counts), "{text}");
    assert!(text.contains("20 of them by line 20: -A from-office -d 198.51.100.66/32"), "{text}");
}

#[test]
fn one_packet_passes_is_stopped_or_is_not_known() {
    let passes = |packet: &str| embed::passes(RULES, packet, &walk()).unwrap();
    assert_eq!(passes("in=lan0 out=wan0 tcp 10.20.0.10 > 198.51.100.20:443 syn"), Some(true));
    assert_eq!(passes("in=lan0 out=wan0 tcp 10.20.0.10 > 198.51.100.66:443 syn"), Some(false));
    let unknown =
        embed::passes(RULES, "tcp 10.20.0.10 > 198.51.100.66:443 syn", &WalkOptions::default());
    assert_eq!(unknown.unwrap(), None);
    let refused = embed::passes(RULES, "tcp here", &walk()).unwrap_err().to_string();
    assert!(refused.contains("expected"), "{refused}");
    assert!(embed::replayed("/nowhere.v4", CAPTURE, &walk()).is_err());
}
