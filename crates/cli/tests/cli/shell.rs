//! Completions and manual pages know every command.

use std::fs;

use crate::ran::{Scratch, within};

const COMMANDS: [&str; 6] = ["demo", "replay", "why", "test", "completions", "man"];

#[test]
fn completions_of_every_shell_name_every_command() {
    let folder = Scratch::new("completions");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = folder.tamis(&["completions", shell]);
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{shell}");
        for word in COMMANDS.iter().chain(&["near", "junit", "save-counters"]) {
            assert!(ended.out.contains(word), "{shell} does not know {word}");
        }
    }
    assert_eq!(folder.tamis(&["completions", "tcsh"]).code, Some(2));
}

#[test]
fn bash_takes_the_completions() {
    let folder = Scratch::new("completions-bash");
    folder.write("tamis.bash", &folder.tamis(&["completions", "bash"]).out);
    let checked = std::process::Command::new("bash")
        .args(["-c", "source ./tamis.bash && complete -p tamis"])
        .current_dir(folder.path())
        .output();
    match checked {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(error) => eprintln!("SKIPPED: no bash: {error}"),
    }
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let folder = Scratch::new("man");
    let ended = folder.tamis(&["man"]);
    assert_eq!(ended.code, Some(0));
    assert!(ended.out.contains(".TH tamis 1"), "{}", ended.out);
    assert_eq!(folder.tamis(&["man", "pages/man1"]).code, Some(0));
    for command in COMMANDS {
        let page = folder.path().join(format!("pages/man1/tamis-{command}.1"));
        let text = fs::read_to_string(&page).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{text}");
    }
    assert!(folder.path().join("pages/man1/tamis.1").exists());
    let file = folder.path().join("pages/man1/tamis.1").display().to_string();
    let ended = within(folder.path(), &["man", &file]);
    assert_eq!((ended.code, ended.err.lines().count()), (Some(2), 1), "{}", ended.err);
}
