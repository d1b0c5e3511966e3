//! `tamis tunnel up` and `down` on a host of its own, in a network namespace: what is there in between, and that nothing
//! is left of it, however it ends. Needs root; without, it says so and skips.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use super::host::{Host, wait_until};
use crate::ran::{TAMIS, skipped};

#[test]
fn a_default_route_makes_no_loop_and_all_is_undone() {
    let Some(host) = Host::new("tunnel-route") else { return };
    let config = host.config("");
    let before = host.seen();
    let mut up = host.up(&config);
    let way = |args: &str| host.does("ip", &args.split(' ').collect::<Vec<_>>());
    assert!(way("route get 198.51.100.1").contains("dev office"), "all packets go by the tunnel");
    let marked = way("route get 198.51.100.1 mark 0x7461");
    assert!(marked.contains("via 192.0.2.254 dev eth0"), "but for its own: {marked}");
    assert!(way("route get 192.0.2.7").contains("dev eth0"), "links of the host are nearer");
    assert!(way("route get 192.168.7.9").contains("dev office"));
    assert!(way("-6 route get 2001:db8::1").contains("dev office"));
    assert!(way("-o link show dev office").contains("mtu 1400"));
    // Not twice.
    let again = host.says(TAMIS, &["tunnel", "up", &config]);
    assert!(again.err.contains("the tunnel is up already"), "{again:?}");
    assert_eq!(again.code, Some(1));
    let down = host.says(TAMIS, &["tunnel", "down", &config]);
    assert_eq!((down.code, &*down.out), (Some(0), "down\n"), "{down:?}");
    assert_eq!(host.seen(), before);
    assert!(up.wait().unwrap().success());
}

