//! README's rule change: its commands and its cases are run as they stand there, and what they print is
//! what README shows. `TAMIS_UPDATE=1` takes what is printed now.

use std::fs;
use std::process::Command;

use crate::ran::{Ran, Scratch, TAMIS};
use crate::readme::block;
use crate::snapshot::matches_snapshot;

/// Runs what README says to type, with this binary first on the path.
pub(crate) fn typed(scratch: &Scratch, script: &str) -> Ran {
    let folder = std::path::Path::new(TAMIS).parent().unwrap().display();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    let shell = shell.args(["-e", "-c", script]).env("PATH", path).current_dir(scratch.path());
    shell.output().unwrap().into()
}

#[test]
fn a_rule_that_opens_a_port_shows_on_a_capture_in_a_case_and_on_the_page() {
    let scratch = Scratch::new("review");
    let ran = typed(&scratch, &block("review.sh"));
    assert_eq!(ran.code, Some(3), "{}{}", ran.out, ran.err);
    let from = ran.out.find("CHANGES").unwrap();
    let to = ran.out[from..].find("\n\n").unwrap();
    matches_snapshot("review.txt", &ran.out[from..=from + to]);

    fs::write(scratch.file("cases.toml"), block("review.toml")).unwrap();
    let test = "tamis test cases.toml";
    let ran = typed(&scratch, test);
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    matches_snapshot("review-test.txt", &format!("$ {test}\n{}", ran.out));
    let annotated = typed(&scratch, &format!("{test} --github")).out;
    assert!(annotated.starts_with("::error file=cases.toml,line=3,"), "{annotated}");
    let old = typed(&scratch, "tamis test demo-rules.v4 cases.toml");
    assert_eq!(old.code, Some(0), "before the change the case passes: {}", old.out);

    let page = fs::read_to_string(scratch.file("review.html")).unwrap();
    assert!(page.contains("data-from=\"drop\" data-to=\"accept\""));
    assert!(page.contains("<b id=\"changed\">5</b>"));
}
