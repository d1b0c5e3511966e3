//! `tamis-bench live`: frames per second, and processor time per packet, of `tamis run` on devices that this makes in a
//! network namespace of its own, beside testpmd and the kernel.
//!
//! Contract: each run starts its forwarder anew, in turn with the peer's. Needs root; what cannot be run is listed.
//! Every process is pinned: the source of the frames to the first core, the forwarder to the last one, and both to the
//! last one where processor time is measured.

mod changes;
pub mod changing;
pub(super) mod counts;
mod dpdk;
pub mod figure;
mod forward;
mod forwarder;
mod handlers;
mod kinds;
mod latency;
mod line;
pub mod middlebox;
pub mod ordered;
mod plan;
mod running;
pub mod soak;
mod source;
mod tun;

use std::io;
use std::path::Path;

use super::rows::Rows;
use crate::oracle::netns;

pub use plan::{Part, Plan};

/// Measures this program, `tamis`.
///
/// # Errors
/// No namespace can be made, or tamis does not run.
pub fn run(tamis: &Path, plan: Plan, out: &mut Rows) -> io::Result<()> {
    for (part, name) in Part::ALL.into_iter().filter(|(part, _)| plan.has(*part)) {
        if !out.begins(format!("live, part {name}")) {
            continue;
        }
        match part {
            Part::Forward => forward::rates(tamis, plan, out)?,
            Part::Processor => netns::in_fresh(|| forward::costs(tamis, plan, out))?,
            Part::Latency => latency::delays(tamis, plan, out)?,
            Part::Tun => out.push(tun::row(tamis, plan)?),
            Part::Dpdk => dpdk::rows(tamis, plan, out)?,
            Part::Changes => changes::rows(tamis, plan, out)?,
            Part::Ordered => plan.ordered(out),
            Part::Middlebox => plan.middlebox(out),
            Part::Handlers => handlers::rows(tamis, plan, out)?,
        }
    }
    Ok(())
}
