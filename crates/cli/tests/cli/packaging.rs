//! The systemd units, as systemd reads them.

use std::fs;
use std::process::Command;

use crate::ran::{Scratch, TAMIS, skipped};

#[test]
fn systemd_takes_the_unit_and_its_bypass() {
    let packaging = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");
    let folder = Scratch::new("packaging");
    let read = |name: &str| fs::read_to_string(format!("{packaging}/{name}")).unwrap();
    let unit =
        folder.write("tamis.service", read("tamis.service").replace("/usr/bin/tamis", TAMIS));
    fs::create_dir(folder.file("tamis.service.d")).unwrap();
    folder.write("tamis.service.d/bypass.conf", read("bypass.conf"));
    is_taken(&unit);
}

#[test]
fn systemd_takes_the_unit_of_tunnels() {
    let packaging = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");
    let folder = Scratch::new("packaging-tunnel");
    let unit = fs::read_to_string(format!("{packaging}/tamis-tunnel@.service")).unwrap();
    let unit = unit.replace("/usr/bin/tamis", TAMIS);
    is_taken(&folder.write("tamis-tunnel@office.service", unit));
}

#[test]
fn systemd_takes_the_unit_of_the_cloud() {
    let packaging = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");
    let folder = Scratch::new("packaging-cloud");
    for (unit, instance) in [("tamis-cloud", "tamis-cloud"), ("tamis-cloud@", "tamis-cloud@as")] {
        let unit = fs::read_to_string(format!("{packaging}/{unit}.service")).unwrap();
        // Whichever program is there.
        let unit = unit.replace("/usr/bin/tamis-cloud", TAMIS);
        is_taken(&folder.write(&format!("{instance}.service"), unit));
    }
}

/// Without a word.
fn is_taken(unit: &str) {
    let Ok(verified) = Command::new("systemd-analyze").args(["verify", unit]).output() else {
        return skipped("the systemd unit: systemd-analyze is not there");
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && said.is_empty(), "{said}");
}
