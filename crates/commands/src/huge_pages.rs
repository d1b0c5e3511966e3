//! Huge pages: the allocator asks for them, which a replay gains by. A process that runs for long would hold tens of
//! megabytes that it never uses, so it does without.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What the allocator reads before `main`: it has to be there when the program starts.
const ALLOWED: &str = "MIMALLOC_ALLOW_THP";

/// Starts this program again, as the same process, without huge pages, unless somebody has said whether it is to have them.
/// Where that fails it goes on with them. Processes that it starts have none either.
pub(crate) fn forgo() {
    if env::var_os(ALLOWED).is_some() {
        return;
    }
    let Ok(program) = env::current_exe() else { return };
    let mut args = env::args_os();
    let mut command = Command::new(program);
    command.arg0(args.next().unwrap_or_default()).args(args).env(ALLOWED, "0");
    // It returns if it failed alone.
    let _ = command.exec();
}
