//! Which processors threads may run on.

use live::{Hosted, Processor, processors};
use serde_json::{Value, json};

use crate::entry::Thrown;

/// The processors that this process may run on, as JSON.
pub(crate) fn topology() -> String {
    let one = |one: Processor| json!({ "number": one.number, "core": one.core, "socket": one.socket, "node": one.node });
    let all: Vec<Value> = processors().into_iter().map(one).collect();
    json!({ "processors": all }).to_string()
}

/// Pins the calling thread to one processor.
///
/// # Errors
/// There is none of this number, or this process may not run there.
pub(crate) fn pin(core: i32) -> Result<(), Thrown> {
    let pinned = usize::try_from(core).map(Hosted::pin);
    match pinned {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Thrown(format!("core {core}: {}", Thrown::from(error).0))),
        Err(_) => Err(Thrown(format!("expected the number of a core, found {core}"))),
    }
}
