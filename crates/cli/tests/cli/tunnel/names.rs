//! Which tunnel is meant, and what is said where there is none.

use std::fs;

use live::config::tunnel::TunnelSettings;

use crate::ran::{Scratch, tamis};

#[test]
fn a_tunnel_that_is_not_up_is_said_to_be_so() {
    let ran = tamis(&["tunnel", "down", "no-such-tunnel"]);
    let what = "no-such-tunnel: no such tunnel is up (tamis tunnel status)";
    assert_eq!(ran.refusal(), what);
    let ran = tamis(&["tunnel", "peers", "no-such-tunnel"]);
    assert!(ran.refusal().starts_with("/run/tamis/no-such-tunnel.sock: no run listens there"));
}

#[test]
fn a_tunnel_is_named_by_its_configuration_too() {
    let folder = Scratch::new("tunnel-names");
    let ran = tamis(&["tunnel", "keygen", "--out", &folder.file("office.key")]);
    assert_eq!(ran.code, Some(0));
    let text = "[tunnel]\nkey = \"office.key\"\ncontrol = \"office.sock\"\n";
    let config = folder.write("office.toml", text);
    for command in ["peers", "status"] {
        let ran = tamis(&["tunnel", command, &config]);
        assert!(ran.refusal().starts_with(&folder.file("office.sock")), "{ran:?}");
    }
    // A file that a process left behind that has ended is no tunnel.
    fs::write(folder.file("office.lock"), "1").unwrap();
    assert!(tamis(&["tunnel", "down", &config]).refusal().ends_with("(tamis tunnel status)"));
}

#[test]
fn a_configuration_is_refused_before_anything_is_done() {
    let folder = Scratch::new("tunnel-refused");
    let config =
        folder.write("office.toml", "[tunnel]\nkey = \"none.key\"\npost_up = [\"exit\"]\n");
    let ran = tamis(&["tunnel", "up", &config]);
    assert!(ran.refusal().starts_with(&format!("{config}:2:7: ")), "{ran:?}");
    tamis(&["tunnel", "keygen", "--out", &folder.file("none.key")]);
    let text = "[tunnel]\nkey = \"none.key\"\nrules = \"none.rules\"\n";
    let config = folder.write("office.toml", text);
    for more in [&[][..], &["--detach"]] {
        let ran = tamis(&[&["tunnel", "up", &config], more].concat());
        assert!(ran.refusal().starts_with(&format!("{config}:3:9: ")), "{ran:?}");
    }
}

/// What the page calls a configuration is one, and it has every key that there is.
#[test]
fn the_page_has_every_key_and_no_other() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tunnel.md");
    let page = fs::read_to_string(page).unwrap();
    let block = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = Scratch::new("tunnel-page");
    for (name, more) in [("office.key", &[][..]), ("home.psk", &["--preshared"])] {
        let file = folder.file(name);
        assert_eq!(tamis(&[&["tunnel", "keygen", "--out", &file], more].concat()).code, Some(0));
    }
    let config = folder.write("office.toml", block);
    let read = TunnelSettings::read(config.as_ref()).unwrap();
    assert_eq!((&*read.name, read.peers.len()), ("office", 1));
    for section in ["[tunnel]", "[[peer]]"] {
        let config =
            folder.write("bad.toml", block.replace(section, &format!("{section}\nno = 1")));
        let refused = TunnelSettings::read(config.as_ref()).unwrap_err().what;
        let keys = refused.strip_prefix("expected one of ").unwrap().split(',').next().unwrap();
        let (_, of_section) = block.split_once(&format!("\n{section}\n")).unwrap();
        for key in keys.split(' ') {
            assert!(
                of_section.contains(&format!("\n{key} = "))
                    || of_section.starts_with(&format!("{key} = ")),
                "{key}"
            );
        }
    }
}
