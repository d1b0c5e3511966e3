//! Small lock files with something wrong in them, and what is said of it.

use crate::advisories::Snapshot;
use crate::deny::Deny;
use crate::licences::{self, Licences};
use crate::{findings, lock, sbom, tree};

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// 2026-11-23.
const TODAY: i64 = 20_780;

/// `deny.toml` with these exceptions, as TOML.
fn deny(exceptions: &str) -> Deny {
    Deny::read(&format!(
        "[advisories]\nignore = [{exceptions}]\n[licenses]\nallow = [\"MIT\"]\n\
         [sources]\nallow-registry = [\"https://github.com/rust-lang/crates.io-index\"]\n"
    ))
    .expect("deny.toml")
}

fn snapshot() -> Snapshot {
    Snapshot::read(
        "date = 2026-11-01\ncommit = \"0\"\n[advisories]\nRUSTSEC-2026-9999 = \
         { package = \"sieve\", patched = [\">= 1.2.3\", \"^0.9.7\"], unaffected = [\"< 0.5.0\"] }\n",
    )
    .expect("a snapshot")
}

/// What is wrong where `Cargo.lock` holds `sieve` of that version and source, which `licences.txt` lists so.
fn wrong_by(deny: &Deny, version: &str, source: &str, listed: &str) -> Vec<String> {
    let lock = format!("[[package]]\nname = \"sieve\"\nversion = \"{version}\"\n{source}\n");
    let locked = lock::read("Cargo.lock", &lock).expect("a lock file");
    let licences = Licences::read(&format!("# Head\n{listed}")).expect("a list");
    findings(deny, &snapshot(), &licences, &locked, TODAY)
}

/// The same from crates.io, under MIT.
fn wrong(deny: &Deny, version: &str) -> Vec<String> {
    let source = format!("source = \"{CRATES_IO}\"");
    wrong_by(deny, version, &source, &format!("sieve {version} MIT\n"))
}

#[test]
fn a_version_is_vulnerable_unless_a_range_spares_it() {
    for spared in ["1.2.3", "1.9.0", "0.9.7", "0.9.99", "0.4.9", "2.0.0", "1.2.4+build"] {
        assert_eq!(wrong(&deny(""), spared), [""; 0], "{spared}");
    }
    for affected in ["1.2.2", "0.9.6", "0.5.0", "0.10.0", "1.2.3-rc.1"] {
        let said = format!(
            "Cargo.lock:2: sieve {affected}: vulnerable by RUSTSEC-2026-9999, patched: >=1.2.3 or ^0.9.7 \
             (https://rustsec.org/advisories/RUSTSEC-2026-9999.html)"
        );
        assert_eq!(wrong(&deny(""), affected), [said]);
    }
    let another = "[[package]]\nname = \"sieves\"\nversion = \"1.2.2\"\n";
    let another = lock::read("Cargo.lock", another).expect("a lock file");
    assert_eq!(snapshot().check(&deny(""), &another, TODAY), [""; 0]);
}

#[test]
fn an_exception_holds_until_its_day_and_no_longer_than_it_is_needed() {
    let until = |day: &str| {
        deny(&format!("{{ id = \"RUSTSEC-2026-9999\", reason = \"until {day}: not called\" }}"))
    };
    assert_eq!(wrong(&until("2026-11-23"), "1.2.2"), [""; 0]);
    let expired = "deny.toml: the exception from RUSTSEC-2026-9999 expired on 2026-11-22";
    assert_eq!(wrong(&until("2026-11-22"), "1.2.2"), [expired]);
    let idle = "deny.toml: nothing needs the exception from RUSTSEC-2026-9999";
    assert_eq!(wrong(&until("2026-11-23"), "1.2.3"), [idle]);
    for reason in ["not called", "until 2026-13-01: not called", "until 2026-11-23: "] {
        let text = format!(
            "[advisories]\nignore = [{{ id = \"R\", reason = \"{reason}\" }}]\n[licenses]\nallow = []\n\
             [sources]\nallow-registry = []\n"
        );
        let why = Deny::read(&text).expect_err(reason).to_string();
        let said = "deny.toml: R: expected `until YYYY-MM-DD: why`, found ";
        assert_eq!(why, format!("{said}`{reason}`"));
    }
}