#[test]
fn a_signal_ends_it_as_well() {
    let Some(host) = Host::new("tunnel-signal") else { return };
    let hook = host.folder.file("hook.txt");
    let config = host.config(&format!("post_down = [\"echo $TAMIS_TUNNEL > {hook}\"]"));
    let before = host.seen();
    for signal in ["-INT", "-TERM"] {
        let mut up = host.up(&config);
        assert_ne!(host.seen(), before);
        let sent = Command::new("kill").args([signal, &up.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert!(up.wait().unwrap().success(), "{signal}");
        assert_eq!(fs::read_to_string(&hook).unwrap(), "office\n", "{signal}");
        fs::remove_file(&hook).unwrap();
        assert_eq!(host.seen(), before, "{signal}");
    }
}

/// Finding: SIGHUP ended a tunnel, where it has a run read its files.
#[test]
fn a_hangup_has_it_read_its_rules_anew_and_nothing_else() {
    let Some(host) = Host::new("tunnel-hangup") else { return };
    let drops = |source: &str| {
        format!("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -s {source} -j DROP\nCOMMIT\n")
    };
    host.folder.write("office.rules", drops("10.77.0.2"));
    let config = host.config("");
    let text = fs::read_to_string(&config).unwrap();
    let text = text.replace("mtu = 1400", "mtu = 1400\nrules = \"office.rules\"");
    let config = host.folder.write("office.toml", text);
    let mut up = host.up(&config);
    let socket = host.folder.file("office.sock");
    let rules = || host.does(TAMIS, &["ctl", "--socket", &socket, "get"]);
    assert!(rules().contains("10.77.0.2"));
    let seen = host.seen();
    let hang_up = || {
        let sent = Command::new("kill").args(["-HUP", &up.id().to_string()]).status();
        assert!(sent.unwrap().success());
    };
    host.folder.write("office.rules", drops("10.77.0.3"));
    hang_up();
    wait_until("new rules", || rules().contains("10.77.0.3"));
    // What cannot be read changes nothing.
    host.folder.write("office.rules", "no rules");
    hang_up();
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(rules().contains("10.77.0.3"));
    assert_eq!(host.seen(), seen);
    assert_eq!(host.says(TAMIS, &["tunnel", "down", &config]).code, Some(0));
    assert!(up.wait().unwrap().success());
}

#[test]
fn whichever_process_ends_the_other_one_does_too() {
    let Some(host) = Host::new("tunnel-killed") else { return };
    let config = host.config("");
    let before = host.seen();
    let serving = |up: &Child| {
        let children = format!("/proc/{0}/task/{0}/children", up.id());
        fs::read_to_string(children).unwrap().trim().to_owned()
    };
    let mut up = host.up(&config);
    let child = serving(&up);
    assert!(Command::new("kill").args(["-9", &child]).status().unwrap().success());
    assert_eq!(up.wait().unwrap().code(), Some(1));
    assert_eq!(host.seen(), before);
    // Rules stay behind where nothing was left that could remove them; packets do not follow them.
    let mut up = host.up(&config);
    let child = serving(&up);
    up.kill().unwrap();
    up.wait().unwrap();
    wait_until("it outlives who started it", || {
        !Path::new(&format!("/proc/{child}/stat")).exists() || is_zombie(&child)
    });
    assert!(host.does("ip", &["route", "get", "198.51.100.1"]).contains("dev eth0"));
    // And are in nobody's way.
    let mut up = host.up(&config);
    assert_eq!(host.says(TAMIS, &["tunnel", "down", &config]).code, Some(0));
    assert!(up.wait().unwrap().success());
}

/// Whether a process has ended, and nobody has asked how.
fn is_zombie(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim().starts_with('Z'))
}

#[test]
fn what_was_done_before_an_error_is_undone() {
    let Some(host) = Host::new("tunnel-failed") else { return };
    let table = "route add 203.0.113.0/24 dev eth0 table 29793";
    let cases = [
        ("pre_up = [\"echo no >&2; exit 3\"]", "sh -c echo no >&2; exit 3: no"),
        ("post_up = [\"exit 3\"]", "sh -c exit 3: exit status: 3"),
        ("mark = 29793", "table 29793 has routes already"),
        ("metrics = \"192.0.2.99:1\"", "192.0.2.99:1"),
    ];
    for (more, what) in cases {
        if more.starts_with("mark") {
            host.does("ip", &table.split(' ').collect::<Vec<_>>());
        }
        let hook = format!("post_down = [\"echo ran > {}\"]\n{more}", host.folder.file("hook.txt"));
        let config = host.config(&hook);
        let before = host.seen();
        let ran = host.says(TAMIS, &["tunnel", "up", &config]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains(what), "{ran:?}\n{what}");
        assert_eq!(ran.out, "", "it was never up");
        fs::remove_file(host.folder.file("hook.txt")).expect("commands for the end are run");
        assert_eq!(host.seen(), before, "{more}");
    }
    // A command that fails is named with what it said.
    let config = host.config("");
    host.does("ip", &["link", "add", "office", "type", "veth", "peer", "name", "office1"]);
    let ran = host.says(TAMIS, &["tunnel", "up", &config]);
    assert!(ran.err.contains("there is a device office already"), "{ran:?}");
}

#[test]
fn in_the_background_it_returns_when_it_is_up() {
    let Some(host) = Host::new("tunnel-detach") else { return };
    let config = host.config("");
    let before = host.seen();
    let ran = host.says(TAMIS, &["tunnel", "up", &config, "--detach"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.out.lines().count(), 5, "{}", ran.out);
    assert!(
        ran.out.starts_with("office is up: 10.77.0.1/24, fd77::1/64, MTU 1400, any UDP port\n")
    );
    assert!(host.does("ip", &["link", "show"]).contains("office"));
    let status = host.says(TAMIS, &["ctl", "--socket", &host.folder.file("office.sock"), "status"]);
    assert_eq!(status.code, Some(0), "{status:?}");
    assert_eq!(host.says(TAMIS, &["tunnel", "down", &config]).code, Some(0));
    assert_eq!(host.seen(), before);
    // What keeps it from coming up is reported all the same.
    let config = host.config("post_up = [\"exit 3\"]");
    let ran = host.says(TAMIS, &["tunnel", "up", &config, "--detach"]);
    assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{ran:?}");
    assert!(ran.err.contains("sh -c exit 3: exit status: 3"), "{ran:?}");
    let _ = fs::remove_file(&config);
    host.config("");
    assert_eq!(host.seen(), before);
}

#[test]
fn servers_of_names_are_given_to_resolvconf_and_taken_back() {
    let Some(host) = Host::new("tunnel-dns") else { return };
    if Path::new("/run/systemd/resolve").is_dir() {
        return skipped("servers of names: systemd-resolved runs here");
    }
    let folder = host.folder.path().display();
    let script = format!("#!/bin/sh\n(echo \"$*\"; [ \"$1\" = -a ] && cat) >> {folder}/said\n");
    let program = host.folder.write("resolvconf", script);
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let config = host.config("dns = [\"10.77.0.53\", \"fd77::53\"]\nsearch = [\"corp\", \"lan\"]");
    let path = format!("PATH={folder}:{}", std::env::var("PATH").unwrap());
    let up = host.says("env", &[&path, TAMIS, "tunnel", "up", &config, "--detach"]);
    assert_eq!(up.code, Some(0), "{up:?}");
    assert_eq!(host.says(TAMIS, &["tunnel", "down", &config]).code, Some(0));
    let said = fs::read_to_string(host.folder.file("said")).unwrap();
    let expected = "-a office -m 0 -x\nnameserver 10.77.0.53\nnameserver fd77::53\nsearch corp lan\n\
                    -d office -f\n";
    assert_eq!(said, expected);
}
