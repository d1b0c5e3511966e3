//! Two nodes behind routers hold each other to the policy: a port is allowed and another one is not, `why` explains both, and a
//! change reaches them at once. Needs root, `ping`, `nft`, `dig` and `bash`; without, it says so and skips.

use std::fs;
use std::process::Output;
use std::time::Instant;

use crate::namespaces::Hosts;
use crate::reached::network;

/// What becomes of a connection to a port that nobody serves: a host that the packet reaches refuses it.
fn is_reached(hosts: &Hosts, node: &str, address: &str, port: u16) -> bool {
    let output = hosts.says(node, &format!("timeout 2 bash -c </dev/tcp/{address}/{port}"));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(124) => false,
        _ if told.contains("refused") => true,
        _ => panic!("{output:?}"),
    }
}

/// Puts a policy in force, and returns how that went.
fn put(hosts: &Hosts, text: &str) -> Output {
    let file = hosts.folder.path().join("policy.toml");
    fs::write(&file, text).unwrap();
    hosts.asks_cloud(&format!("policy {} --config {}", file.display(), hosts.config()))
}

fn policy(ports: &str) -> String {
    format!(
        "[[allow]]\nfrom = [\"a\"]\nto = [\"b\"]\nports = [{ports}]\n\n[[test]]\nfrom = \"b\"\nto = \"a\"\n\
         port = \"icmp\"\nexpect = \"deny\"\n"
    )
}

fn why(hosts: &Hosts, node: &str, what: &str) -> (Option<i32>, String) {
    let tunnel = hosts.node_config(node).display().to_string();
    let line = format!("{} tunnel why {what} --tunnel {tunnel}", hosts.tamis());
    let output = hosts.says(node, &line);
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_port_is_allowed_another_is_not_and_why_says_by_which_line() {
    let Some(mut hosts) = network("policy", ["", ""]) else { return };
    let put_well = |hosts: &Hosts, text: &str| {
        let output = put(hosts, text);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let told = put_well(&hosts, &policy("\"tcp/8022\", \"icmp\""));
    assert!(told.starts_with("version 2 is in force: new a -> b tcp/8022 icmp"), "{told}");
    // Names resolve both ways: a path carries answers.
    assert_eq!(hosts.dig("b", "a.home.internal", "A").1, "10.99.0.2");
    hosts.wait("a ping", |hosts| hosts.pings("a", "10.99.0.3"));
    assert!(is_reached(&hosts, "a", "10.99.0.3", 8_022));
    assert!(!is_reached(&hosts, "a", "10.99.0.3", 8_023));
    assert!(!is_reached(&hosts, "b", "10.99.0.2", 8_022), "against the line");

    let (code, text) = why(&hosts, "a", "b tcp/8022");
    assert!(
        code == Some(0)
            && text.starts_with("a -> b tcp/8022: accepted, by policy 2: a -> b tcp/8022 icmp"),
        "{text}"
    );
    let (code, text) = why(&hosts, "a", "b.home.internal tcp/8023");
    let denied = "no line of the policy lets a reach b at tcp/8023; version 2";
    assert!(code == Some(1) && text.contains(denied), "{text}");
    assert!(why(&hosts, "b", "a").1.contains("policy 2: a -> b tcp/8022 icmp"));
    let (code, text) = why(&hosts, "a", "c");
    assert!(
        code == Some(1) && text.contains("there is no way from a to c: no node has the name"),
        "{text}"
    );

    // A policy that fails its own test changes nothing, nor does one for another version.
    let refused = put(&hosts, &policy("\"icmp\"").replace("deny", "allow"));
    let what = String::from_utf8(refused.stderr).unwrap();
    assert!(
        refused.status.code() == Some(2) && what.contains("policy.toml:10:10: the test fails"),
        "{what}"
    );
    let stale = put(&hosts, &format!("version = 1\n{}", policy("\"icmp\"")));
    assert!(
        String::from_utf8(stale.stderr)
            .unwrap()
            .contains("expected version 1 to be in force, found 2")
    );
    let printed = hosts.cloud(&format!("policy --config {}", hosts.config()));
    assert_eq!(printed, format!("version = 2\n{}", policy("\"tcp/8022\", \"icmp\"")));

    // A change is there at once, also for what goes on: the ping ends, and the port is another one.
    let script = hosts.folder.path().join("ping.sh");
    let pings = hosts.folder.path().join("pings");
    let ping = format!("ping -n -i 0.2 -w 30 10.99.0.3 > {} 2>&1 &\n", pings.display());
    fs::write(&script, ping).unwrap();
    hosts.does("a", &format!("bash {}", script.display()));
    let answers = || fs::read_to_string(&pings).unwrap_or_default().matches("bytes from").count();
    hosts.wait("pings", |_| answers() > 2);
    let changed = Instant::now();
    put_well(&hosts, &printed.replace("\"tcp/8022\", \"icmp\"", "\"tcp/8023\""));
    hosts.wait("the other port", |hosts| is_reached(hosts, "a", "10.99.0.3", 8_023));
    eprintln!("from the policy to the port: {} ms", changed.elapsed().as_millis());
    let ended = answers();
    assert!(!is_reached(&hosts, "a", "10.99.0.3", 8_022) && !hosts.pings("a", "10.99.0.3"));
    // That took seconds, in which it would have had more.
    assert!(answers() <= ended + 1, "{ended} answers, and now {}", answers());
    assert!(
        hosts
            .cloud(&format!("log --config {}", hosts.config()))
            .contains("version 3 of the policy is in force, by user 0")
    );

    // It outlasts the cloud, and nobody can be asked for the way to others meanwhile.
    hosts.kill("cloud");
    let (code, text) = why(&hosts, "a", "d");
    assert!(code == Some(1) && text.contains("the directory does not answer"), "{text}");
    hosts.start_cloud();
    assert!(
        hosts.cloud(&format!("policy --config {}", hosts.config())).starts_with("version = 3\n")
    );
    hosts.wait("the relay again", |hosts| is_reached(hosts, "a", "10.99.0.3", 8_023));
    assert!(!is_reached(&hosts, "a", "10.99.0.3", 8_022));
}
