//! No overlay: the same addresses on the bare way. What it reaches is the ceiling of all.

use std::io;

use tunnel::PublicKey;

use super::{Daemon, End, INNER, Namespace, Overlay};

/// Its name.
pub(in crate::bench::tunnel) const VETH: &str = "veth";

/// The way itself.
pub(in crate::bench::tunnel) struct Veth;

impl Overlay for Veth {
    fn name(&self) -> &'static str {
        VETH
    }

    /// Gives `lo` the inner address; the others are where outer packets go.
    fn start(&self, end: &End, place: &Namespace) -> io::Result<Daemon> {
        let End { address, way, .. } = end;
        place.ip(&format!("addr add {address}/32 dev lo\nroute add {INNER} {way}\n"))?;
        Ok(Daemon::default())
    }

    fn forget(&self, _: &Daemon, _: &PublicKey) -> io::Result<()> {
        Ok(())
    }
}
