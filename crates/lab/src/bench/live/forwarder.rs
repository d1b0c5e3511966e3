//! What forwards frames from `m0` to `m1`: tamis, testpmd, the kernel, or nobody.

use std::io;
use std::path::Path;
use std::process::Command;

use super::kinds::{Backend, Tool};
use super::running::{self, Running};
use super::source::{Shape, rules as rules_of};

/// Who forwards.
#[derive(Clone, Copy, Debug)]
pub(super) enum Forwarder<'p> {
    /// `tamis run` with so many rules that no frame matches.
    Tamis {
        /// The program.
        tamis: &'p Path,
        /// What moves frames.
        by: Backend,
        /// How many rules, and of what shape.
        rules: (usize, Shape),
    },
    /// DPDK's, which looks at no rule.
    Testpmd {
        /// What moves frames.
        by: Backend,
        /// What it does with them.
        mode: &'static str,
    },
    /// The kernel's router with so many rules.
    Kernel {
        /// By what they are restored.
        tool: Tool,
        /// How many rules, and of what shape.
        rules: (usize, Shape),
    },
    /// Nobody: frames end where they would be forwarded.
    None,
}

/// What testpmd is called by: frames pass as they are.
pub(super) const IO: &str = "io";
/// It swaps the addresses of each.
pub(super) const MACSWAP: &str = "macswap";

impl<'p> Forwarder<'p> {
    /// As figures name it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Tamis { .. } => "tamis",
            Self::Testpmd { mode: MACSWAP, .. } => "testpmd macswap",
            Self::Testpmd { .. } => "testpmd io",
            Self::Kernel { rules: (0, _), .. } => "kernel",
            Self::Kernel { tool, .. } => tool.name(),
            Self::None => "none",
        }
    }

    /// Why it cannot run here, if so.
    pub(super) fn lacking(&self) -> Option<String> {
        let program = match self {
            Self::Testpmd { .. } => running::TESTPMD,
            Self::Kernel { tool, .. } => tool.program(),
            Self::Tamis { .. } | Self::None => return None,
        };
        let asked = Command::new(program).arg("--help").output();
        asked.is_err().then(|| format!("{program} is not installed"))
    }

    /// Starts it on a core, before all others.
    pub(super) fn start(&self, core: usize) -> io::Result<Running> {
        match *self {
            Self::Tamis { tamis, by, rules: (count, shape) } => {
                running::start_tamis(tamis, by, WIRE, &rules_of(count, shape), core)
            }
            Self::Testpmd { by, mode } => running::start_testpmd(by, mode, core),
            Self::Kernel { tool, rules: (count, shape) } => {
                running::start_kernel(tool, &rules_of(count, shape))
            }
            Self::None => Ok(Running::nobody()),
        }
    }
}

const WIRE: &str = "[[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n";
