//! Says which commit the program is built of, for `tamis --version`: `TAMIS_COMMIT` if it is set, else what git says of
//! the checkout; nothing outside of one. It runs again only where that has changed, and only this crate is rebuilt
//! then. It also makes a release link identical functions once.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=TAMIS_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let given = std::env::var("TAMIS_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(of_checkout).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=TAMIS_COMMIT={commit}");
    link_alike_once();
}

/// Links identical functions once (0.3 MB of 15), where Rust brings a linker that can for this target: it is named, so that no
/// other one is asked.
fn link_alike_once() {
    let value = |name: &str| std::env::var(name).unwrap_or_default();
    let flags = value("CARGO_ENCODED_RUSTFLAGS");
    let is_given =
        !value("RUSTC_LINKER").is_empty() || flags.contains("linker") || flags.contains("fuse-ld");
    let target = "x86_64-unknown-linux-gnu";
    if value("OPT_LEVEL") != "3" || value("TARGET") != target || value("HOST") != target || is_given
    {
        return;
    }
    let Some(sysroot) = printed(Command::new(value("RUSTC")).args(["--print", "sysroot"])) else {
        return;
    };
    let linkers = Path::new(&sysroot).join("lib/rustlib").join(target).join("bin/gcc-ld");
    if linkers.join("ld.lld").exists() {
        println!("cargo::rustc-link-arg-bins=-B{}", linkers.display());
        println!("cargo::rustc-link-arg-bins=-fuse-ld=lld");
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}

/// The commit and its day, if this crate lies in a checkout of its own repository, not in somebody else's.
fn of_checkout() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.parent()?.canonicalize().ok()?;
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root {
        return None;
    }
    let branch = git(&["rev-parse", "--symbolic-full-name", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let file = git(&["rev-parse", "--path-format=absolute", "--git-path", name])?;
        // One that is not there would have this run each time.
        if Path::new(&file).exists() {
            println!("cargo::rerun-if-changed={file}");
        }
    }
    git(&["show", "--no-patch", "--abbrev=12", "--format=%h, %cs", "HEAD"])
}

fn git(args: &[&str]) -> Option<String> {
    printed(Command::new("git").arg("-C").arg(env!("CARGO_MANIFEST_DIR")).args(args))
}

fn printed(command: &mut Command) -> Option<String> {
    let ran = command.output().ok().filter(|ran| ran.status.success())?;
    Some(String::from_utf8(ran.stdout).ok()?.trim().to_owned())
}
