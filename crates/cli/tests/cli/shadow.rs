//! Rules that a shadow tries, and that are promoted.

use crate::ran::{Ran, Scratch, tamis};
use crate::started::started;

const RULES: &str = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -s 10.0.0.1/32 -j DROP\nCOMMIT\n";
const TRIED: &str = "*filter\n:FORWARD DROP [0:0]\nCOMMIT\n";

#[test]
fn rules_are_tried_and_promoted() {
    let folder = Scratch::new("shadow");
    folder.write("rules.v4", RULES);
    let config = folder.write(
        "live.toml",
        "[[port]]\nname = \"left\"\nkind = \"loopback\"\n\
         [[port]]\nname = \"right\"\nkind = \"loopback\"\n\
         [[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n\
         [control]\nsocket = \"c\"\n",
    );
    let (tried, bad) = (folder.write("tried.v4", TRIED), folder.write("bad.v4", "*filter\n-A\n"));
    let ctl =
        |args: &[&str]| -> Ran { tamis(&[&["ctl", "--socket", &folder.file("c")], args].concat()) };
    let run = started(&config);
    assert!(ctl(&["promote"]).err.starts_with("tamis: expected rules that are tried"));
    assert_eq!(ctl(&["shadow"]).out, "no rules are tried\nnext: tamis ctl shadow FILE\n");
    assert!(ctl(&["shadow", &bad]).err.starts_with("tamis: 2:"), "{}", ctl(&["shadow", &bad]).err);
    let started = ctl(&["shadow", &tried]);
    assert!(started.out.starts_with("tried from now on"), "{}{}", started.out, started.err);
    assert!(ctl(&["shadow"]).out.starts_with("0 packets evaluated by both, 0 of them otherwise\n"));
    assert!(ctl(&["get"]).out.ends_with(RULES), "{}", ctl(&["get"]).out);
    let promoted = ctl(&["promote"]);
    assert!(
        promoted.out.starts_with("revision 2 in force: 0 rules new, 1 gone, 0 kept"),
        "{promoted:?}"
    );
    assert!(ctl(&["get"]).out.ends_with(TRIED), "{}", ctl(&["get"]).out);
    assert_eq!(ctl(&["shadow"]).out, "no rules are tried\nnext: tamis ctl shadow FILE\n");
    assert_eq!(ctl(&["stop"]).code, Some(0));
    assert_eq!(run.ended().code, Some(0));
}
