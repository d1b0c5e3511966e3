//! A node measures another one through the tunnel, as far as the policy lets it, and the directory's page shows how the two reach each
//! other. Needs root, `ping`, `nft`, `dig` and `curl`; without, it says so and skips.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::namespaces::Hosts;
use crate::reached::{are_present, network};

/// Measures from a node.
fn speed(hosts: &Hosts, node: &str, what: &str) -> (Option<i32>, String) {
    let tunnel = hosts.node_config(node).display().to_string();
    let line = format!("{} tunnel speed {what} --tunnel {tunnel}", hosts.tamis());
    let Output { status, stdout, stderr } = hosts.says(node, &line);
    let [stdout, stderr] = [stdout, stderr].map(|it| String::from_utf8(it).unwrap());
    (status.code(), stdout + &stderr)
}

/// What a browser on the cloud's host gets.
fn page(hosts: &Hosts, query: &str) -> String {
    let output = hosts.says("cloud", &format!("curl -s http://127.0.0.1:8080/{query}"));
    String::from_utf8(output.stdout).unwrap()
}

/// Puts a key into a table of a configuration.
fn set(file: &std::path::Path, table: &str, line: &str) {
    let text = fs::read_to_string(file).unwrap();
    fs::write(file, text.replacen(table, &format!("{table}\n{line}"), 1)).unwrap();
}

#[test]
fn a_node_is_measured_and_the_page_shows_how_it_is_reached() {
    let Some(mut hosts) = network("speed", ["", ""]) else { return };
    let config = hosts.config();
    hosts.kill("cloud");
    set(config.as_ref(), "[cloud]", "page = \"127.0.0.1:8080\"");
    hosts.start_cloud();
    hosts.wait("registrations", are_present);

    let (code, text) = speed(&hosts, "a", "b --json");
    assert_eq!(code, Some(0), "{text}");
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["schema"], "tamis.tunnel_speed/1");
    assert_eq!((&document["address"], &document["peer"]), (&"10.99.0.3".into(), &"b".into()));
    assert!(["relay", "direct"].map(Value::from).contains(&document["path"]), "{text}");
    for way in ["send", "receive"] {
        assert!(document[way]["mbit_s"].as_f64().unwrap() > 0.0, "{text}");
        assert!(document[way]["probes"].as_u64().unwrap() > 0, "{text}");
    }
    let idle = &document["idle"];
    assert!(idle["lost"].as_u64() < idle["probes"].as_u64(), "{text}");
    let ranks = ["min_ms", "median_ms", "p99_ms"].map(|key| idle[key].as_f64().unwrap());
    assert!(0.0 < ranks[0] && ranks.is_sorted(), "{text}");
    // By its address and for people, too.
    let (code, text) = speed(&hosts, "b", "10.99.0.2");
    assert!(
        code == Some(0) && text.contains("\nto 10.99.0.2 ") && text.contains("\nidle "),
        "{text}"
    );

    // The nodes have said by now, or will within seconds, how they reach each other.
    hosts.wait("the page", |hosts| {
        let page = page(hosts, "");
        page.contains("a – b") && (page.contains(">direct") || page.contains(">relay"))
    });
    let asked = page(&hosts, "?from=a&to=c&port=tcp/22");
    assert!(asked.contains("No: a may not begin tcp/22 with c."), "{asked}");
    assert!(page(&hosts, "?from=b&to=a&port=icmp").contains("Yes: b may begin icmp with a."));

    // A node without a way to another one does not measure it.
    let (code, text) = speed(&hosts, "a", "c");
    assert!(code == Some(1) && text.contains("there is no way from a to c"), "{text}");
    // One that does not want to be measured says so at once.
    hosts.kill("b");
    set(&hosts.node_config("b"), "[tunnel]", "speed = \"off\"");
    hosts.up("b");
    hosts.wait("b again", |hosts| hosts.pings("a", "10.99.0.3"));
    let (code, text) = speed(&hosts, "a", "b");
    assert!(code == Some(1) && text.contains("its tunnel has speed = \"off\""), "{text}");
    // The policy goes before that: the port is one like any other.
    let policy = "[[allow]]\nfrom = [\"a\"]\nto = [\"b\"]\nports = [\"icmp\"]\n";
    let file = hosts.folder.path().join("policy.toml");
    fs::write(&file, policy).unwrap();
    let put = hosts.asks_cloud(&format!("policy {} --config {config}", file.display()));
    assert!(put.status.success(), "{put:?}");
    hosts.wait("the policy at a", |hosts| {
        let (code, text) = speed(hosts, "a", "b");
        code == Some(1) && text.contains("nothing comes back from its TCP port 4503")
    });
}
