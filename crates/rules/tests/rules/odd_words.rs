//! Names and words that the lexer lets through but that must be refused, or quoted when printed.

use rules::save::{LoadError, LoadOptions, load, print_ruleset};

fn printed(text: &str) -> Result<String, LoadError> {
    let loaded = load(text, &LoadOptions { table: Some("filter"), ..LoadOptions::default() })?;
    Ok(print_ruleset(&loaded.ruleset, false, |_, _, _| Default::default()))
}

/// Line and column of the refusal.
fn refused(text: &str) -> (u32, u32) {
    let error = printed(text).expect_err(text);
    assert!(error.what.len() < 300, "{error}");
    (error.line, error.column)
}

/// The rules of `INPUT` as printed, which must print as themselves.
fn rules(text: &str) -> Vec<String> {
    let once = printed(&format!("*filter\n{text}COMMIT\n")).expect(text);
    assert_eq!(printed(&once).as_ref(), Ok(&once));
    once.lines().filter(|line| line.starts_with("-A")).map(str::to_owned).collect()
}

#[test]
fn chain_names_that_would_not_read_back_are_refused_where_they_stand() {
    assert_eq!(refused("*filter\n-N \"x y\"\n"), (2, 4));
    assert_eq!(refused("*filter\n:x\u{b}y - [0:0]\n"), (2, 2));
    assert_eq!(refused("*filter\n:\"xy\" - [0:0]\n"), (2, 2));
    assert_eq!(refused("-N DROP\n"), (1, 4));
    assert_eq!(refused(&format!("-N \"{} \"\n", "x".repeat(9_000))), (1, 4));
}

#[test]
fn a_quoted_chain_name_is_the_same_chain() {
    let text = "-N \"x\"\n-A \"x\" -j RETURN\n-A \"INPUT\" -j x\n-A INPUT -g \"x\"\n";
    assert_eq!(rules(text), ["-A x -j RETURN", "-A INPUT -j x", "-A INPUT -g x"]);
}

#[test]
fn a_chain_named_as_a_target_wins_if_it_stands_before_its_use() {
    assert_eq!(rules(":LOG - [0:0]\n-A INPUT -j LOG\n"), ["-A INPUT -j LOG"]);
    assert_eq!(refused("*filter\n:LOG - [0:0]\n-A INPUT -j LOG --log-prefix x\n"), (3, 17));
    assert_eq!(refused("*filter\n-A INPUT -j LOG\n:LOG - [0:0]\n"), (3, 2));
}

#[test]
fn the_new_chain_command_warns_of_a_target_name_or_refuses_it() {
    let options = LoadOptions { table: Some("filter"), ..LoadOptions::default() };
    assert_eq!(load("-N LOG\n", &options).unwrap().warnings.len(), 1);
    let strict = LoadOptions { strict: true, ..options };
    assert_eq!(load("-N LOG\n", &strict).unwrap_err().column, 4);
    assert!(load("*filter\n:LOG - [0:0]\nCOMMIT\n", &strict).is_ok());
}

#[test]
fn a_nul_is_refused_where_it_stands() {
    assert_eq!(refused("*filter\n-A INPUT -m comment --comment a\0b\n"), (2, 32));
    assert_eq!(refused("# \0\n"), (1, 3));
}

#[test]
fn words_that_would_come_apart_are_quoted() {
    for rule in [
        r#"-A INPUT -i "a b" -j DROP"#,
        r#"-A INPUT ! -i "!" -j ACCEPT"#,
        r#"-A INPUT -m odd --x "-j" "y z" "!" "" -j ACCEPT"#,
    ] {
        assert_eq!(rules(&format!("{rule}\n")), [rule]);
    }
    assert_eq!(refused("-A INPUT -m \"no such\"\n"), (1, 13));
}

#[test]
fn rules_outside_a_table_are_taken_only_where_no_table_is_named() {
    assert_eq!(refused("*filter\nCOMMIT\n-A INPUT -j DROP\n"), (3, 1));
    assert!(printed("-A INPUT -j DROP\n").is_ok());
}

#[test]
fn times_that_never_come_print_as_they_read_back() {
    let everyday = "-A INPUT -m time ! --weekdays Mon,Tue,Wed,Thu,Fri,Sat,Sun";
    for rule in [
        "-A INPUT -m time --datestop 1970-01-01T00:00:00 -j DROP".to_owned(),
        format!("{everyday} --datestop 2038-01-19T03:14:07 -j DROP"),
    ] {
        assert_eq!(rules(&format!("{rule}\n")), [rule]);
    }
}
