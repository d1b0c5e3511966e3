//! The commands of `tamis`: arguments to the crates that do the work, nothing else.
//!
//! Exit code 2 is a usage or input error, said in one line on standard error; a closed pipe changes no exit code. Nothing here
//! is done for a packet: it is built small, and what packets pass through is compiled in the crates below.
#![forbid(unsafe_code)]

mod args;
mod collect_command;
mod completions_command;
#[cfg(feature = "live")]
mod confine;
mod convert_command;
mod convert_nft;
#[cfg(feature = "live")]
mod ctl;
mod demo;
mod diff_capture;
mod diff_command;
#[cfg(feature = "live")]
mod doctor_command;
#[cfg(feature = "live")]
mod dpdk_ports;
mod huge_pages;
mod interrupt;
#[cfg(feature = "java")]
mod java;
#[cfg(all(feature = "live", not(feature = "java")))]
#[path = "no_java.rs"]
mod java;
mod lint_command;
#[cfg(feature = "live")]
mod live;
#[cfg(not(feature = "live"))]
#[path = "no_live.rs"]
mod live;
#[cfg(feature = "live")]
mod log;
mod loudness;
mod man_command;
mod moved;
mod outputs;
#[cfg(all(feature = "live", target_os = "linux"))]
mod parent;
mod program;
mod progress;
mod reach_command;
mod replay_command;
#[cfg(feature = "live")]
mod run_command;
mod saved_counters;
mod screen;
mod short_help;
mod standard_input;
mod test_command;
#[cfg(feature = "live")]
mod top;
#[cfg(feature = "live")]
mod tunnel;
mod walk_args;
#[cfg(feature = "live")]
mod watch_command;
mod why_command;

pub use program::main;

/// Reads any bytes as a program's question for a name, and answers it in each way (`fuzz/`, target `names`).
#[cfg(all(fuzzing, feature = "live"))]
pub fn hostile_question(query: &[u8]) {
    tunnel::hostile(query);
}