#[test]
fn only_the_registry_that_is_allowed_is_a_source() {
    let listed = "sieve 1.2.3 MIT\n";
    for source in [
        "git+https://example.org/sieve#0f",
        "git+https://github.com/rust-lang/crates.io-index",
        "registry+https://example.org/index",
    ] {
        let field = format!("source = \"{source}\"");
        let said = format!(
            "Cargo.lock:2: sieve 1.2.3: comes from {source}, which deny.toml does not allow"
        );
        assert_eq!(wrong_by(&deny(""), "1.2.3", &field, listed), [said]);
    }
    let folder = &wrong_by(&deny(""), "1.2.3", "", "")[0];
    assert!(folder.contains("sieve 1.2.3: comes from a folder"), "{folder}");
}

#[test]
fn a_licence_is_listed_and_allowed() {
    let source = format!("source = \"{CRATES_IO}\"");
    let wrong = |listed: &str| wrong_by(&deny(""), "1.2.3", &source, listed);
    let idle = "deny.toml: nothing needs the licence MIT".to_owned();
    let said = "Cargo.lock:2: sieve 1.2.3: deny.toml does not allow its licence, GPL-3.0-only";
    assert_eq!(wrong("sieve 1.2.3 GPL-3.0-only\n")[0], said);
    let said = "Cargo.lock:2: sieve 1.2.3: its licence, MIT OR: expected a licence";
    assert_eq!(wrong("sieve 1.2.3 MIT OR\n")[0], said);
    let missing = "Cargo.lock:2: sieve 1.2.3: not in .ci/supply/licences.txt (make licences)";
    assert_eq!(wrong(""), [missing.to_owned(), idle.clone()]);
    let stale = ".ci/supply/licences.txt:2: sieve 1.2.2 is in no lock file (make licences)";
    assert_eq!(wrong("sieve 1.2.2 MIT\n"), [missing.to_owned(), stale.to_owned(), idle]);
    assert!(Licences::read("sieve 1.2.3\n").is_err(), "no licence");
}

#[test]
fn expressions_are_those_of_spdx() {
    let holds = |text: &str| {
        licences::satisfied(text, &|one| ["MIT", "ISC", "GPL-2.0-only WITH x"].contains(&one))
    };
    for text in [
        "MIT",
        "GPL-3.0-only OR MIT",
        "MIT/GPL-3.0-only",
        "MIT OR GPL-3.0-only AND Zlib",
        "(Zlib OR ISC) AND MIT",
        "GPL-2.0-only WITH x",
    ] {
        assert!(holds(text).expect(text), "{text}");
    }
    for text in [
        "UNKNOWN",
        "MIT AND Zlib",
        "Zlib AND GPL-3.0-only OR Zlib",
        "(MIT OR Zlib) AND Zlib",
        "MIT WITH x",
        "GPL-2.0-only",
        "mit",
    ] {
        assert!(!holds(text).expect(text), "{text}");
    }
    for text in ["", "MIT Zlib", "MIT OR", "(MIT", "MIT)", "AND MIT", "MIT WITH", "()"] {
        assert!(holds(text).is_err(), "{text}");
    }
}

