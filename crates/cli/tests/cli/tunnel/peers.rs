//! Peers of tunnels that are up: one has a name, which is looked up by a process that has given up its privileges, and
//! one is added while its tunnel is up. Needs root; without, it says so and skips.

use serde_json::Value;

use super::host::{Host, wait_until};
use crate::ran::{TAMIS, fed};

/// The peers of a tunnel, as JSON has them.
fn peers(host: &Host, config: &str) -> Vec<Value> {
    let ran = host.says(TAMIS, &["tunnel", "peers", config, "--json"]);
    let document = ran.json();
    assert_eq!(document["schema"], "tamis.tunnel/1");
    document["tunnels"][0]["peers"].as_array().unwrap().clone()
}

#[test]
fn a_peer_is_looked_up_by_its_name_added_and_removed() {
    let Some(host) = Host::new("tunnel-peers") else { return };
    let key = |name: &str| {
        let secret = std::fs::read(host.folder.file(name)).unwrap();
        fed(&["tunnel", "pubkey"], &secret).out.trim_end().to_owned()
    };
    host.does(TAMIS, &["tunnel", "keygen", "--out", &host.folder.file("home.key")]);
    host.does(TAMIS, &["tunnel", "keygen", "--preshared", "--out", &host.folder.file("home.psk")]);
    let (office, home) = (key("office.key"), key("home.key"));
    let named = format!(
        "[tunnel]\nname = \"office\"\nkey = \"office.key\"\nlisten = 51900\ncontrol = \"office.sock\"\n\
         [[peer]]\nname = \"home\"\nkey = \"{home}\"\npreshared = \"home.psk\"\n\
         endpoint = \"localhost:51901\"\nallowed = [\"10.77.0.2/32\"]\nkeepalive = 1\n"
    );
    let named = host.folder.write("office.toml", named);
    let alone =
        "[tunnel]\nname = \"home\"\nkey = \"home.key\"\nlisten = 51901\ncontrol = \"home.sock\"\n";
    let alone = host.folder.write("home.toml", alone);
    let _up = [host.up(&named), host.up(&alone)];
    assert_eq!(peers(&host, &alone), [Value::Null; 0]);
    assert_eq!(peers(&host, &named)[0]["handshake_s"], Value::Null, "nobody knows it yet");
    let add = |more: &[&str]| {
        let args = [
            "tunnel",
            "add-peer",
            &alone,
            "office",
            &office,
            "--allowed",
            "10.77.0.1/32,fd77::/64",
        ];
        host.says(TAMIS, &[&args[..], more].concat())
    };
    let added = add(&["--preshared", &host.folder.file("home.psk"), "--keepalive", "1"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let again = add(&[]);
    assert_eq!((again.code, &*again.out), (Some(1), ""), "{again:?}");
    for config in [&named, &alone] {
        wait_until("a handshake", || peers(&host, config)[0]["handshake_s"].is_number());
    }
    let told = &peers(&host, &alone)[0];
    assert_eq!((&told["name"], &told["key"]), (&"office".into(), &office.into()));
    assert_eq!(told["allowed"], serde_json::json!(["10.77.0.1/32", "fd77::/64"]));
    let shown = host.does(TAMIS, &["tunnel", "status", &named]);
    assert!(shown.starts_with("office: peers 1\n") && shown.contains(":51901 "), "{shown}");
    let remove = || host.says(TAMIS, &["tunnel", "remove-peer", &alone, "office"]);
    assert_eq!(remove().code, Some(0));
    assert_eq!(peers(&host, &alone), [Value::Null; 0]);
    assert_eq!(remove().code, Some(1));
    for config in [&named, &alone] {
        assert_eq!(host.says(TAMIS, &["tunnel", "down", config]).code, Some(0));
    }
}
