//! Small crates, and the circles in them.

use std::fs;
use std::path::Path;

use crate::{circles, exceptions, floors, resolve, source};

/// The circles of a crate called `c` with these files, as names of modules.
fn circles_of(files: &[(&str, &str)], listed: &str) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path().join("c");
    for (name, text) in files {
        let file = folder.join("src").join(name);
        fs::create_dir_all(file.parent().unwrap_or(Path::new(""))).expect("made");
        fs::write(file, text).expect("written");
    }
    let modules = source::read(&folder).expect("a crate");
    let exceptions = exceptions::read(listed).expect("exceptions");
    let mut edges = resolve::edges(&modules);
    edges.retain(|edge| !exceptions.lists(&modules, edge));
    let circles = circles::find(modules.len(), &edges);
    let named = |circle: Vec<usize>| circle.iter().map(|at| modules[*at].path.clone()).collect();
    circles.into_iter().map(named).collect()
}

const ROOT: &str = "mod a; mod b; pub use b::B;";

#[test]
fn two_that_use_each_other_are_a_circle() {
    let files = [
        ("lib.rs", ROOT),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "pub struct B(crate::a::A);"),
    ];
    assert_eq!(circles_of(&files, ""), [["c::a", "c::b"]]);
}

#[test]
fn names_that_are_handed_on_belong_to_the_file_that_defines_them() {
    let user = "use crate::*; pub struct A(B);";
    for user in [
        "use crate::B; pub struct A;",
        "pub struct A(crate::B);",
        user,
        "use super::B as X; pub struct A;",
    ] {
        let files =
            [("lib.rs", ROOT), ("a.rs", user), ("b.rs", "use crate::a; pub struct B(a::A);")];
        assert_eq!(circles_of(&files, ""), [["c::a", "c::b"]], "{user}");
    }
    let files = [("lib.rs", ROOT), ("a.rs", user), ("b.rs", "pub struct B;")];
    assert!(circles_of(&files, "").is_empty());
}

#[test]
fn arguments_of_macros_are_read() {
    let files = [
        ("lib.rs", ROOT),
        ("a.rs", "pub fn a() -> String { format!(\"{}\", crate::b::ONE) }"),
        ("b.rs", "pub struct B; pub const ONE: u8 = 1; pub fn b() { crate::a::a(); }"),
    ];
    assert_eq!(circles_of(&files, ""), [["c::a", "c::b"]]);
}

#[test]
fn a_child_that_uses_its_parent_is_a_circle_where_the_parent_uses_it() {
    let child = ("b/child.rs", "use super::B; pub fn child(_: B) {}");
    let parent = "mod child; pub struct B; pub fn b() { child::child(B) }";
    let user = ("a.rs", "use crate::B; pub struct A;");
    let files = [("lib.rs", ROOT), user, ("b/mod.rs", parent), child];
    assert_eq!(circles_of(&files, ""), [["c::b", "c::b::child"]]);
    let files = [("lib.rs", ROOT), user, ("b.rs", "mod child; pub struct B;"), child];
    assert!(circles_of(&files, "").is_empty());
    let child = ("b/child.rs", "use crate::a::A; pub fn child(_: A) {}");
    let files =
        [("lib.rs", ROOT), ("a.rs", "use crate::B; pub struct A(B);"), ("b.rs", parent), child];
    assert_eq!(circles_of(&files, ""), [["c::a", "c::b", "c::b::child"]]);
}

#[test]
fn a_facade_closes_no_circle_with_its_children() {
    let files = [
        ("lib.rs", "mod b; pub use b::B;"),
        ("b/mod.rs", "mod child; mod kept; pub use child::child; pub use kept::B;"),
        ("b/kept.rs", "pub struct B;"),
        ("b/child.rs", "use super::B; pub fn child(_: B) {}"),
    ];
    assert!(circles_of(&files, "").is_empty());
}

#[test]
fn the_parent_of_a_module_within_a_file_is_the_file() {
    let parent = ("b/mod.rs", "mod child; pub struct B; pub fn b() { child::child() }");
    let of = |text| circles_of(&[("lib.rs", "mod b;"), parent, ("b/child.rs", text)], "");
    assert!(
        of("pub fn child() {} mod m { use super::child; pub fn m() { super::child() } }")
            .is_empty()
    );
    assert_eq!(
        of("pub fn child() {} mod m { use super::super::B; pub fn m(_: B) {} }"),
        [["c::b", "c::b::child"]]
    );
}

#[test]
fn modules_for_tests_do_not_count() {
    let tests = "pub struct B; #[cfg(test)] mod tests { use crate::a::A; } #[cfg(test)] mod more;";
    let files = [("lib.rs", ROOT), ("a.rs", "use crate::B; pub struct A;"), ("b.rs", tests)];
    assert!(circles_of(&files, "").is_empty());
}

#[test]
fn an_edge_with_a_reason_is_let_go() {
    let files = [
        ("lib.rs", ROOT),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "pub struct B(crate::a::A);"),
    ];
    assert!(circles_of(&files, "# why\n\nc::a -> c::b: they are one thing\n").is_empty());
    assert!(exceptions::read("c::a -> c::b:\n").is_err(), "a reason is asked for");
    assert!(exceptions::read("c::a c::b: why\n").is_err());
}

#[test]
fn what_leads_to_a_later_floor_is_refused() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let folder = folder.path().join("c");
    fs::create_dir_all(folder.join("src")).expect("made");
    for (name, text) in [
        ("lib.rs", "mod a; mod b; mod new; pub use b::B;"),
        ("a.rs", "pub struct A(crate::B);"),
        ("b.rs", "pub struct B;"),
        ("new.rs", "use crate::a::A;"),
    ] {
        fs::write(folder.join("src").join(name), text).expect("written");
    }
    let modules = source::read(&folder).expect("a crate");
    let refused = |text| {
        let floors = floors::read(text).expect("floors");
        let refused = |edge: &&resolve::Edge| floors[0].refuses(&modules, edge);
        let edges = resolve::edges(&modules);
        let from = edges.iter().filter(refused).map(|edge| modules[edge.from].path.clone());
        from.collect::<Vec<_>>()
    };
    assert_eq!(refused("c: a b new"), ["c::a"]);
    // A module without a floor may stand nowhere.
    assert_eq!(refused("c: b a"), ["c::new"]);
    assert!(refused("c: b a new").is_empty() && refused("d: a b").is_empty());
    assert!(floors::read("c a b").is_err());
}