#[test]
fn third_party_is_what_is_linked() {
    let linked = |text: &str| tree::read(text).expect("cargo tree");
    let now = linked(
        "tamis v0.1.0 (/repo/crates/cli)\tMIT\t\n\
         sieve v1.2.3\tMIT\thttps://example.org/sieve\n\
         mesh v0.1.0+x\t\t\n\
         sieve v1.2.3\tMIT\thttps://example.org/sieve (*)\n",
    );
    let then = linked("sieve v1.2.2\tMIT\thttps://example.org/sieve\nmesh v0.1.0+x\t\t\n");
    let listed = Licences::read("mesh 0.1.0+x UNKNOWN\nsieve 1.2.3 MIT\n").expect("a list");
    let text = tree::third_party(&now);
    let rows = "| mesh 0.1.0+x | UNKNOWN |  |\n| sieve 1.2.3 | MIT | https://example.org/sieve |\n";
    assert!(text.ends_with(&format!("|---|---|---|\n{rows}")), "{text}");
    assert_eq!(tree::compare(&text, &now, &listed), [""; 0]);
    let row = |version| format!("`| sieve {version} | MIT | https://example.org/sieve |`");
    let file = "crates/cli/THIRD-PARTY.md";
    assert_eq!(
        tree::compare(&tree::third_party(&then), &now, &listed),
        [
            format!("{file}: lacks {} (make licences)", row("1.2.3")),
            format!("{file}: stale: {} (make licences)", row("1.2.2"))
        ]
    );
    let twice = format!("{text}{rows}");
    let said = format!("{file}: its lines are not each there once and in order (make licences)");
    assert_eq!(tree::compare(&twice, &now, &listed), [said]);
    let listed = Licences::read("mesh 0.1.0+x UNKNOWN\nsieve 1.2.3 ISC\n").expect("a list");
    let said = ".ci/supply/licences.txt: sieve 1.2.3 is under MIT, not ISC (make licences)";
    assert_eq!(tree::compare(&text, &now, &listed), [said]);
}

#[test]
fn a_snapshot_says_how_old_it_is() {
    let snapshot = snapshot();
    let known = "1 advisories as of 2026-11-01, 22 days ago: later ones are not known";
    assert_eq!(snapshot.age(TODAY), known);
    assert!(!snapshot.age(snapshot.date.number() + 90).contains("WARNING"));
    assert!(snapshot.age(snapshot.date.number() + 91).contains("WARNING: it is old"));
    let printed = snapshot.print().expect("it reads as it was");
    assert!(printed.contains("RUSTSEC-2026-9999 = { package = \"sieve\", "), "{printed}");
    assert!(Snapshot::read("date = 2026-11-01\ncommit = \"0\"\n[advisories]\n").is_err(), "empty");
}

#[test]
fn days_are_counted_as_date_does() {
    // date -d DAY +%s, divided by 86,400.
    for (day, number) in [("1970-01-01", 0), ("2000-02-29", 11_016), ("2026-11-23", TODAY)] {
        assert_eq!(day.parse::<crate::date::Day>().expect(day).number(), number, "{day}");
    }
    for bad in ["2026-11-31", "2026-1-1", "2026-11-01T00:00:00", "soon"] {
        assert!(bad.parse::<crate::date::Day>().is_err(), "{bad}");
    }
}

#[test]
fn a_bill_names_each_crate_with_its_licence_source_and_sum() {
    let linked = tree::read(
        "tamis v0.1.0 (/src)\tMIT\t\nsieve v1.2.3\tMIT/Apache-2.0\thttps://example.org/sieve\n",
    );
    let text = format!(
        "[[package]]\nname = \"sieve\"\nversion = \"1.2.3\"\nsource = \"{CRATES_IO}\"\n\
         checksum = \"abc\"\n"
    );
    let locked = lock::read("Cargo.lock", &text).expect("a lock file");
    let bill = sbom::print("0.1.0", &linked.expect("a tree"), &locked);
    let bill: serde_json::Value = serde_json::from_str(&bill).expect("JSON");
    assert_eq!(bill["bomFormat"], "CycloneDX");
    assert_eq!(bill["metadata"]["component"]["version"], "0.1.0");
    let expected = serde_json::json!([{
        "type": "library",
        "bom-ref": "pkg:cargo/sieve@1.2.3",
        "name": "sieve",
        "version": "1.2.3",
        "licenses": [{ "expression": "MIT OR Apache-2.0" }],
        "purl": "pkg:cargo/sieve@1.2.3",
        "hashes": [{ "alg": "SHA-256", "content": "abc" }],
        "externalReferences": [{ "type": "vcs", "url": "https://example.org/sieve" }],
    }]);
    assert_eq!(bill["components"], expected);
}
