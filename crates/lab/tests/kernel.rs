//! A slice of the campaign against this machine's kernel: random rulesets, both families, every scene.
//!
//! Needs root and the legacy tools; without them it says so and passes. `TAMIS_ORACLE_PACKETS` (for each
//! family) and `TAMIS_ORACLE_SEED` make it longer or another.
#![cfg(target_os = "linux")]

use std::process::Command;
use std::time::{Duration, Instant};

use lab::oracle::campaign::{Plan, run};
use lab::oracle::kernel::Kernel;
use lab::oracle::load::lacking;
use lab::oracle::netns;
use lab::scene::Scene;
use rules::model::Family;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn tamis_and_the_kernel_agree() {
    if let Some(reason) = lacking() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let plan = Plan {
        seed: setting("TAMIS_ORACLE_SEED", 1),
        packets: setting("TAMIS_ORACLE_PACKETS", 400_000),
        families: vec![Family::Ipv4, Family::Ipv6],
        until: std::env::var_os("TAMIS_ORACLE_PACKETS")
            .is_none()
            .then(|| Instant::now() + Duration::from_secs(60)),
        threads: 8,
        most_failures: 3,
    };
    let (summary, failures) = run(&plan).unwrap();
    print!("{}", summary.json_lines());
    let stories: Vec<&str> = failures.iter().map(|failure| failure.story.as_str()).collect();
    assert!(stories.is_empty(), "{}", stories.join("\n\n"));
    assert!(summary.packets(|_| true) > 0, "nothing was compared");
}

#[test]
fn tamis_is_told_the_routes_that_the_namespace_has() {
    if let Some(reason) = lacking() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    for words in ["ip tun raw", "ip6 tun raw", "ip veth raw", "ip6 veth raw"] {
        let scene = Scene::parse(words).unwrap();
        let family = if scene.family == Family::Ipv6 { "-6" } else { "-4" };
        let found = netns::in_fresh(|| {
            let _kernel = Kernel::new(scene)?;
            let args = [family, "route", "show", "table", "all"];
            Ok(Command::new("ip").args(args).output()?.stdout)
        });
        let found = String::from_utf8(found.unwrap()).unwrap();
        let found: Vec<&str> = found.lines().map(str::trim_end).collect();
        let told = scene.routes();
        // A route without a gateway prints its scope.
        let told: Vec<&str> = told.lines().collect();
        assert_eq!(found[0].strip_suffix(" scope link").unwrap_or(found[0]), told[0]);
        assert_eq!(found[1..], told[1..], "{words}");
    }
}
